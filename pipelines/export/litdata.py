"""``litdata``: chunks for litdata's ``TokensLoader``, and their ``index.json``.

As ``litdata/streaming/item_loader.py`` reads them. A chunk, all little-endian: the number of items;
where each begins and the last one ends (all uint32); the items, here the ids of a row each.
``TokensLoader`` takes blocks of one size out of all ids of a chunk, whatever rows they are of.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from bpe.files import fingerprint
from pipelines.export.shards import ShardedPart, base_name

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pipelines.export.manifest import ExportHeader
    from pipelines.stage.record import StoredFile

_TYPES = {"uint16": "no_header_numpy:5", "uint32": "no_header_numpy:6"}
_ONE_LEAF = '[1, {"type": null, "context": null, "children_spec": []}]'  # an item is one array


class LitdataPart(ShardedPart):
    """The writer of chunks, each of at most ``shard_size`` bytes if a row is no larger."""

    ending = "bin"

    @staticmethod
    def index(files: Sequence[StoredFile], header: ExportHeader) -> bytes:
        """Return the contents of ``index.json``, which lists the chunks."""
        chunks = [
            {
                "chunk_bytes": one.bytes,
                "chunk_size": one.rows,
                "dim": one.tokens,
                "filename": base_name(one),
            }
            for one in files
        ]
        config = {
            "chunk_bytes": header.settings.shard_size,
            "chunk_size": None,
            "compression": None,
            "data_format": [_TYPES[header.id_type]],
            "data_spec": _ONE_LEAF,
            "encryption": None,
            "item_loader": "TokensLoader",
        }
        # litdata keeps copies of chunks for as long as this text is the same.
        updated = fingerprint([chunks, header.fingerprint])
        value = {"chunks": chunks, "config": config, "updated_at": updated}
        return json.dumps(value, sort_keys=True).encode()
