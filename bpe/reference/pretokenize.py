"""Pre-tokenizers by their definition: the matches of a regular expression, nothing else.

Slow and obvious: what the scanners of the core are compared with. The package ``regex`` may know
a newer Unicode than they do, so newly assigned characters can differ.
"""

from __future__ import annotations

import regex

from bpe.pretokenize import PATTERNS


def split(name: str, text: bytes) -> list[bytes]:
    """The pieces of a text.

    Args:
        name: a pre-tokenizer's name.
        text: any bytes; a byte that is not part of well-formed UTF-8 becomes a lone surrogate,
            which is neither letter, number, mark nor space.
    """
    if name == "none":
        return [text] if text else []
    characters = text.decode("utf-8", "surrogateescape")
    pieces = regex.findall(PATTERNS[name], characters)
    return [piece.encode("utf-8", "surrogateescape") for piece in pieces]
