"""What a watch does to its log from two sides at once, each time in the worst order."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

import pytest

from bpe import Tokenizer
from pipelines.counting import count_job
from pipelines.documents import ReadOptions
from pipelines.encoding import encode_job, tokenizer_json
from pipelines.manifest import EncodedManifest
from pipelines.output import MANIFEST, json_bytes
from pipelines.reading import Reading
from pipelines.runners import Failures
from pipelines.settings import EncodeSettings, InputSettings, OutputSettings, PretokenSettings
from pipelines.storage import join
from pipelines.watch import counting, log
from pipelines.watch.arrivals import Arrivals, Place
from pipelines.watch.counting import FAN_IN, CountWatch, CountWork
from pipelines.watch.encoding import EncodeWatch, EncodeWork
from pipelines.watch.settings import WatchSettings
from tests.pipelines.corpora import small_tokenizer

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from pipelines.watch.work import Work

SOON = 2.0  # seconds for what may have to wait until we go on


class Counts:
    """As many files as are added up at once, counted into sets of their own."""

    def __init__(self, folder: Path) -> None:
        self.inputs, self.out = folder / "in", str(folder / "out")
        self.inputs.mkdir()
        self.job = count_job(
            PretokenSettings(),
            OutputSettings(directory=self.out),
            track_order=False,
            prune_below=1,
            shards=1,
        )
        (folder / "out").mkdir()
        counting.write_head(self.out, self.job)
        self.arrivals = arrivals_in(self.inputs, self.out)
        reading = Reading(directory=self.out, options=ReadOptions(), max_failures=0)
        self.work = CountWork(
            CountWatch(job=self.job, reading=reading, format="auto"),
            arrivals=self.arrivals,
            failures=Failures(),
            alone=True,
        )
        for number in range(FAN_IN):
            (self.inputs / f"{number:02}.txt").write_text(f"file {number}\n")
        take_all(self.work)

    def change(self, text: str = "it holds something else now\n") -> None:
        (self.inputs / "03.txt").write_text(text)
        take_all(self.work)

    def compact(self) -> None:
        counting.compact(self.out, self.job, {})

    def check_each_file_is_counted_once(self) -> None:
        entries = log.read_log(self.out)
        names = [
            source["name"]
            for entry in entries.values()
            if entry["set"] is not None
            for source in entry["inputs"]
        ]
        assert sorted(names) == [f"{number:02}.txt" for number in range(FAN_IN)]
        assert set(log.set_names(self.out)) == {e["set"] for e in entries.values() if e["set"]}


def arrivals_in(inputs: Path, out: str) -> Arrivals:
    settings = WatchSettings(settle=0.0)
    return Arrivals([Place.of(str(inputs))], output=out, settings=settings)


def take_all(work: Work) -> None:
    for file in work.arrivals.find():
        work.take(file)


@pytest.fixture
def counts(tmp_path: Path) -> Counts:
    return Counts(tmp_path)


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


def in_a_thread(what: Callable[[], None], threads: list[threading.Thread]) -> Callable[[], None]:
    """Start a thread, and give it time to end if nothing keeps it."""

    def start() -> None:
        threads.append(threading.Thread(target=what))
        threads[0].start()
        threads[0].join(SOON)

    return start


def no_lock(monkeypatch: pytest.MonkeyPatch) -> None:
    """As between two processes."""
    monkeypatch.setattr(log, "changing", lambda _: threading.RLock())


def test_a_file_that_changes_while_sets_are_added_up(
    counts: Counts, monkeypatch: pytest.MonkeyPatch
) -> None:
    threads: list[threading.Thread] = []
    hook(monkeypatch, counting, "combine", in_a_thread(counts.change, threads))
    counts.compact()
    threads[0].join()
    counts.check_each_file_is_counted_once()
    (noted,) = (one for one in log.read_log(counts.out).values() if one["failed"])
    assert noted["failed"].startswith("it was changed after it was counted")


@pytest.mark.parametrize("step", ["load_counts", "combine", "write_set"])
def test_a_file_that_another_process_replaces_while_sets_are_added_up(
    counts: Counts, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    no_lock(monkeypatch)
    hook(monkeypatch, counting, step, counts.change)
    counts.compact()
    counts.check_each_file_is_counted_once()
    assert len(log.read_log(counts.out)) == FAN_IN
    counts.compact()
    counts.check_each_file_is_counted_once()
    assert len(log.read_log(counts.out)) == 1


def test_sets_that_another_process_adds_up_while_a_file_is_replaced(
    counts: Counts, monkeypatch: pytest.MonkeyPatch
) -> None:
    no_lock(monkeypatch)
    hook(monkeypatch, log, "write_entry", counts.compact)
    counts.change()
    counts.check_each_file_is_counted_once()
    assert sum(one["failed"] is not None for one in log.read_log(counts.out).values()) == 1


def test_a_file_that_changes_twice_after_it_was_added_up(counts: Counts) -> None:
    counts.compact()
    for text in ("once\n", "twice\n", "once\n"):
        counts.change(text)
        counts.check_each_file_is_counted_once()
        entries = log.read_log(counts.out).values()
        assert sum(one["failed"] is not None for one in entries) == 1


def test_a_file_that_changes_while_its_entry_moves_to_the_manifest(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    inputs, out = tmp_path / "in", str(tmp_path / "out")
    inputs.mkdir()
    (tmp_path / "out").mkdir()
    (inputs / "a.txt").write_text("the quick brown fox\n")
    small_tokenizer(tmp_path / "tokenizer.json")
    loaded = Tokenizer.load(tmp_path / "tokenizer.json")
    job = encode_job(
        loaded,
        tokenizer_json(loaded, str(tmp_path / "tokenizer.json")),
        inputs=InputSettings(patterns=(str(inputs),)),
        output=OutputSettings(directory=out),
        encoding=EncodeSettings(),
        keep=(),
        parts=0,
    )
    empty = EncodedManifest.of(
        (),
        tokenizer_sha256=job.tokenizer_sha256,
        vocab_size=job.vocab_size,
        id_type=job.id_type,
        reading=job.reading.options,
        rows=job.rows,
    )
    (tmp_path / "out" / MANIFEST).write_bytes(json_bytes({**empty.to_json(), log.WATCH: []}))
    (tmp_path / "out" / "tokenizer.json").write_bytes((tmp_path / "tokenizer.json").read_bytes())
    work = EncodeWork(
        EncodeWatch(job=job, format="auto", split_size=None, baseline=None),
        arrivals=arrivals_in(inputs, out),
        failures=Failures(),
        alone=True,
        baseline=None,
    )
    take_all(work)

    def change() -> None:
        (inputs / "a.txt").write_text("the quick brown fox jumps\nover the lazy dog\n")
        take_all(work)

    threads: list[threading.Thread] = []
    hook(monkeypatch, log, "remove_entry", in_a_thread(change, threads))
    log.compact(out)
    threads[0].join()
    (entry,) = log.read_manifest(out)[log.WATCH]
    assert entry["revision"] == 1
    assert log.read_manifest(out)["totals"]["documents"] == 1
    for part in log.read_manifest(out)["parts"]:
        assert (tmp_path / join("out", part["file"])).exists()
