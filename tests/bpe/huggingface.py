"""Tokenizers of Hugging Face's ``tokenizers`` as ours, ours as theirs, and edits of their files."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import Any

import tokenizers
from hypothesis import strategies as st

import bpe
from tests.bpe.texts import strings
from tests.bpe.vocabularies import small_tokenizer


def loaded(theirs: tokenizers.Tokenizer | str) -> bpe.Tokenizer:
    """Ours, of the file that they save, or of its text."""
    text = theirs if isinstance(theirs, str) else theirs.to_str(pretty=True)
    return loaded_file("tokenizer.json", text.encode())


def loaded_file(name: str, data: bytes) -> bpe.Tokenizer:
    """Ours, of a file that lies alone in a folder."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, name)
        path.write_bytes(data)
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


MARK = "▁"
ATOMS = [
    *(" ", "  ", " " * 5, " " * 31, MARK, MARK * 3, "\t", "\n", "\u00a0", "\u3000", "\r\n"),
    *("a", "the", " the", "def ", "é", "e\u0301", "\u0301", "ß", "ﬁ", "日本", "漢", "и", "42"),
    *("😀", "👩\u200d👩\u200d👧", "\ufe0f", "\u0000", "\x7f", "\ufffd", "\U0010ffff", "self."),
    *("<unk>", "<s>", "</s>", "<s", "<0x0A>", "<0xE2>", "[INST]", "7"),
]


def marked_texts() -> st.SearchStrategy[str]:
    """Texts of spaces, of the marks that SentencePiece has for them, and of what has no token."""
    return st.lists(st.sampled_from(ATOMS), max_size=16).map("".join) | strings()


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
