"""Readers of the formats of `bpe export`, from the descriptions of the formats alone."""

from __future__ import annotations

import hashlib
import itertools
import json
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from pathlib import Path

Values = list[int]


def flat_ids(path: Path, kind: str, header: int = 0) -> Values:
    """The ids of a ``.bin`` after a header of so many bytes."""
    ids: Values = np.memmap(path, dtype=kind, mode="r", offset=header).tolist()
    return ids


def megatron_rows(prefix: Path) -> tuple[list[Values], list[list[int]]]:
    """The sequences of a ``.bin`` with an ``.idx``, and which of them make each document."""
    index, data = (prefix.with_name(f"{prefix.name}.{end}") for end in ("idx", "bin"))
    raw = index.read_bytes()
    assert raw[:9] == b"MMIDIDX\x00\x00"
    assert int.from_bytes(raw[9:17], "little") == 1
    kind = {8: "<u2", 4: "<i4"}[raw[17]]
    sequences, documents = np.frombuffer(raw, "<u8", 2, 18).tolist()
    lengths = np.frombuffer(raw, "<i4", sequences, 34).tolist()
    pointers = np.frombuffer(raw, "<i8", sequences, 34 + 4 * sequences).tolist()
    borders = np.frombuffer(raw, "<i8", documents, 34 + 12 * sequences).tolist()
    assert len(raw) == 34 + 12 * sequences + 8 * documents
    ids = data.read_bytes()
    rows = [
        np.frombuffer(ids, kind, length, pointer).tolist()
        for length, pointer in zip(lengths, pointers, strict=True)
    ]
    assert (borders[0], borders[-1]) == (0, sequences)
    return rows, [list(range(*span)) for span in itertools.pairwise(borders)]


def _samples(data: bytes, config: bytes = b"") -> list[bytes]:
    """The samples of a file that begins with their number and their offsets."""
    count = int.from_bytes(data[:4], "little")
    offsets = np.frombuffer(data, "<u4", count + 1, 4).tolist()
    head = 4 * (count + 2)
    assert data[head : head + len(config)] == config
    assert (offsets[0], offsets[-1]) == (head + len(config), len(data))
    return [data[i:j] for i, j in itertools.pairwise(offsets)]


def mds_shards(folder: Path) -> list[tuple[str, list[Any]]]:
    """The name and the ids of the samples of each shard."""
    index = json.loads((folder / "index.json").read_bytes())
    assert index["version"] == 2
    return [
        (shard["raw_data"]["basename"], [row["input_ids"] for row in _mds_shard(folder, shard)])
        for shard in index["shards"]
    ]


def _mds_shard(folder: Path, shard: dict[str, Any]) -> list[dict[str, Any]]:
    info = shard["raw_data"]
    data = (folder / info["basename"]).read_bytes()
    assert len(data) == info["bytes"]
    assert info["hashes"] == {"sha256": hashlib.sha256(data).hexdigest()}
    own = {"raw_data", "samples", "zip_data"}
    config = {key: value for key, value in shard.items() if key not in own}
    samples = _samples(data, json.dumps(config, sort_keys=True).encode())
    assert len(samples) == shard["samples"]
    rows = []
    for sample in samples:
        names = shard["column_names"]
        assert names == sorted(names)
        sizes = np.frombuffer(sample, "<u4", len(names)).tolist()
        row, begin = {}, 4 * len(names)
        for name, kind, size in zip(names, shard["column_encodings"], sizes, strict=True):
            row[name] = _mds_value(kind, sample[begin : begin + size])
            begin += size
        assert begin == len(sample)
        rows.append(row)
    return rows


def _mds_value(kind: str, data: bytes) -> Values:
    dimensions, code = data[0] >> 2, data[0] % 4
    assert dimensions == 1
    width = 2**code
    size = int.from_bytes(data[1 : 1 + width], "little")
    values: Values = np.frombuffer(data[1 + width :], kind.removeprefix("ndarray:")).tolist()
    assert len(values) == size
    return values


def litdata_shards(folder: Path) -> list[tuple[str, list[Values]]]:
    """The name and the items of each chunk."""
    index = json.loads((folder / "index.json").read_bytes())
    config = index["config"]
    assert config["item_loader"] == "TokensLoader"
    kind = {"no_header_numpy:5": "<u2", "no_header_numpy:6": "<u4"}[config["data_format"][0]]
    shards = []
    for chunk in index["chunks"]:
        data = (folder / chunk["filename"]).read_bytes()
        items = [np.frombuffer(one, kind).tolist() for one in _samples(data)]
        assert (chunk["chunk_bytes"], chunk["chunk_size"]) == (len(data), len(items))
        assert chunk["dim"] == sum(map(len, items))
        shards.append((chunk["filename"], items))
    return shards
