"""The rows of the table: what is measured, by whom, and how good it must be."""

from __future__ import annotations

from typing import TYPE_CHECKING

from benchmarks.works import encode

if TYPE_CHECKING:
    from benchmarks.work import Scale, Work


def all_works(scale: Scale) -> list[Work]:
    """Every row, in the order of the table."""
    return [*encode.works(scale)]
