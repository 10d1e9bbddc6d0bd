"""Files that are dropped into a folder one after the other, as crawls do it."""

from __future__ import annotations

import bz2
import gzip
import json
import random
import subprocess
import threading
import time
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq
import zstandard

from pipelines.watch import log
from tests.cli.process import BPE, environment
from tests.pipelines.corpora import sentence

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from pathlib import Path

WAIT = 600.0  # seconds for what takes a moment on a quiet machine
FAST = ("--interval", "0.3", "--settle", "0.5")
MANY = ("--max-failures", "1000")


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

    @property
    def texts(self) -> dict[str, str]:
        """The good documents by id, of which there are no two."""
        assert len(dict(self.documents)) == len(self.documents)
        return dict(self.documents)


def make_drops(files: int, seed: int = 7) -> Drops:
    """Files of every format and compression; some with bad records, some that are none at all."""
    drops = Drops()
    for number in range(files):
        rows = [(f"{number}-{i}", sentence(seed + number * 31 + i, 20)) for i in range(number % 9)]
        lines = [json.dumps({"id": id_, "text": text, "n": number}) for id_, text in rows]
        if number % 7 == 3:  # a bad record among good ones
            lines.insert(len(lines) // 2, '{"text": ' if number % 2 else '{"text": 5}')
            drops.bad += 1
        data = "".join(line + "\n" for line in lines).encode()
        kind = number % 6
        name = f"f{number:03}.jsonl"
        if number % 20 == 11:  # nothing that can be read
            name, data, rows = f"f{number:03}.jsonl.gz", b"no gzip", []
            drops.bad += 1 - (number % 7 == 3)
        elif kind == 1:
            name, data = f"{name}.gz", gzip.compress(data)
        elif kind == 2:
            name, data = f"{name}.zst", zstandard.compress(data)
        elif kind == 3:
            name, data = f"{name}.bz2", bz2.compress(data)
        elif kind == 4 and number % 7 != 3:
            table = pa.table(
                {
                    "id": pa.array([id_ for id_, _ in rows], pa.string()),
                    "text": pa.array([text for _, text in rows], pa.string()),
                    "n": pa.array([number] * len(rows), pa.int64()),
                }
            )
            sink = pa.BufferOutputStream()
            pq.write_table(table, sink)
            name, data = f"f{number:03}.parquet", sink.getvalue().to_pybytes()
        drops.contents[name] = data
        drops.documents += rows
    return drops


def drop(contents: Mapping[str, bytes], folder: Path, *, seconds: float, seed: int = 1) -> None:
    """Write the files in any order over so many seconds; a third half first, then renamed."""
    dice = random.Random(seed)
    names = sorted(contents)
    dice.shuffle(names)
    for number, name in enumerate(names):
        data = contents[name]
        if number % 3 == 0:
            half = folder / (f".{name}" if number % 2 else f"{name}.tmp")
            half.write_bytes(data[: len(data) // 2])
            time.sleep(seconds / len(names) / 2)
            half.write_bytes(data)
            half.rename(folder / name)
        elif number % 3 == 1:  # under its own name from the beginning
            with (folder / name).open("wb") as file:
                file.write(data[: len(data) // 2])
                file.flush()
                time.sleep(min(0.2, seconds / len(names)))
                file.write(data[len(data) // 2 :])
        else:
            (folder / name).write_bytes(data)
        time.sleep(dice.random() * seconds / len(names))


@contextmanager
def dropping(contents: Mapping[str, bytes], folder: Path, *, seconds: float) -> Iterator[None]:
    """Drop the files while the block runs, and end when all are there."""
    folder.mkdir(parents=True, exist_ok=True)
    thread = threading.Thread(target=drop, args=(contents, folder), kwargs={"seconds": seconds})
    thread.start()
    try:
        yield
    finally:
        thread.join()


@contextmanager
def running(*arguments: str, cwd: Path) -> Iterator[subprocess.Popen[str]]:
    """``bpe`` in a process of its own, which is gone behind the block."""
    process = subprocess.Popen(
        [*BPE, *arguments],
        cwd=cwd,
        env=environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        yield process
    finally:
        if process.poll() is None:
            process.kill()
        process.communicate()


def wait_for(condition: Callable[[], bool], process: subprocess.Popen[str] | None) -> None:
    """Wait until the condition holds; fails where the process, if any, ends before."""
    end = time.monotonic() + WAIT
    while not condition():
        if process is not None and process.poll() is not None:
            out, err = process.communicate()
            raise AssertionError(f"ended with {process.returncode}: {out}{err}")
        assert time.monotonic() < end, "waited too long"
        time.sleep(0.05)


def taken(output: Path) -> int:
    """How many inputs a watched directory tells of."""
    if not (output / "manifest.json").exists():
        return 0
    if log.is_watched_counts(str(output)):
        return sum(len(entry["inputs"]) for entry in log.read_log(str(output)).values())
    return len(log.read_manifest(str(output))[log.WATCH])
