"""Which files count, and when they are complete."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest
from apache_beam.io.filesystem import FileMetadata

from pipelines.errors import ConfigError, InputError
from pipelines.run import use_storage_alone
from pipelines.settings import Execution
from pipelines.watch.arrivals import Arrivals, Place, stamp, state
from pipelines.watch.settings import DriftSettings, WatchSettings
from tests.pipelines.object_store import ObjectStore

if TYPE_CHECKING:
    from pathlib import Path


class Clock:
    def __init__(self, now: float) -> None:
        self.now = now

    def __call__(self) -> float:
        return self.now


def arrivals(
    *patterns: str, now: float = 1e9, output: str = "/nowhere", **settings: object
) -> tuple[Arrivals, Clock]:
    clock = Clock(now)
    made = Arrivals(
        [Place.of(pattern) for pattern in patterns],
        output=output,
        settings=WatchSettings(**settings),  # type: ignore[arg-type]
        clock=clock,
    )
    return made, clock


def names(found: Arrivals) -> list[str]:
    return [found.name(file.path) for file in found.find()]


def test_what_is_no_input_is_passed_over(tmp_path: Path) -> None:
    (tmp_path / "sub" / ".hidden").mkdir(parents=True)
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / ".plan.json").write_text('{"program": "beam-bpe"}')
    for name in (
        *(
            "a.jsonl",
            "b.json",
            "sub/c.jsonl",
            ".d.jsonl",
            "README.md",
            "LICENSE",
            "e.jsonl.tmp",
            "f.part",
            "g~",
        ),
        *("a.jsonl.done", "_SUCCESS", "sub/.hidden/h.jsonl", "out/i.jsonl"),
    ):
        (tmp_path / name).touch()
    assert names(arrivals(str(tmp_path))[0]) == ["a.jsonl", "b.json", "sub/c.jsonl"]
    assert names(arrivals(f"{tmp_path}/*.jsonl")[0]) == ["a.jsonl"]
    assert names(arrivals(f"{tmp_path}/**/*.jsonl")[0]) == ["a.jsonl", "sub/c.jsonl"]
    assert names(arrivals(f"{tmp_path}/b.json")[0]) == ["b.json"]
    assert names(arrivals(str(tmp_path), output=f"{tmp_path}/sub")[0]) == ["a.jsonl", "b.json"]


def test_names_are_below_the_folder_of_all_patterns(tmp_path: Path) -> None:
    for name in ("x", "y"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "a.jsonl").touch()
    both, _ = arrivals(f"{tmp_path}/x/*", f"{tmp_path}/y", f"{tmp_path}/x/a*")
    assert names(both) == ["x/a.jsonl", "y/a.jsonl"]


def test_patterns_that_cannot_be_watched_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="nothing is at"):
        Place.of(str(tmp_path / "not-there"))
    with pytest.raises(ConfigError, match="`settle` -1"):
        WatchSettings(settle=-1)
    with pytest.raises(ConfigError, match="`baseline`"):
        DriftSettings(warn_unseen=5)


def test_every_name_is_seen(tmp_path: Path) -> None:
    folder = tmp_path / "odd[1]*"
    folder.mkdir()
    odd = ["[a].jsonl", "a.jsonl", "b\\c.jsonl", "new\nline.jsonl"]
    for name in odd:
        (folder / name).touch()
    assert names(arrivals(str(folder))[0]) == odd
    folder = folder.rename(tmp_path / "plain")
    for pattern in (folder, folder / "*", folder / "*.jsonl"):
        assert names(arrivals(str(pattern))[0]) == odd
    assert names(arrivals(str(folder / "[a].jsonl"))[0]) == ["[a].jsonl"]


def test_records_and_text_are_not_taken_together(tmp_path: Path) -> None:
    for name in ("a.jsonl", "b.txt.tmp", "b.txt.done"):
        (tmp_path / name).touch()
    watched, _ = arrivals(str(tmp_path))
    assert [watched.name(file.path) for file in watched.find()] == ["a.jsonl"]
    (tmp_path / "b.txt").touch()
    with pytest.raises(InputError, match=r"1 jsonl \(a\.jsonl\), 1 text \(b\.txt\)"):
        watched.find()


def test_what_is_passed_over_is_told(tmp_path: Path) -> None:
    for name in ("a.jsonl", "README.md", ".gitattributes"):
        (tmp_path / name).touch()
    (tmp_path / "b.jsonl").symlink_to(tmp_path / "nowhere")
    watched, _ = arrivals(str(tmp_path))
    assert [(one.files, one.reason) for one in watched.look().summary()] == [
        (2, "by their names"),
        (1, "links that lead nowhere"),
    ]
    assert [watched.name(file.path) for file in watched.find()] == ["a.jsonl"]


def test_a_file_settles(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_text("one")
    os.utime(path, (1000, 1000))
    watched, clock = arrivals(str(tmp_path), now=1002, settle=5)

    def complete() -> bool:
        file = state(str(path))
        assert file is not None
        return watched.is_complete(file)

    assert not complete()
    clock.now = 1006
    assert complete()
    path.write_text("one and more")  # its time is an old one, and yet it changes
    os.utime(path, (1001, 1001))
    assert not complete()
    clock.now = 1012
    assert complete()


def test_a_clock_that_is_ahead_does_not_hold_a_file_back(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_text("one")
    os.utime(path, (99_000, 99_000))
    watched, clock = arrivals(str(tmp_path), now=1000, settle=5)
    file = state(str(path))
    assert file is not None
    assert not watched.is_complete(file)
    clock.now = 1005
    assert watched.is_complete(file)


def test_a_marker_completes_a_file(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_text("one")
    os.utime(path, (1000, 1000))
    watched, _ = arrivals(str(tmp_path), complete_when="marker")
    file = state(str(path))
    assert file is not None
    assert not watched.is_complete(file)
    (tmp_path / "a.jsonl.done").touch()
    assert watched.is_complete(file)


def test_a_store_may_tell_times_in_full_or_in_seconds() -> None:
    listed, asked = FileMetadata("s3://b/a", 5, 17.25), FileMetadata("s3://b/a", 5, 17.0)
    assert stamp(listed) == stamp(asked)
    assert stamp(FileMetadata("/b/a", 5, 17.25)) != stamp(FileMetadata("/b/a", 5, 17.0))


def test_names_of_a_store_are_no_patterns(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(ObjectStore.objects, "store://bucket/a[1]*.txt", b"text")
    use_storage_alone(Execution())
    found = state("store://bucket/a[1]*.txt")
    assert found is not None
    assert found.size_in_bytes == 4
    assert state("store://bucket/a[2].txt") is None
