"""Text in columns, as wide as a terminal draws it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import unicodedata2

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence


def lines(rows: Sequence[Sequence[str]], *, right: Collection[int] = ()) -> list[str]:
    """Return rows of cells as lines, two spaces apart; columns of ``right`` end at the right."""
    widths = [max(map(width_of, column)) for column in zip(*rows, strict=True)]
    texts = []
    for row in rows:
        cells = []
        for number, (cell, width) in enumerate(zip(row, widths, strict=True)):
            space = " " * (width - width_of(cell))
            cells.append(space + cell if number in right else cell + space)
        texts.append("  ".join(cells).rstrip())
    return texts


def width_of(text: str) -> int:
    """The columns that a text takes in a terminal or a monospaced font.

    Wide and fullwidth characters (Unicode Standard Annex 11) take two, combining marks and
    format characters none.
    """
    return sum(map(_width, text))


def _width(char: str) -> int:
    if unicodedata2.category(char) in ("Mn", "Me", "Cf"):
        return 0
    return 2 if unicodedata2.east_asian_width(char) in ("W", "F") else 1
