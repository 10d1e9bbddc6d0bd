"""Several processes that take files into one directory, as workers of a cluster do."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from pipelines import storage
from pipelines.errors import OutputError
from pipelines.watch import log
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
        works.compact()
    (file,) = second.arrivals.find()
    assert second.take(file) is None
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
        for work in (first, second):
            take_all(work)
        assert reads.of("a.txt") == 2, times
    assert works.documents() == 2


def test_an_attempt_that_is_dropped_takes_nothing_of_others_with_it(works: Works) -> None:
    first, second = works.work(), works.work()
    (file,) = first.arrivals.find()
    make = second.make

    def slowly(*args: object) -> object:
        made = make(*args)  # type: ignore[arg-type]
        assert first.take(file) is not None
        works.write("a.txt", "it holds something else by now\n")
        return made

    second.make = slowly  # type: ignore[assignment,method-assign]
    assert second.take(file) is None
    assert works.documents() == 2
    assert not works.left()
    take_all(first)
    works.compact()
    assert works.documents() == 1
    assert not works.left()


def test_whoever_comes_second_keeps_what_is_there(works: Works) -> None:
    first, second = works.work(), works.work()
    (file,) = first.arrivals.find()
    make = second.make

    def slowly(*args: object) -> object:
        made = make(*args)  # type: ignore[arg-type]
        assert first.take(file) is not None
        return made

    second.make = slowly  # type: ignore[assignment,method-assign]
    assert second.take(file) is None
    assert len(log.entry_names(works.out)) == 1
    assert works.documents() == 2
    assert not works.left()


def test_two_that_write_their_entries_at_once_count_as_one(
    works: Works, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second = works.work(), works.work()
    (file,) = first.arrivals.find()
    hook(monkeypatch, log, "write_entry", lambda: take_all(first))
    assert second.take(file) is not None
    assert len(log.entry_names(works.out)) == 2
    assert works.documents() == 2
    works.compact()
    assert works.documents() == 2
    works.clean()
    assert works.documents() == 2
    assert not works.left()
    works.write("a.txt", "it holds something else by now\n")
    take_all(works.work())
    works.compact()
    assert works.documents() == 1


def test_a_job_that_lost_its_command_ends_when_the_next_one_begins(works: Works) -> None:
    lost = works.work()
    works.begin_run("second")
    with pytest.raises(OutputError, match="another watch has been started there"):
        take_all(lost)
    assert not log.entry_names(works.out)
    assert not works.left()
    take_all(works.work("second"))
    assert works.documents() == 2


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
    lost.see_run = lambda: None  # type: ignore[method-assign]  # it has just looked
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
    remove = log.remove_entry

    def removing(directory: str, id_: str) -> None:
        seen.append(works.documents())
        remove(directory, id_)
        seen.append(works.documents())

    monkeypatch.setattr(log, "remove_entry", removing)
    works.compact()
    assert len(seen) >= 2 * 16
    assert set(seen) == {22}


def test_entries_are_read_once(works: Works, monkeypatch: pytest.MonkeyPatch) -> None:
    take_all(works.work())
    reader = log.LogReader(works.out)
    first = reader.read()
    monkeypatch.setattr(log, "read_entry", lambda *_: pytest.fail("it was read again"))
    assert reader.read() is first
