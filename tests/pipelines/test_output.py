"""Files that may be in an output directory before a job, and those that a job removes there."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from bpe.counts.manifest import shard_file
from pipelines.errors import OutputError
from pipelines.output.directory import prepare
from pipelines.output.names import Plan, dead_letters_file, part_file
from pipelines.settings import OutputSettings

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

PLAN = Plan(
    kind="encoded",
    parts=(2,),
    settings={"tokenizer": "abc"},
    inputs={"files": 1, "bytes": 5, "sha256": "d"},
)
TEMPORARY = f"data/.train-00000-of-00002.parquet.{'0' * 32}.tmp"


def settings(directory: Path, **choice: bool) -> OutputSettings:
    return OutputSettings(directory=str(directory), **choice)


def names(directory: Path) -> set[str]:
    return {str(path.relative_to(directory)) for path in directory.rglob("*") if not path.is_dir()}


def write(path: Path, text: str = "mine") -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


@pytest.fixture
def begun(tmp_path: Path) -> Path:
    """Leave what a killed job of PLAN leaves."""
    directory = tmp_path / "out"
    prepare(settings(directory), PLAN)
    for name in ("tokenizer.json", part_file(0, 2), TEMPORARY, dead_letters_file(0, 2)):
        write(directory / name)
    return directory


ANY = ((), ("overwrite",), ("resume",))


def refused(
    directory: Path, message: str, plan: Plan = PLAN, *, choices: Sequence[tuple[str, ...]] = ANY
) -> str:
    """The error of a job there, which changes nothing, with each of these choices."""
    before = names(directory)
    for choice in choices:
        with pytest.raises(OutputError, match=message) as error:
            prepare(settings(directory, **dict.fromkeys(choice, True)), plan)
        assert names(directory) == before
    return str(error.value)


def test_a_job_that_goes_on_keeps_parts_and_has_no_manifest(begun: Path) -> None:
    write(begun / "manifest.json")
    prepare(settings(begun, resume=True), PLAN)
    kept = {".plan.json", "tokenizer.json", part_file(0, 2), dead_letters_file(0, 2)}
    assert names(begun) == kept


@pytest.mark.parametrize("name", ["README", ".hidden", "folder/file", part_file(0, 2)])
def test_a_directory_that_nobody_planned_is_refused(tmp_path: Path, name: str) -> None:
    write(tmp_path / name)
    write(tmp_path / "manifest.json", json.dumps({"kind": "encoded", "parts": []}))
    refused(tmp_path, r"no \.plan\.json says .*left it there: choose an empty directory")


@pytest.mark.parametrize(
    ("plan", "message"),
    [
        (
            {**PLAN.to_json(), "version": 1},
            r"encoded in layout 1 \(this release writes 3\): remove it and run",
        ),
        ({"program": "beam-bpe", "kind": "encoded", "parts": 5}, "of another release of beam-bpe"),
        ({"program": "beam-bpe", "kind": 7}, "of another release of beam-bpe"),
        ({"program": "beam-bpe"}, "of another release of beam-bpe"),
    ],
)
def test_a_plan_of_another_release_is_refused(
    tmp_path: Path, plan: dict[str, object], message: str
) -> None:
    write(tmp_path / ".plan.json", json.dumps(plan))
    write(tmp_path / "train-00000-of-00002.parquet")
    refused(tmp_path, message)


def test_data_that_is_a_link_is_refused(begun: Path) -> None:
    write(begun.parent / "away" / "train-00000-of-00002.parquet")
    shutil.rmtree(begun / "data")
    (begun / "data").symlink_to(begun.parent / "away")
    refused(begun, r"out holds 'data', which bpe encode does not leave there: move it away")
    assert names(begun.parent / "away") == {"train-00000-of-00002.parquet"}


@pytest.mark.parametrize(
    "name",
    [
        *("notes.txt", "folder/file", "data/other.parquet", "data/README", "data/more/x.parquet"),
        *("other.parquet", part_file(0, 7), "dead-letters/mine.txt", "log/mine.json"),
    ],
)
def test_what_is_foreign_is_refused_and_stays(begun: Path, name: str) -> None:
    write(begun / name)
    said = refused(begun, "bpe encode does not leave there: move it away", choices=ANY[1:])
    assert f"'{name}'" in said or f"'{name.rpartition('/')[0]}'" in said


@pytest.mark.parametrize("name", ["report.html", "lang=en"])
def test_a_link_is_foreign_whatever_it_leads_to(tmp_path: Path, name: str) -> None:
    """Else what a folder of a group leads to would be removed."""
    counts = replace(PLAN, kind="counts", settings={"group_by": "lang"})
    prepare(settings(tmp_path / "out"), counts)
    away = tmp_path / "away" / "lang=en"
    write(away / "manifest.json")
    (tmp_path / "out" / name).symlink_to(away if name == away.name else away / "manifest.json")
    refused(tmp_path / "out", f"'{name}', which bpe count does not leave there", counts)
    assert names(away) == {"manifest.json"}


def test_a_half_written_plan_of_a_killed_job_is_nothing(tmp_path: Path) -> None:
    (tmp_path / f".{'.plan.json'}.{'0' * 32}.tmp").touch()
    prepare(settings(tmp_path), PLAN)
    assert names(tmp_path) == {".plan.json"}


def test_a_file_is_no_directory(tmp_path: Path) -> None:
    write(tmp_path / "out")
    refused(tmp_path / "out", "is a file: name a directory")


def test_counts_that_are_not_complete_are_in_nobody_s_way(tmp_path: Path) -> None:
    counts = Plan(kind="counts", parts=(16, 2), settings={}, inputs={})
    prepare(settings(tmp_path), counts)
    write(tmp_path / shard_file(3, 16))
    write(tmp_path / dead_letters_file(0, 2))
    others = Plan(kind="counts", parts=(4, 2), settings={"track_order": True}, inputs={})
    prepare(settings(tmp_path), others)
    assert names(tmp_path) == {".plan.json"}
    for name in ("notes.txt", "manifest.json"):
        write(tmp_path / name)
        refused(tmp_path, "holds", others, choices=ANY[:1])
        (tmp_path / name).unlink()


def test_resume_of_another_job_is_refused_and_says_what_differs(begun: Path) -> None:
    inputs = {"files": 2, "bytes": 5, "sha256": "d"}
    other = replace(PLAN, settings={"tokenizer": "xyz"}, inputs=inputs)
    differs = 'settings tokenizer was "abc", is "xyz"; inputs files was 1, is 2'
    refused(begun, differs, other, choices=ANY[2:])


def test_inputs_inside_the_output_are_refused(begun: Path, tmp_path: Path) -> None:
    link = tmp_path / "link"
    link.symlink_to(begun)
    for source in (begun / "a.txt", link / "a.txt"):
        with pytest.raises(OutputError, match="is in its output directory"):
            prepare(settings(begun, overwrite=True), PLAN, reads=[str(source)])
    assert part_file(0, 2) in names(begun)
    prepare(settings(begun, overwrite=True), PLAN, reads=[str(tmp_path / "out-of-it.txt")])
