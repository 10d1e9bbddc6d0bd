"""The fast way to read a .tiktoken file, compared with the one that goes line by line."""

from __future__ import annotations

import base64
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bpe.errors import TokenizerFileError
from bpe.formats.tiktoken import _tokens_line_by_line
from bpe.token_table import TokenTable
from tests.examples import examples

PATH = Path("some.tiktoken")
TOKENS = st.lists(st.binary(min_size=1, max_size=5), min_size=1, max_size=6, unique=True)


def lines(tokens: list[bytes]) -> bytes:
    return b"".join(base64.b64encode(token) + b" %d\n" % rank for rank, token in enumerate(tokens))


@examples(1000)
@given(TOKENS, st.data())
def test_what_is_read_fast_is_what_the_lines_say(tokens: list[bytes], data: st.DataObject) -> None:
    table = TokenTable.of_ranks(lines(tokens))
    assert table is not None
    assert [*table] == _tokens_line_by_line(PATH, lines(tokens)) == tokens
    damaged = bytearray(lines(tokens))
    for _ in range(data.draw(st.integers(1, 3))):
        at = data.draw(st.integers(0, len(damaged) - 1))
        what = data.draw(st.sampled_from([b"=", b"A", b"+", b" ", b"\n", b"0", b"1", b"\xff", b""]))
        damaged[at : at + data.draw(st.integers(0, 1))] = what
        if not damaged:
            break
    table = TokenTable.of_ranks(bytes(damaged))
    if table is None:
        return
    fast = [*table]
    if len(set(fast)) == len(fast):
        assert fast == _tokens_line_by_line(PATH, bytes(damaged))
    else:
        with pytest.raises(TokenizerFileError, match="line"):
            _tokens_line_by_line(PATH, bytes(damaged))


WRONG = [b"QQ==QQ== 0\n", b"QQ== +0\n", b"QQ== 00\n", b"==== 0\n", b"QQ= 0\n", b"Q 0\n"]


@pytest.mark.parametrize("data", WRONG)
def test_what_is_wrong_is_left_to_the_lines(data: bytes) -> None:
    assert TokenTable.of_ranks(data) is None
    if b"00" not in data:
        with pytest.raises(TokenizerFileError, match="line"):
            _tokens_line_by_line(PATH, data)
