"""Rows of an encoded corpus, one for each document."""

from __future__ import annotations

import sys
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pipelines.settings import ParquetEncoding

Numbers: TypeAlias = npt.NDArray[np.int64]
Ids: TypeAlias = npt.NDArray[np.unsignedinteger]  # uint16 or uint32

ID, KEY, INPUT_IDS, NUM_TOKENS = "id", "key", "input_ids", "num_tokens"
OWN = (ID, KEY, INPUT_IDS, NUM_TOKENS)  # no column that passes through has such a name


def row_schema(
    id_type: str, encoding: ParquetEncoding, passthrough: Iterable[pa.Field] = ()
) -> pa.Schema:
    """Return the schema of a part, with the columns that pass through."""
    return pa.schema(
        [
            pa.field(ID, pa.string()),
            *passthrough,
            pa.field(KEY, pa.uint64()),
            pa.field(INPUT_IDS, list_type(id_type, encoding)),
            pa.field(NUM_TOKENS, pa.uint32()),
        ]
    )


def rows_of(
    schema: pa.Schema,
    *,
    ids: pa.StringArray,
    passthrough: Iterable[pa.Array],
    keys: pa.UInt64Array,
    input_ids: pa.ListArray,
) -> pa.RecordBatch:
    """Return the rows of a part, made of columns of equal length."""
    values, offsets = flat(input_ids)
    kind = schema.field(INPUT_IDS).type
    lists = lists_of(pa.array(values).cast(kind.value_type), offsets, kind)
    lengths = pa.array(np.diff(offsets), pa.uint32())
    return pa.record_batch([ids, *passthrough, keys, lists, lengths], schema=schema)


def list_type(id_type: str, encoding: ParquetEncoding) -> pa.DataType:
    """Return the type of the column ``input_ids``."""
    # Without levels of definition, ids are read 1.3 times as fast. Older readers want "plain".
    nullable = encoding == "plain"
    return pa.list_(pa.field("element", pa.type_for_alias(id_type), nullable=nullable))


def with_ends(lists: pa.ListArray, *, prepend: int | None, append: int | None) -> pa.ListArray:
    """Return the lists with an id put before and an id put after each; None puts no id.

    The ids keep their type, which must hold the added ids.

    >>> with_ends(pa.array([[5, 6], []], pa.list_(pa.uint32())), prepend=1, append=2).to_pylist()
    [[1, 5, 6, 2], [1, 2]]
    """
    if prepend is None and append is None:
        return lists
    width = lists.type.value_type.bit_width // 8
    before, after, nothing = (
        pa.scalar(b"" if id_ is None else id_.to_bytes(width, sys.byteorder), pa.large_binary())
        for id_ in (prepend, append, None)
    )
    joined = pc.binary_join_element_wise(before, as_bytes(lists), after, nothing)
    return as_lists(joined, lists.type)


def without_ends(lists: pa.ListArray, *, prepend: int | None, append: int | None) -> pa.ListArray:
    """Return the lists from which `with_ends` made ``lists``.

    Raises:
        ValueError: a list does not begin with ``prepend`` or end with ``append``.
    """
    added = (prepend is not None) + (append is not None)
    if not added or not len(lists):
        return lists
    values, bounds = flat(lists)
    of_texts = np.ones(len(values), bool)
    if (np.diff(bounds) < added).any():
        raise ValueError("a document is shorter than the tokens put at its ends")
    for id_, positions, what in (
        (prepend, bounds[:-1], "begin"),
        (append, bounds[1:] - 1, "end"),
    ):
        if id_ is not None:
            if (values[positions] != id_).any():
                raise ValueError(f"a document does not {what} with the id {id_}")
            of_texts[positions] = False
    offsets = pa.array(bounds - added * np.arange(len(bounds)), pa.int32())
    return pa.ListArray.from_arrays(offsets, pa.array(values[of_texts]))


def flat(lists: pa.ListArray) -> tuple[Ids, Numbers]:
    """Return the ids of all lists, and the offsets of the lists in these ids."""
    offsets = lists.offsets.to_numpy().astype(np.int64)
    return lists.flatten().to_numpy(), offsets - offsets[0]


def lists_of(values: pa.Array, offsets: Numbers, kind: pa.DataType) -> pa.ListArray:
    """Return the lists of the type ``kind`` from the values and offsets that `flat` returns."""
    return pa.ListArray.from_arrays(pa.array(offsets, pa.int32()), values, type=kind)


def as_bytes(lists: pa.ListArray) -> pa.LargeBinaryArray:
    """Return the ids of each list as bytes, over the same memory.

    Arrow takes and joins bytes at once, but lists id by id. `as_lists` is the inverse.
    """
    values, offsets = flat(lists)
    bounds = pa.py_buffer(offsets * values.itemsize)
    return pa.Array.from_buffers(
        pa.large_binary(), len(lists), [None, bounds, pa.py_buffer(values)]
    )


def as_lists(data: pa.LargeBinaryArray, kind: pa.DataType) -> pa.ListArray:
    """Return the lists of the type ``kind`` from the bytes of `as_bytes`, over the same memory."""
    _, bounds, values = data.buffers()
    offsets = np.frombuffer(bounds, np.int64)[data.offset : data.offset + len(data) + 1]
    ids = np.frombuffer(values or b"", np.uint8)[offsets[0] : offsets[-1]]
    ids = ids.view(str(kind.value_type))
    return lists_of(pa.array(ids), (offsets - offsets[0]) // ids.itemsize, kind)


@dataclass(frozen=True, kw_only=True)
class Sums:
    """Sums over some rows.

    Attributes:
        documents: the number of documents, which is the number of rows.
        tokens: the number of ids.
        unknown: the number of ids of the unknown token.
        text_bytes: the bytes of UTF-8 text that were encoded.
    """

    documents: int
    tokens: int
    unknown: int
    text_bytes: int

    @classmethod
    def of(cls, rows: pa.RecordBatch, *, text_bytes: int, unknown: int | None) -> Sums:
        """Return the sums over rows; ``unknown`` is the id of the unknown token, or None."""
        ids, _ = flat(rows.column(INPUT_IDS))
        return cls(
            documents=len(rows),
            tokens=len(ids),
            unknown=0 if unknown is None else int(np.count_nonzero(ids == unknown)),
            text_bytes=text_bytes,
        )

    def __add__(self, other: Sums) -> Sums:
        names = [one.name for one in fields(Sums)]  # a subclass has more
        return Sums(**{name: getattr(self, name) + getattr(other, name) for name in names})


NOTHING = Sums(documents=0, tokens=0, unknown=0, text_bytes=0)
