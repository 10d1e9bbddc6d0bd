"""Tokenizers of Hugging Face's ``tokenizers`` as ours, ours as theirs, and edits of their files."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import Any

import tokenizers

import bpe
from tests.bpe.vocabularies import small_tokenizer


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


def with_parts(**parts: Any) -> tokenizers.Tokenizer:
    """Theirs of `small_tokenizer`, with another ``normalizer``, ``pre_tokenizer`` and the like."""
    theirs = written(small_tokenizer(special_tokens=()))
    for name, part in parts.items():
        setattr(theirs, name, part)
    return theirs


ABSENT = object()


def edited(file: str, place: str, value: Any) -> str:
    """The file with another value, or none if ``ABSENT``, at a place like ``model.merges.0``."""
    content = at = json.loads(file)
    *steps, last = (int(step) if step.isdigit() else step for step in place.split("."))
    for step in steps:
        at = at[step]
    if value is ABSENT:
        del at[last]
    else:
        at[last] = value
    return json.dumps(content)
