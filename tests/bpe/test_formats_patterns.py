"""Patterns that are carried over to Oniguruma cut text there as they do here."""

from __future__ import annotations

import json
import re

import pytest
import tokenizers
from hypothesis import assume, given
from hypothesis import strategies as st
from tokenizers import pre_tokenizers

import bpe
from bpe.errors import PretokenizerError
from bpe.formats.huggingface_cuts import read_pre_tokenizer
from bpe.formats.strict_json import Entry
from bpe.regex.oniguruma import from_huggingface, to_huggingface
from tests.examples import examples

ATOMS = [
    *("a", "b", "A", "ſ", "'", " ", "\N{KELVIN SIGN}"),
    *(r"\n", r"\r", r"\t", r"\.", r"\x41", r"\u0301", r"\s", r"\S", r"\d", r"\D", "."),
    *(r"\p{L}", r"\P{L}", r"\p{Lu}", r"\p{M}", r"\p{Nd}", r"\p{Zs}"),
    *("[ab]", "[^a]", r"[^\s\p{L}]", r"[\r\n/]", "[a-z]", r"[\]a]", "[-a]", "[a&b]", r"[\d\-]"),
    *("[]a]", "[^]a]", "[a-]", r"[\p{Lu}\p{Lt}']"),
    *("(?i:a)", "(?i:'[sk])", "(?i:re|ve)", "(?i:[^a])", "(?i:ss)", "(?i:ffl)", "(?i:k)"),
    *("(?i:i)", "(?i:[a-z])", "(?=a)", "(?!b)", "^", "$"),
]
QUANTIFIERS = ["", "?", "*", "+", "?+", "*+", "++", "+?", "??", "{2}", "{1,3}", "{2,}"]
PIECES = st.sampled_from([*"aAbsSkK'\n\r \t./&-]iİıſßéﬄ\u0301\N{KELVIN SIGN}", "12", "ss", "ffl"])


def patterns() -> st.SearchStrategy[str]:
    quantified = st.builds("{}{}".format, st.sampled_from(ATOMS), st.sampled_from(QUANTIFIERS))
    groups = st.sampled_from(["({}){}", "(?:{}){}", "(?>{}){}"])

    def longer(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
        return st.one_of(
            st.lists(inner, min_size=1, max_size=3).map("".join),
            st.lists(inner, min_size=2, max_size=3).map("|".join),
            st.builds(str.format, groups, inner, st.sampled_from(["", "+", "?"])),
            st.builds("{}({}{})".format, inner, st.sampled_from(["?=", "?!"]), inner),
            st.builds("{}{}".format, inner, st.sampled_from(["$", r"\Z"])),
            st.builds("^{}".format, inner),
        )

    return st.recursive(quantified, longer, max_leaves=5)


@given(pattern=patterns(), texts=st.lists(st.lists(PIECES, max_size=12).map("".join), max_size=5))
@examples(400)
def test_what_is_carried_over_means_the_same(pattern: str, texts: list[str]) -> None:
    try:
        ours = bpe.Pretokenizer(pattern=pattern)
        written = to_huggingface(pattern)
    except (PretokenizerError, ValueError):
        assume(False)  # what does not compile, or is refused
    assert from_huggingface(written).replace(r"\A", "^") == pattern
    theirs = pre_tokenizers.Split(tokenizers.Regex(written), "isolated")
    for text in texts:
        pieces = [piece.encode() for piece, _ in theirs.pre_tokenize_str(text)]
        assert pieces == ours.split(text), (pattern, text)


INNER = ["a", "b-d", r"\s", r"\p{Lu}", ".", "|", "(", r"\]", r"\-", "'"]
OUTER = st.sampled_from([*INNER, "x-z"]) | st.lists(
    st.sampled_from(INNER), min_size=1, max_size=3
).map(lambda items: f"[{''.join(items)}]")
CLASSES = st.builds(
    "[{}{}]".format,
    st.sampled_from(["", "^"]),
    st.lists(OUTER, min_size=1, max_size=4).map("".join),
)


@given(pattern=CLASSES, text=st.lists(PIECES, max_size=20).map("".join))
@examples(100)
def test_characters_of_a_class_in_a_class_are_those_of_both(pattern: str, text: str) -> None:
    assume("||" not in re.sub(r"[\[\]]", "", pattern))  # sets of two, to `regex`
    ours = bpe.Pretokenizer(pattern=from_huggingface(pattern))
    theirs = pre_tokenizers.Split(tokenizers.Regex(pattern), "isolated")
    assert ours.split(text) == [piece.encode() for piece, _ in theirs.pre_tokenize_str(text)]


@pytest.mark.parametrize(
    "pattern",
    ["[a[^b]]", "[a[b[c]]]", "[a[[:alpha:]]]", "[[:alpha:]]", "[a[b]-]", "[a-[b]]", "[a[b-]]"],
)
def test_other_classes_in_a_class_are_refused(pattern: str) -> None:
    with pytest.raises(ValueError, match=r"may differ between Python's regex and Hugging Face's"):
        from_huggingface(pattern)


@given(
    pattern=st.sampled_from([" ", ".", "▁", r"\s", r"\p{L}", "[ab]", "[^ab]", r"[\]\n]", "[^^a]"]),
    behavior=st.sampled_from(["contiguous", "merged_with_next", "merged_with_previous"]),
    literal=st.booleans(),
    text=st.lists(PIECES | st.sampled_from("▁^"), max_size=12).map("".join),
)
@examples(300)
def test_matches_are_joined_with_what_is_beside_them(
    pattern: str, behavior: str, literal: bool, text: str
) -> None:
    literal = literal and len(pattern) == 1
    assume(literal or pattern != ".")
    theirs = pre_tokenizers.Split(pattern if literal else tokenizers.Regex(pattern), behavior)
    entry = json.loads(theirs.__getstate__())
    cuts = read_pre_tokenizer(Entry("file", "pre_tokenizer", entry), ())
    ours = bpe.Pretokenizer(pattern=cuts.steps)
    assert ours.split(text) == [piece.encode() for piece, _ in theirs.pre_tokenize_str(text)]
