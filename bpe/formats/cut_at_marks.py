"""Cuts before words in texts whose spaces are marks: words are cached, whole texts are not."""

from __future__ import annotations

import re
from dataclasses import replace

from bpe.models import CharacterLevel
from bpe.normalizer import MARK
from bpe.parts import Parts
from bpe.pretokenizer import Pretokenizer

WORDS = f"{MARK}+[^{MARK}]*"
"""The pattern of a pre-token: a run of marks and the characters up to the next mark."""

_MARK_INSIDE = re.compile(f"[^{MARK}]{MARK}")


def cut_at_marks(parts: Parts) -> Parts:
    """Return parts whose pre-tokenizer also cuts before runs of marks, if no ids change.

    No merge then makes a token in which a mark follows another character, so none crosses a cut.
    """
    cut = parts.pretokenizer
    if (
        cut.name != "none"
        or "mark-spaces" not in cut.normalizer
        or not isinstance(parts.model, CharacterLevel)
        or parts.ignore_merges
        or MARK.encode() not in parts.ids
    ):
        return parts
    for result in parts.merges.results:
        if _MARK_INSIDE.search(parts.tokens.bytes_of(result).decode()):
            return parts
    words = Pretokenizer(pattern=WORDS, normalizer=cut.normalizer)
    return replace(parts, pretokenizer=words)
