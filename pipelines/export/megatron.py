"""``megatron``: the ids in ``.bin``, and in ``.idx`` where each sequence and document begins.

As ``megatron/core/datasets/indexed_dataset.py`` reads them. The index, all little-endian: nine
bytes, ``MMIDIDX`` and two zeros; the version 1 in 8 bytes; the type of the ids in one byte (8 is
uint16, 4 is int32); the numbers of sequences and of document indices in 8 bytes each; the length of
each sequence (int32); where it begins in the ``.bin``, in bytes (int64); the sequence that each
document begins with, and at last the number of sequences (int64).

A row is a sequence. A document is one row, or all chunks of one document.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Any

import numpy as np

from pipelines.encode.rows import INPUT_IDS, flat
from pipelines.export.format import PartWriter
from pipelines.export.rows import CHUNK_INDEX

if TYPE_CHECKING:
    import pyarrow as pa

_HEAD = struct.Struct("<9sQBQQ")
_MAGIC, _VERSION = b"MMIDIDX\x00\x00", 1
_TYPES = {"uint16": (8, "<u2"), "uint32": (4, "<i4")}  # in .idx, in .bin


class MegatronPart(PartWriter):
    """The writer of ``megatron``: two files a part."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._code, self._kind = _TYPES[self.layout.id_type]
        self._sink = self.one_file("bin")
        self._lengths = [np.zeros(0, "<i4")]
        self._firsts: list[Any] = []

    def add(self, batch: pa.RecordBatch) -> None:
        """Append rows."""
        ids, offsets = flat(batch.column(INPUT_IDS))
        first = np.arange(len(batch))  # rows that begin a document: a later chunk does not
        if CHUNK_INDEX in batch.schema.names:
            first = np.flatnonzero(batch.column(CHUNK_INDEX).to_numpy() == 0)
        self._sink.write(ids.astype(self._kind, copy=False).data)
        self._lengths.append(np.diff(offsets).astype("<i4"))
        self._firsts.append(first + self.rows)
        self.rows += len(batch)
        self.tokens += len(ids)

    def finish(self) -> None:
        """Write the index."""
        self.close("bin", self._sink)
        lengths = np.concatenate(self._lengths)
        bounds = np.append(0, np.cumsum(lengths, dtype="<i8")) * np.dtype(self._kind).itemsize
        documents = np.concatenate([*self._firsts, [self.rows]]).astype("<i8")
        index = self.one_file("idx")
        index.write(_HEAD.pack(_MAGIC, _VERSION, self._code, self.rows, len(documents)))
        for values in (lengths, bounds[:-1], documents):
            index.write(values.data)
        self.close("idx", index)
