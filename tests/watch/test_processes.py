"""Several processes that take files into one directory, as workers of a cluster do."""

from __future__ import annotations

import os
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from pipelines import storage
from pipelines.errors import OutputError, RecordError
from pipelines.output import entries
from pipelines.output.entries import Entry, entry_ids, read_entry, read_folded, read_log
from pipelines.progress import NoProgress
from pipelines.watch import folding, work
from pipelines.watch.keeper import Keeper
from tests.watch.works import Counts, Encoding, Works, hook, take_all

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture(params=[Encoding, Counts], ids=["encode", "count"])
def works(request: pytest.FixtureRequest, tmp_path: Path) -> Works:
    kind: type[Works] = request.param
    made = kind(tmp_path)
    made.write("a.txt", "the quick\nbrown fox\n")
    return made


class Reads:
    """How often files were read in full."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.paths: list[str] = []
        digest = storage.digest

        def read(path: str) -> storage.Written:
            self.paths.append(os.path.basename(path))  # noqa: PTH119 - a path of any filesystem
            return digest(path)

        monkeypatch.setattr(storage, "digest", read)

    def of(self, name: str) -> int:
        return self.paths.count(name)


@pytest.mark.parametrize("moved", [False, True])
def test_what_another_process_has_taken_is_not_read(
    works: Works, monkeypatch: pytest.MonkeyPatch, moved: bool
) -> None:
    first, second = works.work(), works.work()
    reads = Reads(monkeypatch)
    take_all(first)
    assert reads.of("a.txt") == 1
    if moved:
        works.fold()
    (file,) = second.places.find()
    assert not second.take(file)
    assert not second.is_wanted(file)
    assert reads.of("a.txt") == 1
    assert works.documents() == 2


def test_a_file_whose_time_alone_changes_is_read_once_in_a_process(
    works: Works, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second = works.work(), works.work()
    take_all(first)
    os.utime(works.inputs / "a.txt", (1000, 1000))
    reads = Reads(monkeypatch)
    for times in (1, 2):
        for one in (first, second):
            take_all(one)
        assert reads.of("a.txt") == 2, times
    assert works.documents() == 2


def test_an_attempt_that_is_dropped_takes_nothing_of_others_with_it(works: Works) -> None:
    first, second = works.work(), works.work()
    (file,) = first.places.find()
    make = second.make

    def slowly(*args: object) -> object:
        made = make(*args)  # type: ignore[arg-type]
        assert first.take(file)
        works.write("a.txt", "it holds something else by now\n")
        return made

    second.make = slowly  # type: ignore[assignment,method-assign]
    assert not second.take(file)
    assert works.documents() == 2
    assert not works.left()
    take_all(first)
    works.fold()
    assert works.documents() == 1
    assert not works.left()


def test_whoever_comes_second_keeps_what_is_there(works: Works) -> None:
    first, second = works.work(), works.work()
    (file,) = first.places.find()
    make = second.make

    def slowly(*args: object) -> object:
        made = make(*args)  # type: ignore[arg-type]
        assert first.take(file)
        return made

    second.make = slowly  # type: ignore[assignment,method-assign]
    assert not second.take(file)
    assert len(entry_ids(works.out)) == 1
    assert works.documents() == 2
    assert not works.left()


def test_two_that_write_their_entries_at_once_count_as_one(
    works: Works, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second = works.work(), works.work()
    (file,) = first.places.find()
    hook(monkeypatch, work, "write_entry", lambda: take_all(first))
    assert second.take(file)
    assert len(entry_ids(works.out)) == 2
    assert works.documents() == 2
    works.fold()
    assert works.documents() == 2
    works.clean()
    assert works.documents() == 2
    assert not works.left()
    works.write("a.txt", "it holds something else by now\n")
    take_all(works.work())
    works.fold()
    assert works.documents() == 1


def test_a_job_that_lost_its_command_ends_when_the_next_one_begins(works: Works) -> None:
    lost = works.work()
    works.begin_run("second")
    with pytest.raises(OutputError, match="another job has been started there"):
        take_all(lost)
    assert not entry_ids(works.out)
    assert not works.left()
    take_all(works.work("second"))
    assert works.documents() == 2


def test_a_command_that_lost_its_directory_folds_nothing(works: Works) -> None:
    keeper = Keeper(works.task, NoProgress())
    keeper.begin()
    take_all(works.work())
    before = read_folded(works.out), read_log(works.out)
    works.begin_run("second")
    with pytest.raises(OutputError, match="another job has been started there"):
        keeper.look(last=True)
    assert (read_folded(works.out), read_log(works.out)) == before


def test_bad_records_that_come_at_the_last_moment_are_too_many(works: Works) -> None:
    """No process has too many; all of them together have."""
    keeper = Keeper(works.task, NoProgress())
    keeper.begin()
    take_all(works.work())
    (entry,) = read_log(works.out).values()
    entries.write_entry(works.out, Entry(entry.manifest, (replace(entry.taken[0], bad=1),)))
    with pytest.raises(RecordError, match="1 bad record"):
        keeper.look(last=True)


def test_an_entry_that_comes_while_the_next_run_cleans_up(
    works: Works, monkeypatch: pytest.MonkeyPatch
) -> None:
    lost = works.work()
    make = lost.make

    def slowly(*args: object) -> object:
        made = make(*args)  # type: ignore[arg-type]
        works.begin_run("second")
        works.clean()
        return made

    lost.make = slowly  # type: ignore[assignment,method-assign]
    lost.look = lambda: None  # type: ignore[method-assign]  # it has just looked
    take_all(lost)
    works.clean()
    take_all(works.work("second"))
    assert works.documents() == 2
    assert not works.left()


def test_a_reader_while_entries_move_sees_each_once(
    works: Works, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(20):
        works.write(f"{number:02}.txt", f"file {number}\n")
    take_all(works.work())
    seen = []
    remove = entries.remove_entry

    def removing(directory: str, id_: str) -> None:
        seen.append(works.documents())
        remove(directory, id_)
        seen.append(works.documents())

    monkeypatch.setattr(folding, "remove_entry", removing)
    works.fold()
    assert len(seen) >= 2 * 16
    assert set(seen) == {22}


def test_entries_are_read_once(works: Works, monkeypatch: pytest.MonkeyPatch) -> None:
    take_all(works.work())
    first = read_log(works.out)
    works.write("b.txt", "over\n")
    take_all(works.work(None))
    read = []

    def reading(directory: str, id_: str) -> object:
        read.append(id_)
        return read_entry(directory, id_)

    monkeypatch.setattr(entries, "read_entry", reading)
    second = read_log(works.out, first)
    assert read == list(second.keys() - first.keys())
    assert len(read) == 1
    assert read_log(works.out, second) is second
