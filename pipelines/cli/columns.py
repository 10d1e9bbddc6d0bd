"""Text in columns, as wide as a terminal draws it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click
from rich.cells import cell_len

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence


def lines(rows: Sequence[Sequence[str]], *, right: Collection[int] = ()) -> list[str]:
    """Return rows of cells as lines, two spaces apart; columns of ``right`` end at the right.

    Cells may have styles of `click.style`.
    """
    widths = [max(map(_width, column)) for column in zip(*rows, strict=True)]
    texts = []
    for row in rows:
        cells = []
        for number, (cell, width) in enumerate(zip(row, widths, strict=True)):
            space = " " * (width - _width(cell))
            cells.append(space + cell if number in right else cell + space)
        texts.append("  ".join(cells).rstrip())
    return texts


def _width(cell: str) -> int:
    return cell_len(click.unstyle(cell))
