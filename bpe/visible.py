"""Tokens as people can look at them: any bytes, in a known number of columns."""

from __future__ import annotations

import unicodedata2

SPACE = "␣"


def visible(data: bytes) -> str:
    r"""Bytes as printable text: a space as ␣, a byte that is no text by itself as \xNN."""
    return "".join(map(_character, data.decode("utf-8", "surrogateescape")))


def _character(char: str) -> str:
    if char == " ":
        return SPACE
    if "\udc80" <= char <= "\udcff":
        return f"\\x{ord(char) - 0xDC00:02x}"
    return char if char.isprintable() else repr(char)[1:-1]


def columns(text: str) -> int:
    """The columns of a terminal or a monospaced font that a text takes.

    Wide and fullwidth characters (Unicode Standard Annex 11) take two; combining marks and what
    only shapes others none.
    """
    return sum(map(_columns, text))


def _columns(char: str) -> int:
    if unicodedata2.category(char) in ("Mn", "Me", "Cf"):
        return 0
    return 2 if unicodedata2.east_asian_width(char) in ("W", "F") else 1
