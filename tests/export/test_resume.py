"""Exports that were stopped, damaged or given other sources: what resume makes of them."""

from __future__ import annotations

import shutil
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

import pytest

from pipelines.errors import InputError, StoppedError
from pipelines.export.plan import plan_export
from pipelines.export.source import read_blocks
from tests.cli.process import bpe
from tests.export.exports import Options, export_and_check, export_plainly, inputs_of
from tests.pipelines.corpora import edit_manifest, flip, sentence, tree, write_jsonl
from tests.shared_data import LONG

if TYPE_CHECKING:
    from pathlib import Path

    from pipelines.settings import ExportSettings
    from tests.export.conftest import Ids

SHUFFLED = Options(
    shuffle=5, validation=0.2, pack=16, mix=("web=60%", "code=40%"), token_budget=3000
)
PLAIN = Options(validation=0.2, pack=16)


@pytest.fixture
def sources(ids: Ids, tmp_path: Path) -> dict[str, Path]:
    """Copies, which a test may change."""
    return {
        name: shutil.copytree(ids(name), tmp_path / "sources" / name) for name in ("web", "code")
    }


def test_an_export_of_another_format_is_overwritten(
    sources: dict[str, Path], tmp_path: Path
) -> None:
    output = tmp_path / "out"
    export_plainly(sources, output, replace(SHUFFLED, to="mds"))
    export_plainly(sources, output, replace(PLAIN, to="bin"), overwrite=True)
    export_plainly(sources, tmp_path / "new", replace(PLAIN, to="bin"))
    assert tree(output) == tree(tmp_path / "new")


# What was pinned


@pytest.mark.parametrize("options", [Options(), PLAIN, SHUFFLED], ids=["rows", "pack", "shuffle"])
@pytest.mark.parametrize("kind", ["other part", "flipped", "other record"])
def test_a_pinned_part_that_is_not_as_its_record_says_is_named(
    sources: dict[str, Path], tmp_path: Path, options: ExportSettings, kind: str
) -> None:
    paths = sorted((sources["web"] / "data").glob("*"))
    message = paths[2].name
    if kind == "other record":  # the first token of each row follows from the tokens in it
        edit_manifest(sources["web"], lambda value: value["parts"][0].update(tokens=1))
        message = r"/data/train-0.*: it holds .* tokens, its manifest says"
    else:
        data = bytearray(paths[2].read_bytes())
        data[len(data) // 3] ^= 1  # among the values, not in the footer
        paths[2].write_bytes(paths[3].read_bytes() if kind == "other part" else data)
    with pytest.raises(InputError, match=message):
        export_plainly(sources, tmp_path / "out", options)
    assert not (tmp_path / "out" / "manifest.json").exists()


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


STOPPED = {
    "in order": replace(PLAIN, to="bin"),
    "packed": replace(SHUFFLED, to="litdata", mix=(), token_budget=None),
    "shuffled": Options(to="mds", shuffle=3, validation=0.1, max_tokens=9),
    "mixed": replace(SHUFFLED, to="megatron"),
}


@pytest.mark.parametrize("name", STOPPED)
@pytest.mark.parametrize("damage", [False, True], ids=["", "damaged"])
def test_an_export_that_was_stopped_goes_on(
    sources: dict[str, Path], tmp_path: Path, *, name: str, damage: bool
) -> None:
    """Again and again; or before its last unit, and a bit of each file was flipped then."""
    run = partial(export_plainly, sources, options=STOPPED[name], unit_tokens=400)
    units = run(output=tmp_path / "whole")
    assert units > 1
    output = tmp_path / "out"
    stop = units - 1 if damage else 1 if LONG else max(units // 3, 1)
    made = run(output=output, stop=stop)
    assert made == stop
    if damage:
        flip_all(output)
    while not (output / "manifest.json").exists():
        made += run(output=output, stop=stop, resume=True)
    assert made >= units if damage else made == units
    assert tree(output) == tree(tmp_path / "whole")


def test_a_unit_that_is_to_stop_reads_no_further(sources: dict[str, Path]) -> None:
    plan, pins, _ = plan_export(inputs_of(sources).patterns, PLAIN)
    with pytest.raises(StoppedError):
        list(read_blocks(plan, pins[0], 0, stopped=lambda: True))


def flip_all(output: Path) -> None:
    """Flip a bit of each file that a stage leaves to a later one, and of each part."""
    paths = [*output.glob(".work/**/*"), *output.rglob("*-of-*")]
    for path in paths:
        if path.is_file() and path.stat().st_size:
            flip(path)
