"""Files of many samples behind a table of their offsets, as MDS and litdata have them.

The offsets come first, so the lengths of all rows are read before the rows themselves: a file is
written in one pass, whatever its size.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from pipelines.export.rows import Rows

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pipelines.encode.rows import Numbers


@dataclass(frozen=True, kw_only=True)
class Shard:
    """Rows that share a file.

    Attributes:
        number: of the file, within its part.
        rows: how many.
        tokens: ids in them.
        offsets: where in the file each begins, and the last one ends.
    """

    number: int
    rows: int
    tokens: int
    offsets: Numbers


def cut(sizes: Numbers, lengths: Numbers, *, head: int, limit: int) -> Iterator[Shard]:
    """Cut the rows of a part, which has ids, into files, each as large as it may be.

    Rows without ids share the file of others: no file is without ids. Offsets fit 32 bits: a row
    has at most `pipelines.settings.MAX_ROW_TOKENS` ids.

    Args:
        sizes: bytes of each row.
        lengths: ids in each row.
        head: bytes before the samples, beside 4 for the table and 4 for each sample.
        limit: bytes of a file; a row that is larger has a file of its own.
    """
    with_ids = np.flatnonzero(lengths)
    ends = np.cumsum(sizes + 4)  # with its entry in the table
    first = number = 0
    while first < len(sizes):
        before = int(ends[first - 1]) if first else 0
        after = int(np.searchsorted(ends, before + limit - head - 4, side="right"))
        needed = int(with_ids[np.searchsorted(with_ids, first)]) + 1
        after = max(after, needed)
        after = after if after <= with_ids[-1] else len(sizes)
        rows = after - first
        begin = head + 4 + 4 * rows
        offsets = begin + np.append(0, np.cumsum(sizes[first:after]))
        tokens = int(lengths[first:after].sum())
        yield Shard(number=number, rows=rows, tokens=tokens, offsets=offsets)
        first, number = after, number + 1


class RowStream:
    """Rows that come in portions of one size, taken in portions of another."""

    def __init__(self, portions: Iterator[Rows]) -> None:
        self._portions = portions
        self._left: Rows | None = None

    def take(self, rows: int) -> Iterator[Rows]:
        """The next ``rows`` rows.

        Raises:
            ValueError: there are fewer.
        """
        while rows:
            some = self._left if self._left is not None else next(self._portions, None)
            if some is None or some.lengths is None:
                raise ValueError("there are fewer rows than its footer says")
            count = min(rows, len(some.lengths))
            self._left = None if count == len(some.lengths) else _slice(some, count, None)
            yield _slice(some, 0, count)
            rows -= count


def _slice(rows: Rows, first: int, last: int | None) -> Rows:
    lengths = rows.lengths if rows.lengths is not None else np.zeros(0, np.int64)
    begin = int(lengths[:first].sum())
    chosen = lengths[first:last]
    return Rows(
        ids=rows.ids[begin : begin + int(chosen.sum())],
        lengths=chosen,
        begins=None if rows.begins is None else rows.begins[first:last],
        names=None if rows.names is None else rows.names[first:last],
    )
