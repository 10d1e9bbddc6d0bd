"""Convert texts and token ids between Python, Arrow and the core; only casts copy a column."""

from __future__ import annotations

import operator
from array import array
from collections.abc import Iterable
from typing import Any, SupportsIndex

import pyarrow as pa
import pyarrow.compute as pc

from bpe._native import Buffer, TextColumn
from bpe.errors import EncodingError

# Types of columns of texts, with the bytes of an offset.
TEXT_TYPES = {pa.string(): 4, pa.binary(): 4, pa.large_string(): 8, pa.large_binary(): 8}


def utf8(text: str | bytes, *, what: str = "the text") -> bytes:
    """Return a str as UTF-8, bytes as they are.

    Raises:
        EncodingError: a str has a lone surrogate; the message begins with ``what``.
        TypeError: it is neither str nor bytes.
    """
    if isinstance(text, bytes):
        return text
    if not isinstance(text, str):
        raise TypeError(f"{what} is {text!r:.60}, not a str or bytes")
    try:
        return text.encode()
    except UnicodeEncodeError as error:
        raise EncodingError(
            f"{what} has a lone surrogate at character {error.start}: {text[error.start]!r} has no "
            "UTF-8; give bytes, or replace it first"
        ) from None


def text_array(texts: Any) -> pa.Array | pa.ChunkedArray:
    """Return a column of texts as an Arrow array of a type that :func:`text_column` takes.

    Args:
        texts: an Arrow array of strings or binaries, also as views or a dictionary; an object
            that exports one (a Series of pandas or Polars); or an iterable of str, bytes and None.

    Raises:
        TypeError: it is something else; the message names the value and its row.
        EncodingError: a str has a lone surrogate.
    """
    if isinstance(texts, (str, bytes)):
        raise TypeError(f"texts is a single text, {texts!r:.60}: give a list, [text]")
    if not isinstance(texts, (pa.Array, pa.ChunkedArray)):
        if hasattr(texts, "__arrow_c_stream__"):
            texts = pa.chunked_array(texts)
        elif hasattr(texts, "__arrow_c_array__"):
            texts = pa.array(texts)
        elif isinstance(texts, Iterable):
            rows = enumerate(texts)
            data = [None if text is None else utf8(text, what=f"text {row}") for row, text in rows]
            return pa.array(data, pa.large_binary())
        else:
            raise TypeError(
                f"texts is {texts!r:.60}: give a list of str, an Arrow array or a Series of strings"
            )
    kind = texts.type.value_type if pa.types.is_dictionary(texts.type) else texts.type
    if pa.types.is_string_view(kind):
        kind = pa.large_string()
    elif pa.types.is_binary_view(kind):
        kind = pa.large_binary()
    return texts if kind == texts.type else texts.cast(kind)


def text_column(array: pa.Array) -> TextColumn:
    """Return the rows of a text array for the core, which keeps its memory alive.

    Args:
        array: string, large_string, binary or large_binary, possibly a slice of a longer array.

    Raises:
        TypeError: the array is of another type.
        ValueError: it holds nulls; use ``fill_null`` first.
    """
    if array.type not in TEXT_TYPES:
        names = "string, large_string, binary or large_binary"
        raise TypeError(f"text must be {names}, not {array.type}; cast it first")
    if array.null_count:
        raise ValueError(f"{array.null_count} of {len(array)} texts are null; fill them first")
    _, offsets, data = array.buffers()
    return TextColumn(data or b"", offsets or b"", TEXT_TYPES[array.type], array.offset, len(array))


def to_stream(table: pa.Table, options: pa.ipc.IpcWriteOptions | None = None) -> pa.Buffer:
    """Return a table as a stream of Arrow IPC."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema, options=options) as writer:
        writer.write_table(table)
    return sink.getvalue()


def values_of(numbers: pa.Array) -> memoryview:
    """Return the bytes of an array of numbers without nulls, which may be a slice."""
    width = numbers.type.bit_width // 8
    values = memoryview(numbers.buffers()[1] or b"")
    return values[numbers.offset * width :][: len(numbers) * width]


def int64_array(numbers: Buffer) -> pa.Int64Array:
    """Return the int64 numbers of the core, which are not copied."""
    return pa.Array.from_buffers(pa.int64(), len(numbers) // 8, [None, pa.py_buffer(numbers)])


def binary_rows(
    data: Buffer, offsets: Buffer, *, nulls_of: pa.Array | None = None
) -> pa.LargeBinaryArray:
    """Rows of the core by their bytes and int64 offsets, which are not copied.

    They are null where those of another array are.
    """
    validity = None
    if nulls_of is not None and nulls_of.null_count:
        validity = nulls_of.is_valid().buffers()[1]
    buffers = [validity, pa.py_buffer(offsets), pa.py_buffer(data)]
    return pa.Array.from_buffers(pa.large_binary(), len(offsets) // 8 - 1, buffers)


def list_array(
    ids: Buffer, offsets: Buffer, *, id_type: pa.DataType, texts: pa.Array
) -> pa.ListArray:
    """Encoded rows as lists of ids, null where the text is null; the ids are not copied.

    Args:
        ids: of all rows.
        offsets: int64, rows + 1.
        id_type: of the ids, uint16 or uint32.
        texts: what was encoded.

    Raises:
        EncodingError: there are more ids than 32-bit offsets can count.
    """
    count = len(ids) // (id_type.bit_width // 8)
    try:
        narrow = int64_array(offsets).cast(pa.int32())
    except pa.ArrowInvalid as error:
        raise EncodingError(
            f"{count:,} tokens are more than one list array can hold (2^31 - 1): encode fewer "
            "texts at once"
        ) from error
    values = pa.Array.from_buffers(id_type, count, [None, pa.py_buffer(ids)])
    nulls = texts.is_null() if texts.null_count else None
    return pa.ListArray.from_arrays(narrow, values, mask=nulls)


def id_list(ids: Iterable[SupportsIndex]) -> list[int]:
    """Ids as ints, from a list, an array of numpy or Arrow, or a tensor.

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
    """Return an id as an int.

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
    return values_of(ids), array("q", [0]).tobytes() + values_of(ends)
