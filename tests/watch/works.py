"""What takes files, without a runner: as many as are wanted, as in several processes."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pyarrow.parquet as pq

from bpe import Tokenizer
from pipelines.corpus.documents import ReadOptions
from pipelines.corpus.reading import Reading
from pipelines.count.directory import load_counts, read_counts_manifest
from pipelines.count.steps import count_job
from pipelines.encode.steps import encode_job
from pipelines.encode.tokenizer_files import tokenizer_json
from pipelines.failures import Failures
from pipelines.output.names import PLAN
from pipelines.settings import (
    CountSettings,
    EncodeSettings,
    InputSettings,
    OutputSettings,
    PretokenSettings,
)
from pipelines.watch import counting, log
from pipelines.watch.arrivals import Arrivals, Place
from pipelines.watch.counting import CountTask
from pipelines.watch.encoding import EncodeTask, begin_encoded
from pipelines.watch.encoding import clean as clean_encoded
from pipelines.watch.settings import WatchSettings
from pipelines.watch.work import RUN
from tests.pipelines.corpora import small_tokenizer

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    import pytest

    from pipelines.watch.work import Task, Work

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
        self.task = self.begin(folder)

    def begin(self, folder: Path) -> Task:
        raise NotImplementedError

    def begin_run(self, run: str) -> None:
        (self.folder / PLAN).write_text(json.dumps({RUN: run}))

    def work(self, run: str | None = FIRST) -> Work:
        """One process; the only one where there is no run."""
        settings = WatchSettings(settle=0.0)
        arrivals = Arrivals([Place.of(str(self.inputs))], output=self.out, settings=settings)
        return self.task.work(arrivals, Failures(), run)

    def write(self, name: str, text: str) -> None:
        (self.inputs / name).write_text(text)

    def documents(self) -> int:
        """How many documents a reader finds now; fails where it finds what the log does not say."""
        raise NotImplementedError

    def compact(self) -> None:
        """Bring the log together, as the process that started the job does."""
        raise NotImplementedError

    def clean(self) -> None:
        """Clean up, as a later run does."""
        raise NotImplementedError

    def left(self) -> set[str]:
        """Parts or sets that nobody names."""
        raise NotImplementedError


class Encoding(Works):
    """Files that are encoded."""

    def begin(self, folder: Path) -> Task:
        path = folder / "tokenizer.json"
        small_tokenizer(path)
        loaded = Tokenizer.load(path)
        text = tokenizer_json(loaded, str(path))
        job = encode_job(
            loaded,
            text,
            inputs=InputSettings(patterns=(str(self.inputs),)),
            output=OutputSettings(directory=self.out),
            encoding=EncodeSettings(),
            keep=(),
            parts=0,
        )
        begin_encoded(job, text)
        return EncodeTask(
            job=job, directory=self.out, format="lines", max_failures=0, split_size=None
        )

    def documents(self) -> int:
        manifest = log.read_manifest(self.out)
        tables = [pq.read_table(self.folder / part["file"]) for part in manifest["parts"]]
        rows = sum(len(table) for table in tables)
        assert rows == manifest["totals"]["documents"]
        return rows

    def compact(self) -> None:
        log.compact(self.out)

    def clean(self) -> None:
        clean_encoded(self.out)

    def left(self) -> set[str]:
        named = {part["file"] for part in log.read_manifest(self.out)["parts"]}
        return {f"data/{path.name}" for path in self.folder.glob("data/train-*")} - named


class Counts(Works):
    """Files that are counted."""

    def begin(self, folder: Path) -> Task:
        output = OutputSettings(directory=self.out)
        self.job = count_job(PretokenSettings(), output, CountSettings(shards=1))
        counting.write_head(self.out, self.job)
        return CountTask(
            job=self.job,
            reading=Reading(directory=self.out, options=ReadOptions(), max_failures=0),
            directory=self.out,
            format="lines",
            max_failures=0,
            split_size=None,
        )

    def documents(self) -> int:
        manifest, counts = read_counts_manifest(self.out), load_counts(self.out)
        assert (manifest.totals, manifest.inputs) == (counts.totals, counts.inputs)
        return counts.totals.documents

    def compact(self) -> None:
        counting.fold(self.out, self.job, log.LogReader(self.out))

    def clean(self) -> None:
        counting.clean(self.out)

    def left(self) -> set[str]:
        named = {entry["set"] for entry in log.read_log(self.out).values()}
        return set(log.set_names(self.out)) - named


def take_all(work: Work) -> None:
    for file in work.arrivals.find():
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
