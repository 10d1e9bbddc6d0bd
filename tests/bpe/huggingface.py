"""Tokenizers of Hugging Face's ``tokenizers`` as ours, and ours as theirs."""

from __future__ import annotations

import tempfile
from pathlib import Path

import tokenizers

import bpe


def loaded(theirs: tokenizers.Tokenizer) -> bpe.Tokenizer:
    """Ours, of the file that they save."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "theirs.json")
        theirs.save(str(path))
        return bpe.Tokenizer.load(path)


def written(ours: bpe.Tokenizer) -> tokenizers.Tokenizer:
    """Theirs, of the file that ours writes."""
    return tokenizers.Tokenizer.from_str(ours.to_json())


def ids_of(theirs: tokenizers.Tokenizer, text: str) -> list[int]:
    """Their ids of a text, without what a post-processor adds."""
    ids: list[int] = theirs.encode(text, add_special_tokens=False).ids
    return ids
