"""What a watch does to its log from two sides at once, each time in the worst order."""

from __future__ import annotations

import threading
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from pipelines.count import directory
from pipelines.output.entries import (
    Entry,
    entry_ids,
    keyed_files,
    read_log,
    standing,
    write_entry,
)
from pipelines.watch import counting, folding, work
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
        entries = self.log().values()
        names = [one.name for entry in entries for one in entry.taken]
        assert sorted(names) == [f"{number:02}.txt" for number in range(FAN_IN)]
        assert keyed_files(self.out) == {file for entry in entries for file in entry.files}


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


def noted(counts: Sixteen) -> list[str]:
    """The files that changed after they were added up."""
    taken = standing((), read_log(counts.out)).taken
    return [one.name for one in taken.values() if one.outdated]


@pytest.mark.parametrize(
    ("module", "step"),
    [(counting, "added_up"), (directory, "combine"), (counting, "write_shard")],
)
@pytest.mark.parametrize("thread", [False, True])
def test_a_file_that_is_replaced_while_sets_are_added_up(
    counts: Sixteen, monkeypatch: pytest.MonkeyPatch, module: object, step: str, thread: bool
) -> None:
    """By a thread of this process or by another process: nobody waits for anybody."""
    threads: list[threading.Thread] = []
    change = in_a_thread(counts.change, threads) if thread else counts.change
    hook(monkeypatch, module, step, change)
    counts.fold()
    for started in threads:
        started.join()
    counts.fold()
    counts.fold()
    counts.check_each_file_is_counted_once()
    assert len(counts.log()) == 1
    assert not noted(counts)
    assert counts.documents() == FAN_IN


def test_sets_that_are_added_up_while_a_file_is_replaced(
    counts: Sixteen, monkeypatch: pytest.MonkeyPatch
) -> None:
    hook(monkeypatch, work, "write_entry", counts.fold)
    counts.change()
    assert counts.documents() == FAN_IN
    counts.fold()
    counts.check_each_file_is_counted_once()
    assert noted(counts) == ["03.txt"]


def test_a_file_that_changes_twice_after_it_was_added_up(counts: Sixteen) -> None:
    counts.fold()
    for text in ("once\n", "twice\n", "once\n"):
        counts.change(text)
        assert counts.documents() == FAN_IN
        counts.fold()
        counts.check_each_file_is_counted_once()
        assert len(noted(counts)) == 1
        assert len(entry_ids(counts.out)) == 2


class Killed(BaseException):
    """The process ends here."""


def killed(*_: object, **__: object) -> None:
    raise Killed


@pytest.mark.parametrize("step", ["remove_entry", "_remove", "write_entry"])
def test_whoever_removes_what_changed_is_killed(
    counts: Sixteen, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    counts.fold()
    counts.change("once\n")
    counts.change("twice\n")
    with monkeypatch.context() as patch:
        patch.setattr(folding, step, killed)
        with pytest.raises(Killed):
            counts.fold()
    assert counts.documents() == FAN_IN
    counts.clean()
    counts.check_each_file_is_counted_once()
    take_all(counts.work(None))
    counts.check_each_file_is_counted_once()
    assert len(noted(counts)) == 1


@pytest.mark.parametrize("replaced", [False, True])
def test_whoever_adds_up_is_killed_before_anything_is_removed(
    counts: Sixteen, monkeypatch: pytest.MonkeyPatch, replaced: bool
) -> None:
    with monkeypatch.context() as patch:
        if replaced:
            hook(patch, counting, "write_entry", counts.change)
        patch.setattr(folding, "_remove", killed)
        with pytest.raises(Killed):
            counts.fold()
    assert len(entry_ids(counts.out)) == FAN_IN + 1 + replaced
    assert counts.documents() == FAN_IN
    counts.clean()
    counts.check_each_file_is_counted_once()
    take_all(counts.work(None))
    counts.check_each_file_is_counted_once()
    assert len(noted(counts)) == replaced


@pytest.mark.parametrize("key", ["0" * 20, "f" * 20])
def test_an_entry_that_comes_long_after_its_file_was_added_up(counts: Sixteen, key: str) -> None:
    (late, *_) = read_log(counts.out).values()
    counts.fold()
    (taken,) = late.taken
    again = Entry(late.manifest, (replace(taken, key=key),))
    write_entry(counts.out, again)  # as of a bundle tried again
    assert again.id in read_log(counts.out)
    assert len(counts.log()) == 1
    assert counts.documents() == FAN_IN
    assert not noted(counts)
    counts.fold()
    assert again.id not in read_log(counts.out)
