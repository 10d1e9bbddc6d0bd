"""Files that may be in an output directory before a job, and those that a job removes there."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING, get_args

import pytest

from bpe.counts.manifest import shard_file
from pipelines.errors import OutputError
from pipelines.output.directory import decide, prepare
from pipelines.output.names import Kind, Plan, dead_letters_file, json_bytes, part_file
from pipelines.settings import OutputSettings

if TYPE_CHECKING:
    from pathlib import Path

PLAN = Plan(
    kind="encoded",
    parts=(2,),
    settings={"tokenizer": "abc"},
    inputs={"files": 1, "bytes": 5, "sha256": "d"},
)
TEMPORARY = f"data/.train-00000-of-00002.parquet.{'0' * 32}.tmp"


def settings(directory: Path, *, overwrite: bool = False, resume: bool = False) -> OutputSettings:
    return OutputSettings(directory=str(directory), overwrite=overwrite, resume=resume)


def names(directory: Path) -> set[str]:
    return {str(path.relative_to(directory)) for path in directory.rglob("*") if not path.is_dir()}


@pytest.fixture
def begun(tmp_path: Path) -> Path:
    """Leave what a killed job of PLAN leaves."""
    directory = tmp_path / "out"
    prepare(settings(directory), PLAN)
    (directory / "tokenizer.json").write_text("{}")
    (directory / "data").mkdir()
    (directory / part_file(0, 2)).write_bytes(b"not even Parquet")
    (directory / TEMPORARY).write_bytes(b"half")
    (directory / "dead-letters").mkdir()
    (directory / dead_letters_file(0, 2)).write_bytes(b"{")
    return directory


@pytest.mark.parametrize("resume", [False, True])
def test_a_new_directory_gets_the_plan(tmp_path: Path, resume: bool) -> None:
    prepare(settings(tmp_path / "a" / "b", resume=resume), PLAN)
    assert json.loads((tmp_path / "a" / "b" / ".plan.json").read_bytes()) == PLAN.to_json()


@pytest.mark.parametrize(
    "name", ["README", ".hidden", "folder/file", "data/train-00000-of-00002.parquet"]
)
def test_a_directory_that_holds_anything_is_refused(tmp_path: Path, name: str) -> None:
    (tmp_path / name).parent.mkdir(exist_ok=True)
    (tmp_path / name).touch()
    with pytest.raises(
        OutputError, match=r"holds '.*', and no \.plan\.json says .* empty directory"
    ):
        prepare(settings(tmp_path), PLAN)
    assert names(tmp_path) == {name}


def test_what_a_job_has_left_is_refused_with_what_helps(begun: Path) -> None:
    before = names(begun)
    for kind in get_args(Kind):
        with pytest.raises(
            OutputError,
            match="holds the output of bpe encode, which is not finished: repeat its command with "
            "`resume`, replace it with `overwrite`, or choose another directory",
        ):
            prepare(settings(begun), replace(PLAN, kind=kind))
    (begun / "manifest.json").write_text("{}")
    with pytest.raises(
        OutputError, match="bpe encode, which is complete: replace it with"
    ) as error:
        prepare(settings(begun), PLAN)
    assert "`resume`" not in str(error.value)
    assert names(begun) == before | {"manifest.json"}


@pytest.mark.parametrize(
    ("choice", "action"), [({"overwrite": True}, "begin"), ({"resume": True}, "resume")]
)
def test_to_decide_changes_nothing(begun: Path, choice: dict[str, bool], action: str) -> None:
    before = names(begun)
    assert decide(settings(begun, **choice), PLAN) == action
    begun_here = replace(PLAN, run="1")
    (begun / ".plan.json").write_bytes(json_bytes(begun_here.to_json()))
    assert decide(settings(begun), begun_here) == "own"
    assert names(begun) == before
    assert decide(settings(begun / "nowhere"), PLAN) == "begin"
    assert not (begun / "nowhere").exists()


def test_a_half_written_plan_of_a_killed_job_is_nothing(tmp_path: Path) -> None:
    (tmp_path / f".{'.plan.json'}.{'0' * 32}.tmp").touch()
    prepare(settings(tmp_path), PLAN)
    assert names(tmp_path) == {".plan.json"}


def test_a_file_is_no_directory(tmp_path: Path) -> None:
    (tmp_path / "out").touch()
    with pytest.raises(OutputError, match="is a file: name a directory"):
        prepare(settings(tmp_path / "out"), PLAN)


@pytest.mark.parametrize("choice", [{"overwrite": True}, {"resume": True}])
@pytest.mark.parametrize(
    "name",
    [
        *("notes.txt", "folder/file", "data/other.parquet", "data/README", "data/more/x.parquet"),
        *("other.parquet", part_file(0, 7), "dead-letters/mine.txt", "log/mine.json"),
    ],
)
def test_what_is_foreign_is_refused_and_stays(
    begun: Path, name: str, choice: dict[str, bool]
) -> None:
    (begun / name).parent.mkdir(exist_ok=True)
    (begun / name).write_text("mine")
    before = names(begun)
    with pytest.raises(
        OutputError, match=r"bpe encode does not leave there: move it away"
    ) as error:
        prepare(settings(begun, **choice), PLAN)
    assert f"'{name}'" in str(error.value) or f"'{name.rpartition('/')[0]}'" in str(error.value)
    assert names(begun) == before


def test_overwrite_removes_what_is_ours_even_damaged(begun: Path) -> None:
    held_out = "data/validation-00001-of-00002.parquet"
    for name in ("report.html", ".timings.json", "manifest.json", held_out):
        (begun / name).write_text("damaged")
    prepare(settings(begun, overwrite=True), replace(PLAN, kind="counts", parts=(4, 2)))
    assert names(begun) == {".plan.json"}
    assert not (begun / "dead-letters").exists()
    assert not (begun / "data").exists()


def test_overwrite_does_not_follow_links(begun: Path, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    precious = outside / "part-00000-of-00002.jsonl"
    precious.write_text('{"file": 1, "place": 2, "reason": 3, "size": 4}')
    for path in (begun / "dead-letters").iterdir():
        path.unlink()
    (begun / "dead-letters").rmdir()
    (begun / "dead-letters").symlink_to(outside)
    with pytest.raises(OutputError, match="dead-letters is a link"):
        prepare(settings(begun, overwrite=True), PLAN)
    assert precious.exists()


def test_a_link_in_the_place_of_a_part_is_not_ours(begun: Path, tmp_path: Path) -> None:
    precious = tmp_path / "precious"
    precious.write_text("data")
    (begun / part_file(1, 2)).symlink_to(precious)
    before = names(begun)
    with pytest.raises(OutputError, match=part_file(1, 2)):
        prepare(settings(begun, overwrite=True), PLAN)
    assert precious.read_text() == "data"
    assert names(begun) == before


def test_resume_keeps_parts_and_removes_temporary_files(begun: Path) -> None:
    (begun / "manifest.json").write_bytes(b"{}")
    prepare(settings(begun, resume=True), PLAN)
    assert names(begun) == {
        ".plan.json",
        "tokenizer.json",
        part_file(0, 2),
        dead_letters_file(0, 2),
    }


def test_counts_that_are_not_complete_are_in_nobody_s_way(tmp_path: Path) -> None:
    counts = Plan(kind="counts", parts=(16, 2), settings={}, inputs={})
    prepare(settings(tmp_path), counts)
    (tmp_path / "data").mkdir()
    (tmp_path / shard_file(3, 16)).write_bytes(b"half")
    (tmp_path / "dead-letters").mkdir()
    (tmp_path / dead_letters_file(0, 2)).write_bytes(b"{")
    others = Plan(kind="counts", parts=(4, 2), settings={"track_order": True}, inputs={})
    prepare(settings(tmp_path), others)
    assert names(tmp_path) == {".plan.json"}
    for name in ("notes.txt", "manifest.json"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("mine")
        with pytest.raises(OutputError, match="holds"):
            prepare(settings(tmp_path), others)
        (tmp_path / name).unlink()


@pytest.mark.parametrize("choice", [{}, {"overwrite": True}, {"resume": True}])
def test_an_earlier_layout_is_refused_whole(tmp_path: Path, choice: dict[str, bool]) -> None:
    plan = {**PLAN.to_json(), "version": 1}
    (tmp_path / ".plan.json").write_bytes(json_bytes(plan))
    (tmp_path / "part-00000-of-00002.parquet").touch()
    with pytest.raises(
        OutputError, match=r"encoded in layout 1 \(this release writes 3\): remove it and run"
    ):
        prepare(settings(tmp_path, **choice), PLAN)
    assert names(tmp_path) == {".plan.json", "part-00000-of-00002.parquet"}


@pytest.mark.parametrize("choice", [{}, {"overwrite": True}, {"resume": True}])
def test_data_that_is_a_link_is_refused(tmp_path: Path, choice: dict[str, bool]) -> None:
    away, out = tmp_path / "away", tmp_path / "out"
    for directory in (away, out):
        directory.mkdir()
    prepare(settings(out), PLAN)
    (away / "train-00000-of-00002.parquet").write_text("mine")
    (out / "data").symlink_to(away)
    with pytest.raises(OutputError, match=r"out/data is a link, which may lead out of"):
        prepare(settings(out, **choice), PLAN)
    assert names(away) == {"train-00000-of-00002.parquet"}


def test_resume_of_another_job_is_refused_and_says_what_differs(begun: Path) -> None:
    other = Plan(
        kind="encoded",
        parts=(2,),
        settings={"tokenizer": "xyz"},
        inputs={"files": 2, "bytes": 5, "sha256": "d"},
    )
    with pytest.raises(OutputError) as error:
        prepare(settings(begun, resume=True), other)
    assert 'settings tokenizer was "abc", is "xyz"; inputs files was 1, is 2' in str(error.value)
    assert part_file(0, 2) in names(begun)


@pytest.mark.parametrize("choice", [{"overwrite": True}, {"resume": True}])
def test_what_has_no_plan_is_not_ours(tmp_path: Path, choice: dict[str, bool]) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / part_file(0, 2)).touch()
    (tmp_path / "manifest.json").write_bytes(json_bytes({"kind": "encoded", "parts": []}))
    before = names(tmp_path)
    with pytest.raises(OutputError, match="left it there: choose an empty directory"):
        prepare(settings(tmp_path, **choice), PLAN)
    assert names(tmp_path) == before


def test_inputs_inside_the_output_are_refused(begun: Path, tmp_path: Path) -> None:
    link = tmp_path / "link"
    link.symlink_to(begun)
    for source in (begun / "a.txt", link / "a.txt"):
        with pytest.raises(OutputError, match="is in its output directory"):
            prepare(settings(begun, overwrite=True), PLAN, reads=[str(source)])
    assert part_file(0, 2) in names(begun)
    prepare(settings(begun, overwrite=True), PLAN, reads=[str(tmp_path / "out-of-it.txt")])


@pytest.mark.parametrize("plan", [{"kind": "encoded", "parts": 5}, {"kind": 7}, {}])
def test_a_plan_that_is_none_claims_nothing(tmp_path: Path, plan: dict[str, object]) -> None:
    (tmp_path / ".plan.json").write_text(json.dumps({"program": "beam-bpe", **plan}))
    with pytest.raises(OutputError, match="of another release of beam-bpe"):
        prepare(settings(tmp_path, overwrite=True), PLAN)
