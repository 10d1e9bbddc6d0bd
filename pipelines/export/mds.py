"""``mds``: shards of MosaicML's StreamingDataset, of version 2, and their ``index.json``.

As ``streaming/base/format/mds`` reads them. A shard, all little-endian: the number of samples;
where each begins and the last one ends (all uint32); the configuration as JSON; the samples. A
sample: the size of each column (uint32), then the columns, by their names. ``ndarray:uint16`` is a
byte that says how many dimensions there are and in which type their sizes follow, these, and the
values.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from pipelines import storage
from pipelines.errors import ConfigError
from pipelines.export.format import file_of, put, read_array, read_exactly, stem
from pipelines.export.rows import Rows
from pipelines.export.shards import RowStream, cut
from pipelines.output.names import EXPORT_INDEX
from pipelines.storage import join, replacing

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from pipelines.encode.rows import Numbers
    from pipelines.export.format import ExportJob, StoredPart
    from pipelines.export.manifest import ExportedFile, ExportedPart
    from pipelines.export.source import PartSource

_COLUMN, _ID = "input_ids", "id"
_READ = 1 << 12  # samples at a time
_SIZES = 3  # types of the size of an array: 1, 2 and 4 bytes
_ONE_DIMENSION = 1 << 2


class MdsFormat:
    """Shards of a size, as many a part as it needs."""

    def check(self, job: ExportJob, largest: int, total: int) -> None:
        """Every corpus can be represented."""

    def write(self, source: PartSource, job: ExportJob) -> tuple[ExportedFile, ...]:
        """Write the shards of a part."""
        with_id, config = job.settings.with_id, _config(job)
        lengths = source.lengths()
        sizes = 4 + 1 + _shape_bytes(lengths) + lengths * job.id_type.itemsize
        if with_id:
            sizes = sizes + 4 + source.name_lengths()
        head = 4 + len(config)
        stream, files = RowStream(source.rows()), []
        for shard in cut(sizes, lengths, head=head, limit=job.settings.shard_size):
            name = f"{stem(source.part.file)}.{shard.number:05d}.mds"
            with replacing(join(job.directory, name)) as sink:
                put(sink, np.array([shard.rows], "<u4"))
                put(sink, shard.offsets.astype("<u4"))
                sink.write(config)
                for rows in stream.take(shard.rows):
                    sink.write(_samples(rows, job))
            files.append(file_of(name, sink.written(), rows=shard.rows, tokens=shard.tokens))
        return tuple(files)

    def read(self, stored: StoredPart, job: ExportJob) -> Iterator[Rows]:
        """The rows of a part."""
        config = _config(job)
        for one in stored.files:
            with storage.open_binary(join(stored.directory, one.file)) as file:
                (rows,) = read_array(file, "<u4", 1).tolist()
                offsets = read_array(file, "<u4", rows + 1).astype(np.int64)
                if rows != one.rows or offsets[-1] != one.bytes:
                    raise ValueError(f"{one.file}: its offsets are wrong")
                if read_exactly(file, len(config)) != config or offsets[0] != file.tell():
                    raise ValueError(f"{one.file}: its configuration is wrong")
                for first in range(0, rows, _READ):
                    some = offsets[first : first + _READ + 1]
                    yield _rows(read_exactly(file, int(some[-1] - some[0])), np.diff(some), job)

    def join(self, parts: Sequence[ExportedPart], job: ExportJob) -> tuple[ExportedFile, ...]:  # noqa: ARG002 - of the protocol
        """Refused by the settings."""
        raise ConfigError("`one_file` goes with `to` bin or megatron, not mds")

    def index(self, parts: Sequence[ExportedPart], job: ExportJob) -> dict[str, bytes]:
        """The list of shards."""
        config = json.loads(_config(job))
        shards = [
            {
                **config,
                "raw_data": {
                    "basename": one.file,
                    "bytes": one.bytes,
                    "hashes": {"sha256": one.sha256},
                },
                "samples": one.rows,
                "zip_data": None,
            }
            for part in parts
            for one in part.files
        ]
        value = {"shards": shards, "version": 2}
        return {EXPORT_INDEX: json.dumps(value, sort_keys=True).encode()}


def _config(job: ExportJob) -> bytes:
    """What each shard says of itself, and the index of each shard."""
    columns = [*([_ID] if job.settings.with_id else []), _COLUMN]
    encodings = {_ID: "str", _COLUMN: f"ndarray:{job.encoded.id_type}"}
    value = {
        "column_encodings": [encodings[name] for name in columns],
        "column_names": columns,
        "column_sizes": [None] * len(columns),
        "compression": None,
        "format": "mds",
        "hashes": ["sha256"],
        "size_limit": job.settings.shard_size,
        "version": 2,
    }
    return json.dumps(value, sort_keys=True).encode()


def _shape_bytes(lengths: Numbers) -> Numbers:
    """How many bytes the size of each array takes."""
    return np.where(lengths < 1 << 8, 1, np.where(lengths < 1 << 16, 2, 4))


def _samples(rows: Rows, job: ExportJob) -> bytes:
    assert rows.lengths is not None  # noqa: S101 - Parquet has borders
    data = rows.ids.astype(job.id_type, copy=False).tobytes()
    names = None if rows.names is None else [name.encode() for name in rows.names.to_pylist()]
    pieces: list[bytes] = []
    begin = 0
    for row, length in enumerate(rows.lengths.tolist()):
        end = begin + length * job.id_type.itemsize
        array = _shape(length) + data[begin:end]
        if names is None:
            pieces += (len(array).to_bytes(4, "little"), array)
        else:
            sizes = len(names[row]).to_bytes(4, "little") + len(array).to_bytes(4, "little")
            pieces += (sizes, names[row], array)
        begin = end
    return b"".join(pieces)


def _shape(length: int) -> bytes:
    code, size = (0, 1) if length < 1 << 8 else (1, 2) if length < 1 << 16 else (2, 4)
    return bytes([_ONE_DIMENSION | code]) + length.to_bytes(size, "little")


def _rows(data: bytes, sizes: Numbers, job: ExportJob) -> Rows:
    """The rows of samples, which lie one behind the other.

    Raises:
        ValueError: one contradicts itself.
    """
    with_id, arrays, names, lengths = job.settings.with_id, [], [], []
    begin = 0
    for size in sizes.tolist():
        sample = memoryview(data)[begin : begin + size]
        begin += size
        head = 8 if with_id else 4
        name = int.from_bytes(sample[:4], "little") if with_id else 0
        array = sample[head + name :]
        code = array[0] - _ONE_DIMENSION if len(array) else -1
        stated = int.from_bytes(sample[head - 4 : head], "little")
        if not 0 <= code < _SIZES or stated != len(array):
            raise ValueError("a sample is not one of ours")
        place = 1 + (1 << code)
        length = int.from_bytes(array[1:place], "little")
        if place + length * job.id_type.itemsize != len(array):
            raise ValueError("a sample has another size than it says")
        arrays.append(array[place:])
        lengths.append(length)
        names.append(bytes(sample[head : head + name]).decode())
    return Rows(
        ids=np.frombuffer(b"".join(arrays), job.id_type),
        lengths=np.array(lengths, np.int64),
        names=pa.array(names, pa.string()) if with_id else None,
    )
