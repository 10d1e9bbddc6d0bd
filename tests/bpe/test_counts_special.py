from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bpe.errors import SpecialTokenError
from bpe.special_tokens import SpecialCutter, check_special_tokens
from tests.bpe.steps import assert_linear, counts_steps

Parts = list[tuple[int, int, int | None]]


def cut_by_regex(tokens: list[bytes], text: bytes) -> Parts:
    """Leftmost, longest first, as a regular expression says it."""
    longest_first = sorted(tokens, key=len, reverse=True)
    parts: Parts = []
    position = 0
    if tokens:
        for match in re.finditer(b"|".join(map(re.escape, longest_first)), text):
            if match.start() > position:
                parts.append((position, match.start(), None))
            parts.append((match.start(), match.end(), tokens.index(match.group())))
            position = match.end()
    if position < len(text):
        parts.append((position, len(text), None))
    return parts


@given(
    st.lists(st.binary(min_size=1, max_size=5).map(lambda b: bytes(x % 3 for x in b)), unique=True),
    st.binary(max_size=60).map(lambda b: bytes(x % 3 for x in b)),
)
def test_finds_the_leftmost_and_longest_token(tokens: list[bytes], text: bytes) -> None:
    assert list(SpecialCutter(tokens).cut(text)) == cut_by_regex(tokens, text)


def test_a_token_of_a_megabyte() -> None:
    size = 1_000_000
    token = b"a" * size + b"b"
    assert list(SpecialCutter([token]).cut(b"a" * size + b"c")) == [(0, size + 1, None)]
    assert list(SpecialCutter([token]).cut(b"a" + token)) == [(0, 1, None), (1, size + 2, 0)]


@counts_steps
def test_text_that_is_nearly_a_token_takes_linear_work() -> None:
    """A search that begins again at every byte would be quadratic."""

    def work(size: int) -> None:
        list(SpecialCutter([b"a" * size + b"b"]).cut(b"a" * 2 * size + b"c"))

    assert_linear(work, 50_000)


def test_thousands_of_tokens() -> None:
    tokens = [f"<|reserved_{i}|>".encode() for i in range(5_000)]
    text = b"".join(reversed(tokens))
    found = [token for _, _, token in SpecialCutter(tokens).cut(text)]
    assert found == list(reversed(range(5_000)))


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


@pytest.mark.parametrize("tokens", [[b""], [b"a", b"a"], [b"x", b""]])
def test_the_core_refuses_empty_and_repeated_tokens(tokens: list[bytes]) -> None:
    with pytest.raises(ValueError, match=r"special token \d is (empty|given twice)"):
        SpecialCutter(tokens)
