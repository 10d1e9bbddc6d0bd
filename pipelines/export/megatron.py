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
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from pipelines import storage
from pipelines.errors import ConfigError
from pipelines.export.flat import append_file, read_ids
from pipelines.export.format import BLOCK_IDS, file_of, put, read_array, read_exactly, stem
from pipelines.export.rows import Rows
from pipelines.storage import join, replacing

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from pipelines.export.format import ExportJob, StoredPart
    from pipelines.export.manifest import ExportedFile, ExportedPart
    from pipelines.export.source import PartSource
    from pipelines.storage import HashingFile

_HEAD = struct.Struct("<9sQBQQ")
_MAGIC, _VERSION = b"MMIDIDX\x00\x00", 1
_TYPES = {"uint16": (8, "<u2"), "uint32": (4, "<i4")}  # in .idx, in .bin
_MAX_VOCABULARY = 1 << 31


class _Index(NamedTuple):
    """Where in an ``.idx`` its arrays begin, and how long they are."""

    sequences: int
    documents: int  # indices: one more than there are documents

    @property
    def lengths(self) -> int:
        return _HEAD.size

    @property
    def pointers(self) -> int:
        return self.lengths + 4 * self.sequences

    @property
    def indices(self) -> int:
        return self.pointers + 8 * self.sequences

    @property
    def size(self) -> int:
        return self.indices + 8 * self.documents


