"""Files that are dropped into a folder one after the other, as crawls do it."""

from __future__ import annotations

import bz2
import gzip
import json
import os
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
from typing_extensions import Self

from pipelines.count.directory import read_counts_manifest
from pipelines.encode.manifest import read_encoded
from pipelines.output.state import inspect
from tests.cli.process import BPE, environment
from tests.pipelines.corpora import sentence

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from pathlib import Path

WAIT = 600.0  # seconds for what takes a moment on a quiet machine
SETTLE = 1.0  # seconds
FAST = ("--watch", "0.3", "--settle", str(SETTLE))
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


PORTIONS = (0.5, 0.85, 1.0)  # of the files; the second comes after the first kill, and so on


class Dropping:
    """Drops the files, in any order, while the block runs; all are there when it has ended.

    They come in portions: the next one is begun when `go_on` was called. A third of the files is
    written half under another name first, and renamed. Two are held from the beginning until the
    last portion: one that is half written under a temporary name, and one that grows under its own.

    Args:
        contents: of the files, by name.
        folder: where they are dropped.
        seconds: that it takes if nobody is waited for.
        settle: seconds in which the file that grows has to change.

    Attributes:
        held: the names of the two files: the one that is half written, and the one that grows.
    """

    def __init__(
        self, contents: Mapping[str, bytes], folder: Path, *, seconds: float, settle: float
    ) -> None:
        self._contents, self._folder, self._settle = contents, folder, settle
        self._pause = seconds / len(contents)
        self._dice = random.Random(1)
        plain = sorted(
            (name for name in contents if name.endswith(".jsonl")), key=lambda n: len(contents[n])
        )
        self.held = self._half, self._growing = plain[-2], plain[-1]
        self._longest = self._since = 0.0
        self._turns = [threading.Event() for _ in PORTIONS[1:]]
        self._held_on = threading.Event()
        self._threads = [threading.Thread(target=self._drop), threading.Thread(target=self._grow)]

    def __enter__(self) -> Self:
        self._folder.mkdir(parents=True, exist_ok=True)
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        for turn in self._turns:
            turn.set()
        for thread in self._threads:
            thread.join()

    def go_on(self, portion: int) -> None:
        """Let a portion begin; 0 is the first, which waits for nobody."""
        self._turns[portion - 1].set()

    def missing(self) -> set[str]:
        """The files that are not there in full yet."""
        there = {path.name: path for path in self._folder.iterdir()}
        return {
            name
            for name, data in self._contents.items()
            if name not in there or there[name].stat().st_size < len(data)
        }

    def grew(self) -> bool:
        """Return whether the growing file never rested so long that it might count as complete."""
        return max(self._longest, time.time() - self._since) < 0.9 * self._settle

    def _drop(self) -> None:
        try:
            self._drop_all()
        finally:
            self._held_on.set()

    def _drop_all(self) -> None:
        hidden = self._folder / f"{self._half}.tmp"
        hidden.write_bytes(self._contents[self._half][: len(self._contents[self._half]) // 2])
        names = sorted(set(self._contents) - set(self.held))
        self._dice.shuffle(names)
        first = 0
        for turn, share in zip([None, *self._turns], PORTIONS, strict=True):
            if turn is not None:
                turn.wait()
            last = round(share * len(names))
            for number in range(first, last):
                self._drop_one(number, names[number])
            first = last
        hidden.write_bytes(self._contents[self._half])
        hidden.rename(self._folder / self._half)

    def _drop_one(self, number: int, name: str) -> None:
        data, folder = self._contents[name], self._folder
        if number % 3 == 0:
            half = folder / (f".{name}" if number % 2 else f"{name}.tmp")
            half.write_bytes(data[: len(data) // 2])
            time.sleep(self._pause / 2)
            half.write_bytes(data)
            half.rename(folder / name)
        elif number % 3 == 1:  # under its own name from the beginning
            with (folder / name).open("wb") as file:
                file.write(data[: len(data) // 2])
                file.flush()
                time.sleep(min(0.2, self._pause))
                file.write(data[len(data) // 2 :])
        else:
            (folder / name).write_bytes(data)
        time.sleep(self._dice.random() * self._pause)

    def _grow(self) -> None:
        """A byte at a time; when one is left, it is the time of the file that changes."""
        data, path = self._contents[self._growing], self._folder / self._growing
        size = len(data) // 2
        self._since = time.time()
        with path.open("wb") as file:
            file.write(data[:size])
            file.flush()
            while not self._held_on.wait(self._settle / 10):
                before = time.time()
                if size < len(data) - 1:
                    file.write(data[size : size + 1])
                    file.flush()
                    size += 1
                else:
                    os.utime(path)
                self._longest = max(self._longest, time.time() - self._since)
                self._since = before
            file.write(data[size:])


@contextmanager
def running(
    *arguments: str, cwd: Path, program: list[str] = BPE
) -> Iterator[subprocess.Popen[str]]:
    """``bpe`` in a process of its own, which is gone after the block."""
    process = subprocess.Popen(
        [*program, *arguments],
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
    """The number of inputs in the manifest of a directory."""
    return len(taken_names(output))


def taken_names(output: Path) -> list[str]:
    """Their names."""
    if not (output / "manifest.json").exists():
        return []
    counts = inspect(str(output)).kind == "counts"
    manifest = read_counts_manifest(str(output)) if counts else read_encoded(str(output))
    return [one.name for one in manifest.inputs]
