"""Exports that were stopped, damaged or given other sources: what resume makes of them."""

from __future__ import annotations

import shutil
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from pipelines.errors import InputError, OutputError, StoppedError
from pipelines.export.plan import plan_export
from pipelines.export.source import read_blocks
from tests.cli.process import bpe
from tests.export.exports import export_and_check, export_plainly, settings_of
from tests.export.oracle import Options
from tests.pipelines.corpora import edit_manifest, flip, sentence, tree, write_jsonl
from tests.shared_data import LONG

if TYPE_CHECKING:
    from pathlib import Path

    from pipelines.settings import ExportFormat
    from tests.export.conftest import Ids

SHUFFLED = Options(
    shuffle=5, validation="20%", pack=16, mix={"web": "60%", "code": "40%"}, token_budget=3000
)
PLAIN = Options(validation="20%", pack=16)


@pytest.fixture
def sources(ids: Ids, tmp_path: Path) -> dict[str, Path]:
    """Copies, which a test may change."""
    return {
        name: shutil.copytree(ids(name), tmp_path / "sources" / name) for name in ("web", "code")
    }


def test_other_settings_are_another_export(sources: dict[str, Path], tmp_path: Path) -> None:
    export_plainly(sources, tmp_path / "out", SHUFFLED)
    before = tree(tmp_path / "out")
    for name, value, message in (
        ("shuffle", 6, "shuffle was 5, is 6"),
        ("pack", 32, "pack was 16, is 32"),
        ("validation", "0.5", "validation was .*, is "),
        ("token_budget", 3001, "token_budget was 3000, is 3001"),
        ("mix_seed", 1, "mix_seed was .*, is 1"),
        ("mix", {"web": "1/2", "code": "1/2"}, "mix was"),
    ):
        other = Options(**{**vars(SHUFFLED), name: value})
        with pytest.raises(OutputError, match=message):
            export_plainly(sources, tmp_path / "out", other, resume=True)
    assert tree(tmp_path / "out") == before


def test_an_export_of_another_format_is_overwritten(
    sources: dict[str, Path], tmp_path: Path
) -> None:
    output = tmp_path / "out"
    export_plainly(sources, output, SHUFFLED, to="mds")
    export_plainly(sources, output, PLAIN, to="bin", overwrite=True)
    export_plainly(sources, tmp_path / "new", PLAIN, to="bin")
    assert tree(output) == tree(tmp_path / "new")


# What was pinned


@pytest.mark.parametrize("options", [Options(), PLAIN, SHUFFLED], ids=["rows", "pack", "shuffle"])
@pytest.mark.parametrize("kind", ["other part", "flipped"])
def test_a_pinned_part_that_was_altered_is_named(
    sources: dict[str, Path], tmp_path: Path, options: Options, kind: str
) -> None:
    paths = sorted((sources["web"] / "data").glob("*"))
    data = bytearray(paths[2].read_bytes())
    data[len(data) // 3] ^= 1  # among the values, not in the footer
    paths[2].write_bytes(paths[3].read_bytes() if kind == "other part" else data)
    with pytest.raises(InputError, match=paths[2].name):
        export_plainly(sources, tmp_path / "out", options)
    assert not (tmp_path / "out" / "manifest.json").exists()


@pytest.mark.parametrize("options", [Options(), PLAIN, SHUFFLED], ids=["rows", "pack", "shuffle"])
def test_a_part_that_does_not_hold_what_its_record_says_is_named(
    sources: dict[str, Path], tmp_path: Path, options: Options
) -> None:
    """The first token of each row follows from the tokens in the records."""
    edit_manifest(sources["web"], lambda value: value["parts"][0].update(tokens=1))
    with pytest.raises(InputError, match=r"/data/train-0.*: it holds .* tokens, its manifest says"):
        export_plainly(sources, tmp_path / "out", options)


def test_parts_added_afterwards_change_nothing(
    ids: Ids, sources: dict[str, Path], tmp_path: Path
) -> None:
    """An export that was stopped goes on with the parts that it began with."""
    model = ids("web") / "tokenizer.json"
    sources["late"] = tmp_path / "late"
    appended(sources["late"], model, tmp_path / "landing", "first")
    whole, output = tmp_path / "whole", tmp_path / "out"
    export_plainly(sources, whole, PLAIN)
    export_plainly(sources, output, PLAIN, stop=1)
    appended(sources["late"], model, tmp_path / "landing", "second")
    export_plainly(sources, output, PLAIN, resume=True)
    assert tree(output) == tree(whole)
    export_and_check(sources, tmp_path / "new", PLAIN)  # one that begins now has them


def appended(output: Path, model: Path, folder: Path, name: str) -> None:
    """Append the ids of one file."""
    write_jsonl(folder / f"{name}.jsonl", [f"{name} {sentence(i)}" for i in range(20)])
    bpe("encode", "--append", "--input", folder, "--tokenizer", model, "--output", output, "-q")


STOPPED: dict[str, tuple[ExportFormat, Options]] = {
    "in order": ("bin", PLAIN),
    "packed": ("litdata", replace(SHUFFLED, mix={}, token_budget=None)),
    "shuffled": ("mds", Options(shuffle=3, validation="10%", max_tokens=9)),
    "mixed": ("megatron", SHUFFLED),
}


@pytest.mark.parametrize("name", STOPPED)
@pytest.mark.parametrize("damage", [False, True], ids=["", "damaged"])
def test_an_export_that_was_stopped_goes_on(
    sources: dict[str, Path], tmp_path: Path, *, name: str, damage: bool
) -> None:
    """Again and again; or before its last unit, and a bit of each file was flipped then."""
    to, options = STOPPED[name]
    few: dict[str, Any] = {"to": to, "unit_tokens": 400}
    units = export_plainly(sources, tmp_path / "whole", options, **few).units
    assert units > 1
    output = tmp_path / "out"
    stop = units - 1 if damage else 1 if LONG else max(units // 3, 1)
    made = export_plainly(sources, output, options, **few, stop=stop).units
    assert made == stop
    if damage:
        flip_all(output)
    while not (output / "manifest.json").exists():
        made += export_plainly(sources, output, options, **few, stop=stop, resume=True).units
    assert made >= units if damage else made == units
    assert tree(output) == tree(tmp_path / "whole")


def test_a_unit_that_is_to_stop_reads_no_further(sources: dict[str, Path]) -> None:
    directories = {name: str(directory) for name, directory in sources.items()}
    plan, pins, _ = plan_export(directories, settings_of(PLAIN, "bin"))
    with pytest.raises(StoppedError):
        list(read_blocks(plan, pins[0], 0, stopped=lambda: True))


def flip_all(output: Path) -> None:
    """Flip a bit of each file that a stage leaves to a later one, and of each part."""
    paths = [*output.glob(".work/**/*"), *output.rglob("*-of-*")]
    for path in paths:
        if path.is_file() and path.stat().st_size:
            flip(path)
