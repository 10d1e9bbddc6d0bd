"""Temporary files of blobs, each of which belongs to a segment, such as a bucket of a shuffle.

A file is, front to back: the blobs; the index; the tail. A reader seeks to the blobs of its
segment. Each blob and the index have a CRC: Arrow's own files have no checksums, and most flipped
bits of ids read as other ids.
"""

from __future__ import annotations

import io
import struct
import zlib
from typing import TYPE_CHECKING, Any

import numpy as np

from pipelines import storage
from pipelines.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pipelines.storage import HashingFile

_ENTRY = np.dtype([("segment", "<i8"), ("offset", "<u8"), ("size", "<u8"), ("crc", "<u8")])
_TAIL = struct.Struct("<QQ8s")  # offset and CRC of the index
_MAGIC = b"bpe-xchg"


class SpillWriter:
    """The writer of a file of blobs."""

    def __init__(self, sink: HashingFile) -> None:
        self._sink = sink
        self._entries: list[tuple[int, int, int, int]] = []

    def write(self, segment: int, blob: Any) -> None:
        """Append a blob, any buffer of bytes, to a segment."""
        size = memoryview(blob).nbytes
        self._entries.append((segment, self._sink.tell(), size, zlib.crc32(blob)))
        self._sink.write(blob)

    def finish(self) -> None:
        """Write the index and the tail."""
        index = np.array(self._entries, _ENTRY).tobytes()
        tail = _TAIL.pack(self._sink.tell(), zlib.crc32(index), _MAGIC)
        self._sink.write(index + tail)


def read_segment(path: str, segment: int) -> Iterator[bytes]:
    """Yield the blobs of a segment in a file, in the order in which they were written.

    Raises:
        InputError: the file is missing or damaged.
    """
    with storage.reading(path), storage.open_binary(path) as file:
        for entry in _index(file, path):
            if entry["segment"] != segment:
                continue
            file.seek(int(entry["offset"]))
            blob: bytes = file.read(int(entry["size"]))
            if zlib.crc32(blob) != entry["crc"]:
                raise _damaged(path)
            yield blob


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
