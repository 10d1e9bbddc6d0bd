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
import pyarrow.compute as pc

from pipelines.encode.rows import INPUT_IDS, as_bytes
from pipelines.export.shards import ShardedPart, base_name

if TYPE_CHECKING:
    from collections.abc import Sequence

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

    def samples(self, batch: pa.RecordBatch) -> pa.LargeBinaryArray:
        """Return the samples of rows: the size of the column, then the column."""
        ids, kind = batch.column(INPUT_IDS), pa.large_binary()
        lengths, numbers = np.unique(pc.list_value_length(ids), return_inverse=True)
        size = ids.type.value_type.bit_width // 8
        heads = pa.array([_head(one, size) for one in lengths.tolist()], kind)
        nothing = pa.scalar(b"", kind)
        return pc.binary_join_element_wise(heads.take(pa.array(numbers)), as_bytes(ids), nothing)

    @staticmethod
    def index(files: Sequence[StoredFile], header: ExportHeader) -> bytes:
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


def _head(length: int, itemsize: int) -> bytes:
    """Return the bytes before the ids of a sample: the size of the column and of the array."""
    code, size = (0, 1) if length < 1 << 8 else (1, 2) if length < 1 << 16 else (2, 4)
    shape = bytes([_ONE_DIMENSION | code]) + length.to_bytes(size, "little")
    return (len(shape) + length * itemsize).to_bytes(4, "little") + shape
