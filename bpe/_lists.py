"""Rows of token ids between Arrow and the core."""

from __future__ import annotations

import operator
from array import array
from collections.abc import Iterable
from typing import TYPE_CHECKING, SupportsIndex

import pyarrow as pa
import pyarrow.compute as pc

from bpe.errors import EncodingError

if TYPE_CHECKING:
    from bpe._native import Buffer


def list_array(ids: Buffer, offsets: Buffer, *, texts: pa.Array) -> pa.ListArray:
    """Encoded rows as ``list<uint32>``, null where the text is; the ids are not copied.

    Args:
        ids: uint32, of all rows.
        offsets: int64, rows + 1.
        texts: what was encoded.

    Raises:
        EncodingError: there are more ids than 32-bit offsets can count.
    """
    count = len(ids) // 4
    wide = pa.Array.from_buffers(pa.int64(), len(texts) + 1, [None, pa.py_buffer(offsets)])
    try:
        narrow = wide.cast(pa.int32())
    except pa.ArrowInvalid as error:
        raise EncodingError(
            f"{count:,} tokens are more than one list array can hold (2^31 - 1): encode fewer "
            "texts at once"
        ) from error
    values = pa.Array.from_buffers(pa.uint32(), count, [None, pa.py_buffer(ids)])
    return pa.Array.from_buffers(
        pa.list_(pa.uint32()),
        len(texts),
        [_validity(texts), narrow.buffers()[1]],
        children=[values],
    )


def id_list(ids: Iterable[SupportsIndex]) -> list[int]:
    """Ids as ints, whatever they come in: a list, an array of numpy or Arrow, a tensor.

    Raises:
        TypeError: one is not an integer; the message names it.
    """
    if isinstance(ids, pa.Array | pa.ChunkedArray):
        ids = ids.to_pylist()
    if not isinstance(ids, Iterable) or isinstance(ids, (str, bytes)):
        raise TypeError(f"ids is {ids!r:.60}: give a list of ids, such as [{ids!r:.20}]")
    values = list(ids)
    try:
        return list(map(operator.index, values))
    except TypeError:
        return [as_id(value) for value in values]  # names the one that is wrong


def as_id(value: SupportsIndex) -> int:
    """An id as an int.

    Raises:
        TypeError: it is not an integer.
    """
    try:
        return operator.index(value)
    except TypeError:
        raise TypeError(f"{value!r:.60} is not a token id: ids are integers") from None


def id_rows(lists: pa.Array) -> tuple[memoryview, bytes]:
    """Lists of ids as the core decodes them; null lists are empty rows.

    Returns:
        uint32 ids of all rows, and int64 offsets (rows + 1).

    Raises:
        EncodingError: an id is null, or cannot be one.
        TypeError: the array is not of lists of integers.
    """
    kind = lists.type
    is_list = pa.types.is_list(kind) or pa.types.is_large_list(kind)
    if not is_list or not pa.types.is_integer(kind.value_type):
        raise TypeError(f"ids must be lists of integers, not {kind}")
    values = lists.flatten()
    if values.null_count:
        raise EncodingError(f"{values.null_count} ids are null: no token has such an id")
    try:
        ids = values.cast(pa.uint32())
    except pa.ArrowInvalid as error:
        raise EncodingError(f"no token has such an id: {error}") from error
    ends = pc.cumulative_sum(pc.list_value_length(lists).fill_null(0).cast(pa.int64()))
    return _memory(ids, 4), array("q", [0]).tobytes() + _memory(ends, 8)


def binary_array(data: Buffer, offsets: Buffer, *, lists: pa.Array) -> pa.LargeBinaryArray:
    """Decoded rows, null where the list of ids is; the bytes are not copied."""
    return pa.Array.from_buffers(
        pa.large_binary(),
        len(lists),
        [_validity(lists), pa.py_buffer(offsets), pa.py_buffer(data)],
    )


def _validity(rows: pa.Array) -> pa.Buffer | None:
    return rows.is_valid().buffers()[1] if rows.null_count else None


def _memory(numbers: pa.Array, width: int) -> memoryview:
    """The values of an array without nulls, each of ``width`` bytes."""
    values = numbers.buffers()[1]
    return memoryview(values or b"")[numbers.offset * width :][: len(numbers) * width]
