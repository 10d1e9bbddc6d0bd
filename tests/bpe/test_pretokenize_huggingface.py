"""The cuts of text, compared with those of Hugging Face's pre-tokenizers.

llama3 and qwen2 are published as ``tokenizer.json`` files, so ``tokenizers`` and its regular
expressions are what defines them.
"""

from __future__ import annotations

import pytest
from hypothesis import given
from tokenizers import Regex
from tokenizers.pre_tokenizers import (
    BertPreTokenizer,
    PreTokenizer,
    Split,
    WhitespaceSplit,
)

from bpe.pretokenizer import PATTERNS, Pretokenizer
from tests.bpe.texts import code_points, every_code_point, library_sources, strings
from tests.examples import examples

SCHEMES = ("llama3", "qwen2")
SPLITS = {name: Split(Regex(PATTERNS[name]), "isolated") for name in SCHEMES}


def check(name: str, text: str, theirs: PreTokenizer) -> None:
    expected = [piece.encode() for piece, _ in theirs.pre_tokenize_str(text)]
    assert Pretokenizer(name).split(text) == expected


@given(strings())
@examples(300)
def test_hard_text_is_cut_as_by_huggingface(text: str) -> None:
    for name in SCHEMES:
        check(name, text, SPLITS[name])


def test_every_code_point_is_cut_as_by_huggingface() -> None:
    # In pieces, so that a failure shows where; qwen2 differs in runs of numbers alone.
    text = "".join(every_code_point())
    for start in range(0, len(text), 100_000):
        check("llama3", text[start : start + 100_000], SPLITS["llama3"])


@pytest.mark.parametrize("name", SCHEMES)
def test_source_code_is_cut_as_by_huggingface(name: str) -> None:
    for source in library_sources(500_000):
        check(name, source.decode("utf-8", "replace"), SPLITS[name])


NAMED = {
    "bert": BertPreTokenizer(),
    "words": WhitespaceSplit(),
    "spaces": Split(" ", "removed"),
}


def new_punctuation() -> set[str]:
    """Its pre-tokenizer of BERT knows the punctuation of Unicode 8, ours that of Unicode 16."""
    pieces = NAMED["bert"].pre_tokenize_str
    cut = Pretokenizer("bert").split
    return {c for c in code_points() if len(pieces(f"a{c}b")) != len(cut(f"a{c}b"))}


def test_every_code_point_is_cut_as_by_the_pretokenizers_of_huggingface() -> None:
    differences = new_punctuation()
    assert len(differences) < 200
    for text in every_code_point(without="".join(differences)):
        for begin in range(0, len(text), 100_000):
            for name, theirs in NAMED.items():
                check(name, text[begin : begin + 100_000], theirs)
