"""Files that are dropped into a folder one after the other, as crawls do it."""

from __future__ import annotations

import json
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq

from pipelines.count.directory import read_counts
from pipelines.encode.manifest import read_encoded
from pipelines.output.state import complete
from tests.pipelines.corpora import sentence
from tests.pipelines.corpus_files import COMPRESSIONS, pack

if TYPE_CHECKING:
    from pathlib import Path

FILES = 60


@dataclass
class Drops:
    """Files to drop, each with what it holds.

    Attributes:
        contents: of the files, by name.
        documents: (id, text) of all good ones.
        bad: records, and files, that are none.
    """

    contents: dict[str, bytes] = field(default_factory=dict)
    documents: list[tuple[str, str]] = field(default_factory=list)
    bad: int = 0


def make_drops() -> Drops:
    """Files of every format and compression; some with bad records, some that are none at all."""
    drops = Drops()
    for number in range(FILES):
        name = f"f{number:03}.jsonl"
        if number % 20 == 11:  # nothing that can be read
            drops.contents[f"{name}.gz"] = b"no gzip"
            drops.bad += 1
            continue
        rows = [(f"{number}-{i}", sentence(number * 31 + i, 20)) for i in range(number % 9)]
        drops.documents += rows
        if number % 6 == 5:
            table = pa.Table.from_pylist([{"id": id_, "text": text} for id_, text in rows], _SCHEMA)
            sink = pa.BufferOutputStream()
            pq.write_table(table, sink)
            drops.contents[f"f{number:03}.parquet"] = sink.getvalue().to_pybytes()
            continue
        lines = [json.dumps({"id": id_, "text": text}) for id_, text in rows]
        if number % 7 == 3:  # a bad record among good ones
            lines.insert(len(lines) // 2, '{"text": ' if number % 2 else '{"text": 5}')
            drops.bad += 1
        compression = COMPRESSIONS[number % 6]
        suffix = "" if compression == "none" else f".{compression}"
        data = "".join(line + "\n" for line in lines).encode()
        drops.contents[name + suffix] = pack(data, compression)
    return drops


_SCHEMA = pa.schema({"id": pa.string(), "text": pa.string()})


def drop(folder: Path, name: str, data: bytes, how: int) -> None:
    """Let a file arrive in two halves: under its own name, or renamed to it when it is complete."""
    path = folder / (name, f"{name}.tmp", f".{name}")[how % 3]
    with path.open("wb") as file:
        file.write(data[: len(data) // 2])
        file.flush()
        time.sleep(0.05)
        file.write(data[len(data) // 2 :])
    path.rename(folder / name)


def taken(output: Path) -> int:
    """The number of inputs in the manifest of a directory."""
    if not (output / "manifest.json").exists():
        return 0
    counts = complete(str(output)).kind == "counts"
    manifest = read_counts(str(output)).manifest if counts else read_encoded(str(output))
    return len(manifest.inputs)
