"""Normalizers, patterns never split and several patterns: cutting and counting with all of them."""

from __future__ import annotations

from typing import Any

import pytest

import bpe
from bpe.errors import PretokenizerError
from bpe.pretokenizer import Pretokenizer


def test_a_special_token_that_only_normalization_makes_is_text() -> None:
    counts = bpe.count_pretokens(
        ["a<s>b ＜s＞"], pretokenizer="words", normalizer=("nfkc",), special_tokens=["<s>"]
    )
    assert dict(counts.items()) == {b"a": 1, b"b": 1, b"<s>": 1}


# What is never split.


@pytest.mark.parametrize(
    ("text", "pieces"),
    [
        ("see https://a.org/x_y?z=1.", ["see", " ", "https://a.org/x_y?z=1", "."]),
        ("(www.a.org), ok", ["(", "www.a.org", "),", " ok"]),
        ("<http://a.b/c>", ["<", "http://a.b/c", ">"]),
        ("www. ftp://", ["www", ".", " ftp", "://"]),
        ("to me.you+x@a-b.co.uk, now", ["to", " ", "me.you+x@a-b.co.uk", ",", " now"]),
        ("a@b", ["a", "@", "b"]),
        ("user@example.org.", ["user@example.org", "."]),
    ],
)
def test_addresses_stay_whole(text: str, pieces: list[str]) -> None:
    cut = Pretokenizer("gpt2", never_split=("url", "email"))
    assert cut.split(text) == [piece.encode() for piece in pieces]


def test_a_pretoken_that_a_pattern_matches_in_full_is_whole() -> None:
    cut = Pretokenizer("words", never_split=("email", r"[A-Z]\d+"))
    words = [b"a@b.c", b"X12", b"X12a", b"", b"\xff"]
    assert list(filter(cut.is_never_split, words)) == [b"a@b.c", b"X12"]
    assert not Pretokenizer("words").is_never_split(b"a@b.c")


@pytest.mark.parametrize(
    ("patterns", "message"),
    [
        ("url", r"one str, 'url': give a list, \['url'\]"),
        (["("], r"'\(' does not compile"),
        ([""], "never_split holds ''"),
        ([1], "never_split holds 1"),
        (["a*"], r"'a\*' matches the empty string"),
    ],
)
def test_patterns_that_are_wrong(patterns: Any, message: str) -> None:
    with pytest.raises(PretokenizerError, match=message):
        bpe.count_pretokens(["a"], never_split=patterns)


def test_a_pattern_that_looks_around_itself_is_refused() -> None:
    cut = Pretokenizer("words", never_split=(r"\w+(?=!)", "x"))
    assert cut.split("no match") == [b"no", b"match"]
    with pytest.raises(PretokenizerError, match=r"matches 'b' only because of"):
        cut.split("a b!")
    # One that only forbids its surroundings matches by itself too.
    forbids = Pretokenizer("none", never_split=(r"(?<!\w)@\w+\b",))
    assert forbids.split("a@b @cd") == [b"a@b ", b"@cd"]


# Several patterns.


def test_one_pattern_in_a_list_is_that_pattern_or_name() -> None:
    assert Pretokenizer(pattern=(r"\d",)) == Pretokenizer(pattern=r"\d")
    assert Pretokenizer(pattern=("words",)) == Pretokenizer("words")
    assert Pretokenizer.of("gpt2", ["words"]) == Pretokenizer("words")
    assert Pretokenizer.of("gpt2", []) == Pretokenizer("gpt2")
    assert Pretokenizer(pattern="words").split("in words.") == [b"in ", b"words", b"."]
    for patterns in ((), ("a", ""), ("a", "("), ("a", 1)):
        with pytest.raises(PretokenizerError):
            Pretokenizer(pattern=patterns)  # type: ignore[arg-type]
