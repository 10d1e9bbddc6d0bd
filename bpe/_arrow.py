"""Arrow arrays as the core sees them, without a copy."""

from __future__ import annotations

import pyarrow as pa

from bpe._native import TextColumn


def text_column(array: pa.Array) -> TextColumn:
    """The rows of a text array; its memory stays alive as long as the result.

    Args:
        array: string, large_string, binary or large_binary, possibly a slice of a longer array.

    Raises:
        TypeError: the array is of another type.
        ValueError: it holds nulls; the caller decides what they mean (``fill_null`` before).
    """
    kind = array.type
    if pa.types.is_string(kind) or pa.types.is_binary(kind):
        offset_width = 4
    elif pa.types.is_large_string(kind) or pa.types.is_large_binary(kind):
        offset_width = 8
    else:
        raise TypeError(
            f"text must be string, large_string, binary or large_binary, not {kind}; cast it first"
        )
    if array.null_count:
        raise ValueError(f"{array.null_count} of {len(array)} texts are null; fill them first")
    _, offsets, data = array.buffers()
    return TextColumn(data or b"", offsets or b"", offset_width, array.offset, len(array))


def int64_bytes(numbers: pa.Int64Array) -> memoryview:
    """The bytes of an int64 array without nulls, of a slice only its own."""
    data = numbers.buffers()[1]
    view = memoryview(data) if data is not None else memoryview(b"")
    return view[8 * numbers.offset : 8 * (numbers.offset + len(numbers))]
