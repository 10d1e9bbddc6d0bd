"""``litdata``: chunks for litdata's ``TokensLoader``, and their ``index.json``.

As ``litdata/streaming/item_loader.py`` reads them. A chunk, all little-endian: the number of items;
where each begins and the last one ends (all uint32); the items, here the ids of a row each.
``TokensLoader`` takes blocks of one size out of all ids of a chunk, whatever rows they are of.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import numpy as np

from pipelines import storage
from pipelines.errors import ConfigError
from pipelines.export.format import BLOCK_IDS, file_of, put, read_array, stem
from pipelines.export.rows import Rows
from pipelines.export.shards import RowStream, cut
from pipelines.output.names import EXPORT_INDEX, fingerprint
from pipelines.storage import join, replacing

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from pipelines.export.format import ExportJob, StoredPart
    from pipelines.export.manifest import ExportedFile, ExportedPart
    from pipelines.export.source import PartSource

_TYPES = {"uint16": "no_header_numpy:5", "uint32": "no_header_numpy:6"}
_ONE_LEAF = '[1, {"type": null, "context": null, "children_spec": []}]'  # an item is one array


class LitdataFormat:
    """Chunks of a size, as many a part as it needs."""

    def check(self, job: ExportJob, largest: int, total: int) -> None:
        """Every corpus can be represented."""

    def write(self, source: PartSource, job: ExportJob) -> tuple[ExportedFile, ...]:
        """Write the chunks of a part."""
        lengths = source.lengths()
        sizes = lengths * job.id_type.itemsize
        stream, files = RowStream(source.rows()), []
        for shard in cut(sizes, lengths, head=4, limit=job.settings.shard_size):
            name = f"{stem(source.part.file)}.{shard.number:05d}.bin"
            with replacing(join(job.directory, name)) as sink:
                put(sink, np.array([shard.rows], "<u4"))
                put(sink, shard.offsets.astype("<u4"))
                for rows in stream.take(shard.rows):
                    put(sink, rows.ids.astype(job.id_type, copy=False))
            files.append(file_of(name, sink.written(), rows=shard.rows, tokens=shard.tokens))
        return tuple(files)

    def read(self, stored: StoredPart, job: ExportJob) -> Iterator[Rows]:
        """The rows of a part."""
        size = job.id_type.itemsize
        for one in stored.files:
            with storage.open_binary(join(stored.directory, one.file)) as file:
                (rows,) = read_array(file, "<u4", 1).tolist()
                offsets = read_array(file, "<u4", rows + 1).astype(np.int64)
                found = (rows, int(offsets[0]), int(offsets[-1]), one.tokens * size)
                if found != (one.rows, file.tell(), one.bytes, int(offsets[-1] - offsets[0])):
                    raise ValueError(f"{one.file}: its offsets are wrong")
                yield Rows(ids=np.zeros(0, job.id_type), lengths=np.diff(offsets) // size)
                for first in range(0, one.tokens, BLOCK_IDS):
                    count = min(BLOCK_IDS, one.tokens - first)
                    yield Rows(ids=read_array(file, job.id_type, count), lengths=None)

    def join(self, parts: Sequence[ExportedPart], job: ExportJob) -> tuple[ExportedFile, ...]:  # noqa: ARG002 - of the protocol
        """Refused by the settings."""
        raise ConfigError("`one_file` goes with `to` bin or megatron, not litdata")

    def index(self, parts: Sequence[ExportedPart], job: ExportJob) -> dict[str, bytes]:
        """The list of chunks."""
        chunks = [
            {
                "chunk_bytes": one.bytes,
                "chunk_size": one.rows,
                "dim": one.tokens,
                "filename": one.file,
            }
            for part in parts
            for one in part.files
        ]
        config = {
            "chunk_bytes": job.settings.shard_size,
            "chunk_size": None,
            "compression": None,
            "data_format": [_TYPES[job.encoded.id_type]],
            "data_spec": _ONE_LEAF,
            "encryption": None,
            "item_loader": "TokensLoader",
        }
        # litdata keeps copies of chunks for as long as this text is the same.
        written = fingerprint([chunks, job.encoded.manifest_sha256])
        value = {"chunks": chunks, "config": config, "updated_at": written}
        return {EXPORT_INDEX: json.dumps(value, sort_keys=True).encode()}
