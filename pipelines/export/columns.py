"""Columns on demand that say where the documents of a packed row begin and end.

They follow from the column ``documents`` and the length of each row. Names and types are those of
FlashAttention (``cu_seqlens``, int32) and of Hugging Face's transformers (``position_ids``).
Padding counts as one more document, so that each id of a row belongs to one.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

if TYPE_CHECKING:
    from collections.abc import Callable

Numbers: TypeAlias = npt.NDArray[np.int64]
LIST = pa.list_(pa.int32())
PADDING = -1  # of `document_ids`


@dataclass(frozen=True, kw_only=True)
class _Segments:
    """The pieces of packed rows, and the padding of each row, which may be empty.

    Attributes:
        rows: the row of each segment.
        numbers: its place in the column ``documents`` of the row; `PADDING` for padding.
        lengths: ids of each.
        sizes: ids of each row, padding included.
    """

    rows: Numbers
    numbers: Numbers
    lengths: Numbers
    sizes: Numbers

    @classmethod
    def of(cls, lengths: Numbers, bounds: Numbers, sizes: Numbers) -> _Segments:
        """Return the segments of rows; the arguments are those of `added_columns`."""
        counts = np.diff(bounds)
        ends = np.append(0, np.cumsum(lengths))[bounds]
        at = np.cumsum(counts)  # where among the pieces the padding of each row goes
        numbers = np.arange(len(lengths)) - np.repeat(bounds[:-1], counts)
        rows = np.arange(len(sizes))
        return cls(
            rows=np.insert(np.repeat(rows, counts), at, rows),
            numbers=np.insert(numbers, at, PADDING),
            lengths=np.insert(lengths, at, sizes - np.diff(ends)),
            sizes=sizes,
        )

    def document_ids(self) -> pa.ListArray:
        """Return, for each id, the number of its document in the row, from 0."""
        return _lists(np.repeat(self.numbers, self.lengths), self.sizes)

    def position_ids(self) -> pa.ListArray:
        """Return, for each id, its position in the row's piece of its document, from 0."""
        begins = np.cumsum(self.lengths) - self.lengths
        positions = np.arange(self.sizes.sum()) - np.repeat(begins, self.lengths)
        return _lists(positions, self.sizes)

    def cu_seqlens(self) -> pa.ListArray:
        """Return the positions at which non-empty pieces begin in each row, then its length."""
        filled = self.lengths > 0
        rows = self.rows[filled]
        ends = np.cumsum(self.lengths)[filled] - (np.cumsum(self.sizes) - self.sizes)[rows]
        counts = np.bincount(rows, minlength=len(self.sizes))
        first = np.cumsum(counts) - counts
        return _lists(np.insert(ends, first, 0), counts + 1)


ADDED: dict[str, Callable[[_Segments], pa.ListArray]] = {
    "document_ids": _Segments.document_ids,
    "position_ids": _Segments.position_ids,
    "cu_seqlens": _Segments.cu_seqlens,
}


def added_columns(
    names: tuple[str, ...], *, lengths: Numbers, bounds: Numbers, sizes: Numbers
) -> dict[str, pa.ListArray]:
    """Return the columns of these names, each of type `LIST`.

    Args:
        names: keys of `ADDED`.
        lengths: ids of each piece of a document, over all rows.
        bounds: where among the pieces each row begins and the last one ends, from 0.
        sizes: ids of each row, padding included.
    """
    if not names:
        return {}
    segments = _Segments.of(lengths, bounds, sizes)
    return {name: ADDED[name](segments) for name in names}


def _lists(values: Numbers, sizes: Numbers) -> pa.ListArray:
    offsets = pa.array(np.append(0, np.cumsum(sizes)), pa.int32())
    return pa.ListArray.from_arrays(offsets, pa.array(values, pa.int32()), type=LIST)
