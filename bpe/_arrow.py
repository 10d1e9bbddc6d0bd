"""Texts as Arrow arrays, and these as the core sees them, without a copy."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pyarrow as pa

from bpe._native import TextColumn
from bpe._text import utf8


def text_array(texts: Any) -> pa.Array | pa.ChunkedArray:
    """A column of texts as an Arrow array of a type that :func:`text_column` takes.

    Args:
        texts: an Arrow array of strings or binaries, also as views or a dictionary; what exports
            one (a Series of pandas or Polars); or an iterable of str, bytes and None.

    Raises:
        TypeError: it is none of these; the message names the value and its row.
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
