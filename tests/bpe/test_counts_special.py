from __future__ import annotations

import pytest

from bpe.errors import SpecialTokenError
from bpe.special_tokens import SpecialCutter, check_special_tokens
from tests.bpe.steps import assert_linear, counts_steps


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
