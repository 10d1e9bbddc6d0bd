"""What takes files, without a runner: as many as are wanted, as in several processes."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pyarrow.parquet as pq

from bpe import Tokenizer
from pipelines.corpus.documents import ReadOptions
from pipelines.corpus.places import Places
from pipelines.corpus.reading import Reading
from pipelines.count.directory import load_counts, read_counts_manifest
from pipelines.count.steps import count_job
from pipelines.encode.manifest import read_encoded
from pipelines.encode.steps import encode_job
from pipelines.encode.tokenizer_files import files_of
from pipelines.failures import Failures
from pipelines.output.entries import keyed_files, read_folded, read_log, standing
from pipelines.output.names import PLAN, PROGRAM, RUN
from pipelines.settings import (
    CountSettings,
    EncodeSettings,
    OutputSettings,
    PretokenSettings,
    WatchSettings,
)
from pipelines.watch import counting, encoding
from pipelines.watch.folding import clean, fold
from pipelines.watch.work import Task, Work
from tests.pipelines.corpora import small_tokenizer

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    import pytest

    from pipelines.output.entries import Entry
    from pipelines.watch.work import Handler

FIRST = "first"  # run of a watch


class Works:
    """A watched directory, and what takes files into it.

    Attributes:
        inputs: the folder in which they appear.
        out: the directory.
        task: what is made of them.
    """

    def __init__(self, folder: Path) -> None:
        self.inputs, self.folder, self.out = folder / "in", folder / "out", str(folder / "out")
        self.inputs.mkdir()
        self.folder.mkdir()
        self.begin_run(FIRST)
        handler = self.begin(folder)
        handler.begin(goes_on=False)
        self.task = Task(
            handler=handler,
            places=Places.of([str(self.inputs)], output=self.out, format_="lines"),
            settings=WatchSettings(settle=0.0),
            run=FIRST,
            max_failures=0,
            split_size=None,
        )

    def begin(self, folder: Path) -> Handler:
        raise NotImplementedError

    def begin_run(self, run: str) -> None:
        (self.folder / PLAN).write_text(json.dumps({"program": PROGRAM, RUN: run}))

    def work(self, run: str | None = FIRST) -> Work:
        """One process; the only one where there is no run."""
        return Work(replace(self.task, run=run or FIRST), Failures(), alone=run is None)

    def write(self, name: str, text: str) -> None:
        (self.inputs / name).write_text(text)

    def documents(self) -> int:
        """How many documents a reader finds now; fails where it finds what the log does not say."""
        raise NotImplementedError

    def log(self) -> dict[str, Entry]:
        """The entries of the log that hold."""
        return standing(read_folded(self.out).taken, read_log(self.out)).entries

    def fold(self) -> None:
        """Bring the log together, as the process that started the job does."""
        fold(self.task.handler)

    def clean(self) -> None:
        """Clean up, as a later run does."""
        clean(self.task.handler)

    def left(self) -> set[str]:
        """Files that no entry names."""
        entries = [read_folded(self.out), *self.log().values()]
        return keyed_files(self.out).difference(*(entry.files for entry in entries))


class Encoding(Works):
    """Files that are encoded."""

    def begin(self, folder: Path) -> Handler:
        path = folder / "tokenizer.json"
        small_tokenizer(path)
        loaded = Tokenizer.load(path)
        files = files_of(loaded, str(path))
        job = encode_job(
            loaded,
            files["tokenizer.json"].decode(),
            reading=Reading(directory=self.out, options=ReadOptions()),
            encoding=EncodeSettings(),
            parts=0,
        )
        return encoding.Encoding(job=job, tokenizer=files)

    def documents(self) -> int:
        manifest = read_encoded(self.out)
        tables = [pq.read_table(self.folder / part.file) for part in manifest.parts]
        rows = sum(len(table) for table in tables)
        assert rows == manifest.totals.documents
        return rows


class Counts(Works):
    """Files that are counted."""

    def into_shards(self, shards: int) -> None:
        """Count large files, and what is added up, into so many."""
        handler: Any = self.task.handler
        handler = replace(handler, job=replace(handler.job, shards=shards))
        self.task = replace(self.task, handler=handler)

    def begin(self, folder: Path) -> Handler:
        output = OutputSettings(directory=self.out)
        job = count_job(PretokenSettings(), output, CountSettings(shards=1))
        reading = Reading(directory=self.out, options=ReadOptions(), max_failures=0)
        return counting.Counting(job=job, reading=reading)

    def documents(self) -> int:
        manifest, counts = read_counts_manifest(self.out), load_counts(self.out)
        assert (manifest.totals, manifest.inputs) == (counts.totals, counts.inputs)
        return counts.totals.documents


def take_all(work: Work) -> None:
    for file in work.places.find():
        work.take(file)


def hook(
    monkeypatch: pytest.MonkeyPatch, module: object, name: str, what: Callable[[], None]
) -> None:
    """Do something once, before a function is called for the first time."""
    function, left = getattr(module, name), [what]

    def hooked(*args: object, **kwargs: object) -> object:
        if left:
            left.pop()()
        return function(*args, **kwargs)

    monkeypatch.setattr(module, name, hooked)
