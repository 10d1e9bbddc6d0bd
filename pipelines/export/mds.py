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

from pipelines.encode.rows import INPUT_IDS, flat
from pipelines.export.shards import ShardedPart, base_name

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt
    import pyarrow as pa

    from pipelines.encode.rows import Numbers
    from pipelines.export.manifest import ExportHeader
    from pipelines.export.rows import ExportLayout
    from pipelines.stage.record import StoredFile

_ONE_DIMENSION = 1 << 2


class MdsPart(ShardedPart):
    """The writer of shards, each of at most ``shard_size`` bytes if a row is no larger."""

    ending = "mds"

    @property
    def config(self) -> bytes:
        """Return the configuration in each shard, as JSON."""
        return _config(self.layout)

    def sizes(self, batch: pa.RecordBatch) -> Numbers:
        """Return the size in bytes of each sample."""
        lengths = np.diff(flat(batch.column(INPUT_IDS))[1])
        sizes: Numbers = 4 + 1 + _shape_bytes(lengths) + lengths * self.id_type.itemsize
        return sizes

    def samples(self, batch: pa.RecordBatch) -> npt.NDArray[np.uint8]:
        """Return the samples of all rows: the size of the column, then the column."""
        ids, offsets = flat(batch.column(INPUT_IDS))
        data = ids.astype(self.id_type, copy=False).tobytes()
        pieces: list[bytes] = []
        begin = 0
        for length in np.diff(offsets).tolist():
            end = begin + length * self.id_type.itemsize
            array = _shape(length) + data[begin:end]
            pieces += (len(array).to_bytes(4, "little"), array)
            begin = end
        return np.frombuffer(b"".join(pieces), np.uint8)


def mds_index(files: Sequence[StoredFile], header: ExportHeader) -> bytes:
    """Return the contents of ``index.json``, which lists the shards."""
    shards = [
        {
            **json.loads(_config(header)),
            "raw_data": {
                "basename": base_name(one),
                "bytes": one.bytes,
                "hashes": {"sha256": one.sha256},
            },
            "samples": one.rows,
            "zip_data": None,
        }
        for one in files
    ]
    return json.dumps({"shards": shards, "version": 2}, sort_keys=True).encode()


def _config(layout: ExportLayout) -> bytes:
    """Return the configuration in each shard and in the index, as JSON."""
    value = {
        "column_encodings": [f"ndarray:{layout.id_type}"],
        "column_names": [INPUT_IDS],
        "column_sizes": [None],
        "compression": None,
        "format": "mds",
        "hashes": ["sha256"],
        "size_limit": layout.settings.shard_size,
        "version": 2,
    }
    return json.dumps(value, sort_keys=True).encode()


def _shape_bytes(lengths: Numbers) -> Numbers:
    """Return the number of bytes that the size of each array takes."""
    return np.where(lengths < 1 << 8, 1, np.where(lengths < 1 << 16, 2, 4))


def _shape(length: int) -> bytes:
    code, size = (0, 1) if length < 1 << 8 else (1, 2) if length < 1 << 16 else (2, 4)
    return bytes([_ONE_DIMENSION | code]) + length.to_bytes(size, "little")
