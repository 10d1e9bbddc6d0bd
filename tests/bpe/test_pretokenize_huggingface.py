"""The cuts of llama3 and qwen2, compared with those of Hugging Face's ``Split``.

These two are published as ``tokenizer.json`` files, so ``tokenizers`` and its regular expressions
are what defines them.
"""

from __future__ import annotations

import pytest
from hypothesis import given
from tokenizers import Regex
from tokenizers.pre_tokenizers import Split

from bpe.pretokenizer import PATTERNS, Pretokenizer
from tests.bpe.texts import every_code_point, library_sources, strings
from tests.examples import examples

SCHEMES = ("llama3", "qwen2")
SPLITS = {name: Split(Regex(PATTERNS[name]), "isolated") for name in SCHEMES}


def check(name: str, text: str) -> None:
    theirs = [piece.encode() for piece, _ in SPLITS[name].pre_tokenize_str(text)]
    assert Pretokenizer(name).split(text) == theirs


@given(strings())
@examples(300)
def test_hard_text_is_cut_as_by_huggingface(text: str) -> None:
    for name in SCHEMES:
        check(name, text)


def test_every_code_point_is_cut_as_by_huggingface() -> None:
    # In pieces, so that a failure shows where; qwen2 differs in runs of numbers alone.
    text = "".join(every_code_point())
    for start in range(0, len(text), 100_000):
        check("llama3", text[start : start + 100_000])


@pytest.mark.parametrize("name", SCHEMES)
def test_source_code_is_cut_as_by_huggingface(name: str) -> None:
    for source in library_sources(500_000):
        check(name, source.decode("utf-8", "replace"))
