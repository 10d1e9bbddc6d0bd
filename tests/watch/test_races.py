"""What a watch does to its log from two sides at once, each time in the worst order."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

import pytest

from pipelines.watch import counting, log
from pipelines.watch.counting import FAN_IN
from tests.watch.works import Counts, hook, take_all

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

SOON = 2.0  # seconds for what may have to wait until we go on


class Sixteen(Counts):
    """As many files as are added up at once, counted into sets of their own."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.alone = self.work(None)
        for number in range(FAN_IN):
            self.write(f"{number:02}.txt", f"file {number}\n")
        take_all(self.alone)

    def change(self, text: str = "it holds something else now\n") -> None:
        self.write("03.txt", text)
        take_all(self.alone)

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


@pytest.fixture
def counts(tmp_path: Path) -> Sixteen:
    return Sixteen(tmp_path)


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
    counts: Sixteen, monkeypatch: pytest.MonkeyPatch
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
    counts: Sixteen, monkeypatch: pytest.MonkeyPatch, step: str
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
    counts: Sixteen, monkeypatch: pytest.MonkeyPatch
) -> None:
    no_lock(monkeypatch)
    hook(monkeypatch, log, "write_entry", counts.compact)
    counts.change()
    counts.check_each_file_is_counted_once()
    assert sum(one["failed"] is not None for one in log.read_log(counts.out).values()) == 1


def test_a_file_that_changes_twice_after_it_was_added_up(counts: Sixteen) -> None:
    counts.compact()
    for text in ("once\n", "twice\n", "once\n"):
        counts.change(text)
        counts.check_each_file_is_counted_once()
        entries = log.read_log(counts.out).values()
        assert sum(one["failed"] is not None for one in entries) == 1


class Killed(BaseException):
    """The process ends here."""


def killed(*_: object, **__: object) -> None:
    raise Killed


def test_a_worker_that_is_killed_before_it_withdraws_an_entry(
    counts: Sixteen, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        no_lock(patch)

        def meanwhile() -> None:
            counts.compact()
            patch.setattr(log, "remove_entry", killed)

        hook(patch, log, "write_entry", meanwhile)
        with pytest.raises(Killed):
            counts.change()
    assert len(log.entry_names(counts.out)) == 2
    assert counts.documents() == FAN_IN
    counts.clean()
    counts.check_each_file_is_counted_once()
    take_all(counts.work(None))
    counts.check_each_file_is_counted_once()
    (noted,) = (one for one in log.read_log(counts.out).values() if one["failed"])
    assert noted["failed"].startswith("it was changed after it was counted")


@pytest.mark.parametrize("replaced", [False, True])
def test_whoever_adds_up_is_killed_before_anything_is_removed(
    counts: Sixteen, monkeypatch: pytest.MonkeyPatch, replaced: bool
) -> None:
    with monkeypatch.context() as patch:
        no_lock(patch)
        if replaced:
            hook(patch, counting, "write_set", counts.change)
        patch.setattr(counting, "_is_replaced", killed)
        with pytest.raises(Killed):
            counts.compact()
    assert len(log.entry_names(counts.out)) == FAN_IN + 1
    assert counts.documents() == FAN_IN
    counts.clean()
    counts.check_each_file_is_counted_once()
    take_all(counts.work(None))
    counts.check_each_file_is_counted_once()


def test_an_entry_that_comes_long_after_its_file_was_added_up(counts: Sixteen) -> None:
    (id_, late), *_ = log.read_log(counts.out).items()
    counts.compact()
    log.write_entry(counts.out, "f" * 20, {**late, "key": "f" * 20})  # as of a bundle tried again
    assert id_ not in log.read_log(counts.out)
    assert len(log.read_log(counts.out)) == 1
    assert counts.documents() == FAN_IN
