"""Columns on demand that say where the documents of a packed row begin and end.

They follow from the column ``documents`` and the length of each row. Names and types are those of
FlashAttention (``cu_seqlens``, int32) and of Hugging Face's transformers (``position_ids``).
Padding counts as one more document, so that each id of a row belongs to one.
"""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

Numbers: TypeAlias = npt.NDArray[np.int64]
LIST = pa.list_(pa.int32())
PADDING = -1  # of `document_ids`


def numbered(counts: Numbers) -> tuple[Numbers, Numbers]:
    """Return, for ``counts`` copies of items, the item and the number of each copy, from 0.

    >>> [numbers.tolist() for numbers in numbered(np.array([2, 1]))]
    [[0, 0, 1], [0, 1, 0]]
    """
    of = np.repeat(np.arange(len(counts)), counts)
    begins = np.cumsum(counts) - counts
    return of, np.arange(len(of)) - begins[of]


def added_columns(
    names: tuple[str, ...], *, lengths: Numbers, bounds: Numbers, sizes: Numbers
) -> dict[str, pa.ListArray]:
    """Return the columns of these names, each of type `LIST`.

    Args:
        names: the names of columns, as in `pipelines.settings.AddedColumn`.
        lengths: ids of each piece of a document, over all rows.
        bounds: where among the pieces each row begins and the last one ends, from 0.
        sizes: ids of each row, padding included.
    """
    columns: dict[str, pa.ListArray] = {}
    if not names:
        return columns
    # The padding of a row, which may be empty, is one more segment after the row's pieces.
    rows, numbers = numbered(np.diff(bounds))
    padding = sizes - np.diff(np.append(0, np.cumsum(lengths))[bounds])
    rows = np.insert(rows, bounds[1:], np.arange(len(sizes)))
    numbers = np.insert(numbers, bounds[1:], PADDING)
    lengths = np.insert(lengths, bounds[1:], padding)
    if "document_ids" in names:
        columns["document_ids"] = _lists(np.repeat(numbers, lengths), sizes)
    if "position_ids" in names:
        columns["position_ids"] = _lists(numbered(lengths)[1], sizes)
    if "cu_seqlens" in names:
        filled = lengths > 0
        rows = rows[filled]
        ends = np.cumsum(lengths)[filled] - (np.cumsum(sizes) - sizes)[rows]
        counts = np.bincount(rows, minlength=len(sizes))
        first = np.cumsum(counts) - counts
        columns["cu_seqlens"] = _lists(np.insert(ends, first, 0), counts + 1)
    return columns


def _lists(values: Numbers, sizes: Numbers) -> pa.ListArray:
    offsets = pa.array(np.append(0, np.cumsum(sizes)), pa.int32())
    return pa.ListArray.from_arrays(offsets, pa.array(values, pa.int32()), type=LIST)
