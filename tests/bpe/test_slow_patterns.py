"""Patterns that backtrack too long: an error that names pattern and row, and nothing half done."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

import bpe
from bpe.counting import PretokenCounter
from bpe.errors import PatternTimeoutError
from bpe.pretokenizer import Pretokenizer
from bpe.regex import search
from bpe.regex.search import TimedSearch

SLOW = r"(x|a|aa)+(?<!z)$"
EVIL = "a" * 60 + "!"
WAYS: list[dict[str, Any]] = [
    {"pattern": SLOW},
    {"pattern": ("words", SLOW)},
    {"name": "gpt2", "never_split": (r"(?:a|a)+(?=$|-)",)},
    {"pattern": SLOW, "normalizer": ("nfkc",)},
]


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """A time limit that tests can wait for."""
    monkeypatch.setattr(search, "SECONDS", 0.2)


@pytest.mark.parametrize("way", WAYS)
def test_counting_and_encoding_name_the_pattern_and_the_row(way: dict[str, Any]) -> None:
    cut = Pretokenizer(**way)
    pattern = (*cut.never_split, *cut.patterns)[0 if cut.never_split else -1]
    texts = pa.array(["good"] * 2000 + [EVIL, "good"])
    with pytest.raises(PatternTimeoutError, match=r"^row 2000: the pattern ") as caught:
        bpe.count_pretokens(texts, pretokenizer=cut)
    assert repr(pattern) in str(caught.value)
    assert caught.value.rows == (2000,)
    counter = PretokenCounter(cut)
    with pytest.raises(PatternTimeoutError):
        counter.add(texts)
    assert len(counter) == 0  # also of the rows before
    tokenizer = bpe.train(bpe.count_pretokens(["good"], pretokenizer=cut), max_merges=9)
    with pytest.raises(PatternTimeoutError, match=r"^row 3: the pattern .* too slow") as caught:
        tokenizer.encode_arrow(pa.chunked_array([["good", "good"], ["good", EVIL]]))
    assert caught.value.rows == (3,)
    with pytest.raises(PatternTimeoutError, match=r"^the pattern "):
        tokenizer.encode(EVIL)
    assert tokenizer.encode_batch(["good"]) == [tokenizer.encode("good")]
    with pytest.raises(PatternTimeoutError, match=r"^row 1: the pattern "):
        bpe.count_runs(["good", EVIL], tokenizer=tokenizer)


def test_a_pretoken_and_a_token_are_searched_in_the_same_time() -> None:
    cut = Pretokenizer("words", never_split=(r"(?:a|a)+$",))
    with pytest.raises(PatternTimeoutError, match=r"'\(\?:a\|a\)\+\$' is too slow"):
        cut.is_never_split(EVIL.encode())
    tokenizer = bpe.train(
        bpe.count_pretokens(["a" * 63 + "!"] * 3, pretokenizer="words"), max_merges=20
    )
    with pytest.raises(PatternTimeoutError, match=r"'\(\?:a\|a\)\+\$' is too slow"):
        bpe.count_runs(["a"], tokenizer=tokenizer, merge_pattern="(?:a|a)+$")


def test_other_threads_take_no_time_of_a_search() -> None:
    """The package's own limit counts their CPU time: a search that it ends is made again."""
    allowed: list[float] = []

    def find(*, timeout: float) -> str:
        allowed.append(timeout)
        if len(allowed) < 3:
            raise TimeoutError
        return "found"

    assert TimedSearch(5).run("x", find) == "found"
    assert allowed[0] < allowed[1]


def test_longer_texts_have_more_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(search, "SECONDS_PER_BYTE", 1.0)
    TimedSearch(1000).run(
        "x", lambda *, timeout: timeout > 1000 or pytest.fail("it has no more time")
    )
