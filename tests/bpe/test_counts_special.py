from __future__ import annotations

import pyarrow as pa
import pytest

from bpe import Pretokenizer
from bpe.errors import SpecialTokenError
from bpe.segments import TextCutter
from bpe.special_tokens import check_special_tokens
from tests.bpe.steps import assert_linear, counts_steps


def cut(tokens: list[bytes], text: bytes) -> list[tuple[int, int]]:
    """The sizes of the parts of a text, and the number of the token that each is (-1: none)."""
    cutter = TextCutter(Pretokenizer("none"), flags={})
    segments = cutter.segments(pa.array([text]), {token: i for i, token in enumerate(tokens)})
    return [*zip(map(len, segments.data.to_pylist()), segments.what.tolist(), strict=True)]


def test_a_token_of_a_megabyte() -> None:
    size = 1_000_000
    token = b"a" * size + b"b"
    assert cut([token], b"a" * size + b"c") == [(size + 1, -1)]
    assert cut([token], b"a" + token) == [(1, -1), (size + 1, 0)]


@counts_steps
def test_text_that_is_nearly_a_token_takes_linear_work() -> None:
    """A search that begins again at every byte would be quadratic."""

    def work(size: int) -> None:
        cut([b"a" * size + b"b"], b"a" * 2 * size + b"c")

    assert_linear(work, 50_000)


def test_thousands_of_tokens() -> None:
    tokens = [f"<|reserved_{i}|>".encode() for i in range(5_000)]
    text = b"".join(reversed(tokens))
    assert [token for _, token in cut(tokens, text)] == list(reversed(range(5_000)))


@pytest.mark.parametrize(
    ("tokens", "message"),
    [
        ("<s>", "one str"),
        ([b"<s>"], "not a str"),
        ([""], "empty"),
        (["<s>", "<e>", "<s>"], "'<s>' is given twice"),
        (["ok", "a\ud800b"], "lone surrogate at character 1"),
    ],
)
def test_wrong_tokens_are_refused(tokens: list[str], message: str) -> None:
    with pytest.raises(SpecialTokenError, match=message):
        check_special_tokens(tokens)
