"""Temporary files of a job: what its splits know of their documents, by destination.

A step writes one file for each split, and a later step reads what all of them have for one
destination, such as a part. A file is, front to back: the blobs (Arrow IPC, zstd), each of one
destination; the header (JSON); the entries (where the blobs are, by destination); the starts (where
the entries of each destination begin); and the tail. A reader seeks to the entries of its own
destination, without reading those of others.

Each document has a key of 64 bits. A reader may ask for a range of keys, to bound its memory.

No published container does both that and notice damage. Arrow's IPC files have no checksums: most
flipped bits of one read as other ids. Parquet's cover pages, not the footer, and every reader of
either reads the whole footer, here one entry for each destination in each of the splits.
"""

from __future__ import annotations

import contextlib
import io
import json
import struct
import zlib
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
import pyarrow as pa

from bpe._codec import decode, encode
from pipelines import storage
from pipelines.errors import InputError
from pipelines.output.names import parse_part
from pipelines.storage import join

if TYPE_CHECKING:
    from collections.abc import Iterator

    import numpy.typing as npt

    from pipelines.storage import HashingFile

RUN_BYTES = 64 << 20
KEY, FILE, PLACE = "key", "file", "place"  # columns of every such file
KEY_COLUMNS = (
    pa.field(KEY, pa.uint64()),
    pa.field(FILE, pa.int32()),
    pa.field(PLACE, pa.int64()),
)
HALF = 32  # bits of a key that choose a range
_ENTRY = np.dtype([("offset", "<u8"), ("size", "<u8"), ("memory", "<u8"), ("crc", "<u8")])
_TAIL = struct.Struct("<QQQ8s")  # offsets of header and entries, CRC of all from the header on
_MAGIC = b"bpe-shuf"
_Header = TypeVar("_Header")


class SpillWriter:
    """Writes a file: sorts what was added by destination whenever it grows too large.

    Args:
        sink: the file.
        schema: of the documents; its first columns are `KEY_COLUMNS`.
        destinations: how many there are.
        run_bytes: that are held.
    """

    def __init__(
        self, sink: HashingFile, schema: pa.Schema, destinations: int, *, run_bytes: int = RUN_BYTES
    ) -> None:
        self.schema = schema
        self._run_bytes = run_bytes
        self._sink = sink
        self._destinations = destinations
        self._entries: list[tuple[int, Any]] = []  # the destination, and a value of `_ENTRY`
        self._held: list[pa.RecordBatch] = []
        self._to: list[npt.NDArray[np.int64]] = []
        self._bytes = 0

    def add(self, documents: pa.RecordBatch, destinations: npt.NDArray[np.int64]) -> None:
        """Add documents, each with its destination."""
        self._held.append(documents)
        self._to.append(destinations)
        self._bytes += documents.nbytes
        if self._bytes >= self._run_bytes:
            self._flush()

    def _flush(self) -> None:
        if not self._held:
            return
        to = np.concatenate(self._to)
        order = np.argsort(to, kind="stable")
        table = pa.Table.from_batches(self._held, self.schema).take(pa.array(order))
        bounds = np.searchsorted(to[order], np.arange(self._destinations + 1))
        for destination in np.flatnonzero(np.diff(bounds)).tolist():
            first, end = int(bounds[destination]), int(bounds[destination + 1])
            some = table.slice(first, end - first)
            buffer = io.BytesIO()
            options = pa.ipc.IpcWriteOptions(compression="zstd")
            with pa.ipc.new_stream(buffer, self.schema, options=options) as stream:
                stream.write_table(some)
            blob = buffer.getvalue()
            entry = (self._sink.tell(), len(blob), some.nbytes, zlib.crc32(blob))
            self._entries.append((destination, entry))
            self._sink.write(blob)
        self._held, self._to, self._bytes = [], [], 0

    def finish(self, header: Any) -> None:
        """Write what is left, a dataclass, and what says where the blobs are."""
        self._flush()
        begin = self._sink.tell()
        stated = json.dumps(encode(header)).encode()
        ordered = sorted(self._entries, key=lambda one: one[0])
        to = np.array([destination for destination, _ in ordered], np.int64)
        starts = np.searchsorted(to, np.arange(self._destinations + 1)).astype("<u8").tobytes()
        entries = np.array([entry for _, entry in ordered], _ENTRY).tobytes()
        data = stated + entries + starts
        tail = _TAIL.pack(begin, begin + len(stated), zlib.crc32(data), _MAGIC)
        self._sink.write(data + tail)


