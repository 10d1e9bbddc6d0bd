"""Which files count, and when they are complete."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from pipelines.corpus.inputs import Listed
from pipelines.corpus.places import Place, Places
from pipelines.errors import ConfigError, InputError
from pipelines.run import use_storage_alone
from pipelines.settings import DriftSettings, Execution, WatchSettings
from pipelines.storage import Version
from pipelines.watch.arrivals import Arrivals
from tests.pipelines.object_store import ObjectStore

if TYPE_CHECKING:
    from pathlib import Path


class Clock:
    def __init__(self, now: float) -> None:
        self.now = now

    def __call__(self) -> float:
        return self.now


def places(*patterns: str, output: str = "/nowhere") -> Places:
    return Places.of(patterns, output=output)


def names(found: Places) -> list[str]:
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
    assert names(places(str(tmp_path))) == ["a.jsonl", "b.json", "sub/c.jsonl"]
    assert names(places(f"{tmp_path}/*.jsonl")) == ["a.jsonl"]
    assert names(places(f"{tmp_path}/**/*.jsonl")) == ["a.jsonl", "sub/c.jsonl"]
    assert names(places(f"{tmp_path}/b.json")) == ["b.json"]
    assert names(places(str(tmp_path), output=f"{tmp_path}/sub")) == ["a.jsonl", "b.json"]


def test_names_are_below_the_folder_of_all_patterns(tmp_path: Path) -> None:
    for name in ("x", "y"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "a.jsonl").touch()
    both = places(f"{tmp_path}/x/*", f"{tmp_path}/y", f"{tmp_path}/x/a*")
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
    assert names(places(str(folder))) == odd
    folder = folder.rename(tmp_path / "plain")
    for pattern in (folder, folder / "*", folder / "*.jsonl"):
        assert names(places(str(pattern))) == odd
    assert names(places(str(folder / "[a].jsonl"))) == ["[a].jsonl"]


def test_records_and_text_are_not_taken_together(tmp_path: Path) -> None:
    for name in ("a.jsonl", "b.txt.tmp", "b.txt.done"):
        (tmp_path / name).touch()
    watched = places(str(tmp_path))
    assert [watched.name(file.path) for file in watched.find()] == ["a.jsonl"]
    (tmp_path / "b.txt").touch()
    with pytest.raises(InputError, match=r"1 jsonl \(a\.jsonl\), 1 text \(b\.txt\)"):
        watched.find()


def test_what_is_passed_over_is_told(tmp_path: Path) -> None:
    for name in ("a.jsonl", "README.md", ".gitattributes"):
        (tmp_path / name).touch()
    (tmp_path / "b.jsonl").symlink_to(tmp_path / "nowhere")
    watched = places(str(tmp_path))
    assert [(one.files, one.reason) for one in watched.look().summary()] == [
        (2, "by their names"),
        (1, "links that lead nowhere"),
    ]
    assert [watched.name(file.path) for file in watched.find()] == ["a.jsonl"]


def test_a_file_settles(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_text("one")
    os.utime(path, (1000, 1000))
    clock = Clock(1002)
    watched = Arrivals(WatchSettings(settle=5), clock=clock)

    def complete() -> bool:
        file = Listed.at(str(path))
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
    clock = Clock(1000)
    watched = Arrivals(WatchSettings(settle=5), clock=clock)
    file = Listed.at(str(path))
    assert file is not None
    assert not watched.is_complete(file)
    clock.now = 1005
    assert watched.is_complete(file)


def test_a_marker_completes_a_file(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_text("one")
    os.utime(path, (1000, 1000))
    watched = Arrivals(WatchSettings(complete_when="marker"))
    file = Listed.at(str(path))
    assert file is not None
    assert not watched.is_complete(file)
    (tmp_path / "a.jsonl.done").touch()
    assert watched.is_complete(file)


def test_a_store_may_tell_times_in_full_or_in_seconds() -> None:
    listed, asked = (
        Listed("s3://b/a", 5, Version.of_store(nanoseconds))
        for nanoseconds in (17_250_000_000, 17_000_000_000)
    )
    assert listed.stamp == asked.stamp
    assert Listed("/b/a", 5, Version(17_250_000_000)).stamp != asked.stamp


def test_names_of_a_store_are_no_patterns(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(ObjectStore.objects, "store://bucket/a[1]*.txt", b"text")
    use_storage_alone(Execution())
    found = Listed.at("store://bucket/a[1]*.txt")
    assert found is not None
    assert found.size == 4
    assert Listed.at("store://bucket/a[2].txt") is None