class MegatronFormat:
    """Two files a part, or two of all."""

    def check(self, job: ExportJob, largest: int, total: int) -> None:  # noqa: ARG002 - of the protocol
        """Refuse ids that Megatron's signed numbers of 32 bits do not hold."""
        vocab_size = job.encoded.vocab_size
        if job.encoded.id_type == "uint32" and vocab_size > _MAX_VOCABULARY:
            raise ConfigError(
                f"`to` megatron: ids are int32 there, and the greatest id of {job.source} may be "
                f"{vocab_size - 1:,}: use another format"
            )

    def write(self, source: PartSource, job: ExportJob) -> tuple[ExportedFile, ...]:
        """Write the files of a part."""
        part, (code, kind) = source.part, _TYPES[job.encoded.id_type]
        name = stem(part.file)
        lengths, firsts = [], []
        rows = 0
        with replacing(join(job.directory, f"{name}.bin")) as ids:
            for some in source.rows():
                put(ids, some.ids.astype(kind, copy=False))
                sizes = some.lengths if some.lengths is not None else np.zeros(0, np.int64)
                begins = np.ones(len(sizes), bool) if some.begins is None else some.begins
                lengths.append(sizes.astype("<i4"))
                firsts.append(np.flatnonzero(begins) + rows)
                rows += len(sizes)
        sizes = np.concatenate([np.zeros(0, "<i4"), *lengths])
        ends = np.cumsum(sizes, dtype="<i8") * np.dtype(kind).itemsize
        documents = np.concatenate([*firsts, np.array([rows])]).astype("<i8")
        with replacing(join(job.directory, f"{name}.idx")) as index:
            index.write(_HEAD.pack(_MAGIC, _VERSION, code, rows, len(documents)))
            put(index, sizes)
            put(index, ends - sizes.astype("<i8") * np.dtype(kind).itemsize)
            put(index, documents)
        return (
            file_of(f"{name}.bin", ids.written(), rows=rows, tokens=part.tokens),
            file_of(f"{name}.idx", index.written(), rows=rows, tokens=part.tokens),
        )

    def read(self, stored: StoredPart, job: ExportJob) -> Iterator[Rows]:
        """The rows of a part."""
        ids, idx = stored.files
        code, kind = _TYPES[job.encoded.id_type]
        with (
            storage.open_binary(join(stored.directory, ids.file)) as data,
            storage.open_binary(join(stored.directory, idx.file)) as index,
        ):
            at = _read_head(index, code)
            if (at.sequences, at.size) != (idx.rows, idx.bytes):
                raise ValueError(f"{idx.file} says {at.sequences} sequences, and has another size")
            start, rows = stored.tokens_before, stored.part.rows
            for first in range(0, rows, BLOCK_IDS):
                count, place = min(BLOCK_IDS, rows - first), stored.rows_before + first
                index.seek(at.lengths + 4 * place)
                lengths = read_array(index, "<i4", count).astype(np.int64)
                index.seek(at.pointers + 8 * place)
                begins = start + np.cumsum(lengths) - lengths
                if (read_array(index, "<i8", count) != begins * np.dtype(kind).itemsize).any():
                    raise ValueError(f"{idx.file}: the sequences do not lie one behind the other")
                start += int(lengths.sum())
                yield Rows(ids=np.zeros(0, job.id_type), lengths=lengths)
            data.seek(stored.tokens_before * np.dtype(kind).itemsize)
            yield from read_ids(data, np.dtype(kind), stored.part.tokens)

    def join(self, parts: Sequence[ExportedPart], job: ExportJob) -> tuple[ExportedFile, ...]:
        """Write the files of all parts; arrays are copied in blocks."""
        code, kind = _TYPES[job.encoded.id_type]
        pairs = [part.files for part in parts if part.files]
        rows, tokens = (sum(getattr(one, name) for one, _ in pairs) for name in ("rows", "tokens"))
        with replacing(join(job.directory, f"{job.joined}.bin")) as ids:
            for data, _ in pairs:
                append_file(ids, join(job.directory, data.file))
        opened = [_Shard.of(job, data, idx, code) for data, idx in pairs]
        documents = sum(one.at.documents - 1 for one in opened) + 1
        with replacing(join(job.directory, f"{job.joined}.idx")) as index:
            index.write(_HEAD.pack(_MAGIC, _VERSION, code, rows, documents))
            for shard in opened:
                shard.copy(index, "<i4", shard.at.lengths, shard.at.sequences)
            before = 0
            for shard in opened:
                shard.copy(index, "<i8", shard.at.pointers, shard.at.sequences, before)
                before += shard.tokens * np.dtype(kind).itemsize
            before = 0
            for shard in opened:  # the last index of each is the first of the next
                shard.copy(index, "<i8", shard.at.indices, shard.at.documents - 1, before)
                before += shard.at.sequences
            index.write(struct.pack("<q", rows))
        return (
            file_of(f"{job.joined}.bin", ids.written(), rows=rows, tokens=tokens),
            file_of(f"{job.joined}.idx", index.written(), rows=rows, tokens=tokens),
        )

    def index(self, parts: Sequence[ExportedPart], job: ExportJob) -> dict[str, bytes]:  # noqa: ARG002 - of the protocol
        """None: each ``.bin`` has an ``.idx`` of its own."""
        return {}


class _Shard(NamedTuple):
    """The index of a part, to be copied into that of all."""

    path: str
    at: _Index
    tokens: int

    @classmethod
    def of(cls, job: ExportJob, data: ExportedFile, idx: ExportedFile, code: int) -> _Shard:
        path = join(job.directory, idx.file)
        with storage.reading(path), storage.open_binary(path) as file:
            return cls(path, _read_head(file, code), data.tokens)

    def copy(
        self,
        sink: HashingFile,
        kind: str,
        place: int,
        count: int,
        added: int = 0,
    ) -> None:
        """Copy one of the arrays, with a number added to each of its numbers."""
        with storage.reading(self.path), storage.open_binary(self.path) as file:
            file.seek(place)
            for first in range(0, count, BLOCK_IDS):
                values = read_array(file, kind, min(BLOCK_IDS, count - first))
                put(sink, (values + added).astype(kind))


def _read_head(file: Any, code: int) -> _Index:
    magic, version, found, sequences, documents = _HEAD.unpack(read_exactly(file, _HEAD.size))
    if (magic, version, found) != (_MAGIC, _VERSION, code):
        raise ValueError("the header of its .idx is wrong")
    return _Index(sequences, documents)