def finished_header(path: str, kind: type[_Header], destinations: int) -> _Header | None:
    """The header of a file that an earlier run finished; None where it must be made again.

    Every byte of the file is read and compared with its checksum.

    Args:
        path: of the file.
        kind: the dataclass that the header is.
        destinations: how many there are.
    """
    try:
        with storage.open_binary(path) as source:
            end = source.seek(0, io.SEEK_END) - _TAIL.size
            begin, entries_at, crc, magic = _TAIL.unpack(_read(source, end, _TAIL.size))
            data = _read(source, begin, end - begin)
            starts_at = end - 8 * (destinations + 1)
            if magic != _MAGIC or zlib.crc32(data) != crc or not begin <= entries_at <= starts_at:
                return None
            for entry in np.frombuffer(data[entries_at - begin : starts_at - begin], _ENTRY):
                _blob(source, entry)
            return decode(kind, json.loads(data[: entries_at - begin]))
    except (InputError, ValueError, OSError):
        return None


def entries_of(path: str, destination: int, destinations: int) -> npt.NDArray[Any]:
    """Where in a file the blobs of a destination are; ``memory`` is their size when read.

    Raises:
        InputError: the file is missing or damaged.
    """
    with _opened(path) as source:
        end = source.seek(0, io.SEEK_END) - _TAIL.size
        _, entries_at, _, magic = _TAIL.unpack(_read(source, end, _TAIL.size))
        if magic != _MAGIC:
            raise ValueError("damaged")
        at = end - 8 * (destinations + 1 - destination)
        first, last = np.frombuffer(_read(source, at, 16), "<u8").tolist()
        size = (last - first) * _ENTRY.itemsize
        return np.frombuffer(_read(source, entries_at + first * _ENTRY.itemsize, size), _ENTRY)


def in_range(path: str, entries: npt.NDArray[Any], ranges: int, number: int) -> Iterator[pa.Table]:
    """The documents of blobs whose keys are in one of ``ranges`` equal ranges of all keys.

    Raises:
        InputError: the file is missing or damaged.
    """
    with _opened(path) as source:
        for entry in entries:
            table = pa.ipc.open_stream(_blob(source, entry)).read_all()
            inside = range_of(table[KEY].combine_chunks().to_numpy(), ranges) == number
            yield table if inside.all() else table.filter(pa.array(inside))


def range_of(keys: npt.NDArray[np.uint64], ranges: int) -> npt.NDArray[np.int64]:
    """In which of ``ranges`` equal ranges of all keys each key is."""
    found: npt.NDArray[np.uint64] = (keys >> np.uint64(HALF)) * np.uint64(ranges) >> np.uint64(HALF)
    return found.astype(np.int64)


def _blob(source: Any, entry: Any) -> bytes:
    data = _read(source, int(entry["offset"]), int(entry["size"]))
    if zlib.crc32(data) != int(entry["crc"]):
        raise ValueError("damaged")
    return data


def _read(source: Any, offset: int, size: int) -> bytes:
    if offset < 0 or size < 0:
        raise ValueError("damaged")
    source.seek(offset)
    data = bytes(source.read(size))
    if len(data) != size:
        raise ValueError("damaged")
    return data


@contextlib.contextmanager
def _opened(path: str) -> Iterator[Any]:
    """A file that another step has written."""
    try:
        with storage.open_binary(path) as source:
            yield source
    except (pa.ArrowException, ValueError, OSError) as error:
        said = " ".join(str(error).split())
        raise InputError(
            f"{path}, a temporary file of this job, cannot be read: {said}: run the job again with "
            "`resume`"
        ) from error


def remove_spilled(directory: str, folder: str, key: str = "") -> None:
    """Remove the files of a job below its output directory, and their folder if empty.

    Args:
        directory: of the output.
        folder: below it.
        key: of a verification; empty for the job that writes the parts.
    """
    path = join(directory, folder)
    for entry in storage.entries(path):
        name = parse_part(f"{folder}/{storage.is_temporary(entry.name) or entry.name}")
        if name is not None and name.key == key:
            storage.remove(join(path, entry.name))
    storage.remove_empty(path)
