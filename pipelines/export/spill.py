"""Temporary files of documents on their way to their bucket of a shuffle.

A file is, front to back: blobs (an Arrow IPC stream each) of one segment each; the index; the tail.
A reader seeks to the blobs of its segment. Each blob and the index have a CRC: Arrow's own files
have no checksums, and most flipped bits of one read as other ids.
"""

from __future__ import annotations

import io
import struct
import zlib
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from bpe._arrow import to_stream
from pipelines import storage
from pipelines.errors import InputError

if TYPE_CHECKING:
    from pipelines.encode.rows import Numbers
    from pipelines.storage import HashingFile

RUN_BYTES = 64 << 20  # of documents that are held before they are sorted and written
_ENTRY = np.dtype([("segment", "<i8"), ("offset", "<u8"), ("size", "<u8"), ("crc", "<u8")])
_TAIL = struct.Struct("<QQ8s")  # offset and CRC of the index
_MAGIC = b"bpe-xchg"


class SpillWriter:
    """The writer of a file of documents, which sorts by segment all that fit into memory.

    Args:
        sink: the file.
        schema: the schema of the documents.
    """

    def __init__(self, sink: HashingFile, schema: pa.Schema) -> None:
        self._sink, self._schema = sink, schema
        self._held: list[pa.RecordBatch] = []
        self._segments: list[Numbers] = []
        self._bytes = 0
        self._entries: list[tuple[int, int, int, int]] = []

    def add(self, documents: pa.RecordBatch, segments: Numbers) -> None:
        """Append documents, each to the segment of its number."""
        if not len(documents):
            return
        self._held.append(documents)
        self._segments.append(segments)
        self._bytes += documents.nbytes
        if self._bytes >= RUN_BYTES:
            self._write()

    def _write(self) -> None:
        if not self._held:
            return
        table = pa.Table.from_batches(self._held, self._schema).combine_chunks()
        segments = np.concatenate(self._segments)
        self._held, self._segments, self._bytes = [], [], 0
        order = np.argsort(segments, kind="stable")
        ordered = segments[order]
        bounds = np.flatnonzero(np.diff(ordered, prepend=-1, append=-1))
        for begin, end in zip(bounds[:-1].tolist(), bounds[1:].tolist(), strict=True):
            blob = to_stream(table.take(pa.array(order[begin:end])))
            entry = (int(ordered[begin]), self._sink.tell(), blob.size, zlib.crc32(blob))
            self._entries.append(entry)
            self._sink.write(blob)

    def finish(self) -> None:
        """Write the documents in memory, the index and the tail."""
        self._write()
        index = np.array(self._entries, _ENTRY).tobytes()
        tail = _TAIL.pack(self._sink.tell(), zlib.crc32(index), _MAGIC)
        self._sink.write(index + tail)


def read_segment(path: str, segment: int) -> list[pa.Table]:
    """Return the documents of a segment in a file, in the order in which they were added.

    Raises:
        InputError: the file is missing or damaged.
    """
    with storage.reading(path), storage.open_binary(path) as file:
        found = []
        for entry in _index(file, path):
            if entry["segment"] != segment:
                continue
            file.seek(int(entry["offset"]))
            blob = file.read_buffer(int(entry["size"]))
            if zlib.crc32(blob) != entry["crc"]:
                raise _damaged(path)
            with pa.ipc.open_stream(blob) as stream:
                found.append(stream.read_all())
        return found


def _index(file: Any, path: str) -> Any:
    file.seek(0, io.SEEK_END)
    size = file.tell()
    if size < _TAIL.size:
        raise _damaged(path)
    file.seek(size - _TAIL.size)
    offset, crc, magic = _TAIL.unpack(file.read(_TAIL.size))
    if magic != _MAGIC or offset > size - _TAIL.size:
        raise _damaged(path)
    file.seek(offset)
    index = file.read(size - _TAIL.size - offset)
    if zlib.crc32(index) != crc:
        raise _damaged(path)
    return np.frombuffer(index, _ENTRY)


def _damaged(path: str) -> InputError:
    return InputError(f"{path}: damaged: run the job again with `resume`, which makes it again")
