"""A loop that appends, killed twice while files arrive: nothing twice, nothing lost.

A job over all of the files says what comes out.
"""

from __future__ import annotations

import json
import random
import time
from itertools import islice
from typing import TYPE_CHECKING, Any

import pytest

from pipelines.count.appended import FAN_IN
from pipelines.settings import CountsInput, InputSettings
from tests import jobs
from tests.append.drops import FILES, drop, make_drops, taken
from tests.cli.process import bpe
from tests.faults.running import PATIENCE, running, until
from tests.pipelines.corpora import dead_letters, decoded, encode, small_tokenizer, train

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.long
DROPS = make_drops()
MANY = ("--max-failures", "1000")


def append_while_files_arrive(folder: Path, *command: str) -> Path:
    """Append in a loop that is killed twice, then the rest; returns the output, verified."""
    command = (*command, "--input", "in/*", "--output", "out", *MANY)
    dice = random.Random(5)
    names = sorted(DROPS.contents)
    dice.shuffle(names)
    arriving = enumerate(names)
    into, out = folder / "in", folder / "out"
    into.mkdir()

    def arrive(files: int) -> None:
        for number, name in islice(arriving, files):
            drop(into, name, DROPS.contents[name], number)

    def loop_until(files: int) -> None:
        with running(*command, "--watch", "0.3", "--settle", "1", cwd=folder) as process:
            arrive(FILES * 2 // 5)
            until(lambda: taken(out) >= files, process)
            time.sleep(dice.random() * 0.5)
            process.kill()

    loop_until(FILES // 5)
    loop_until(FILES * 3 // 5)
    arrive(FILES)
    done = bpe(*command, "--append", "--prune", "--json", cwd=folder, seconds=PATIENCE)
    summary = json.loads(done.stdout)
    assert summary["documents"] == len(DROPS.documents)
    assert summary["failures"] == DROPS.bad
    jobs.verify(directory=str(out), inputs=corpus(folder))
    return out


def corpus(folder: Path) -> InputSettings:
    """All files, for one job over them."""
    return InputSettings(patterns=(f"{folder}/in",), max_failures=1000)


def letters(folder: Path) -> list[dict[str, Any]]:
    """All bad records, in the order of their files."""
    return sorted(dead_letters(folder), key=lambda one: (one["file"], one["place"]))


def inputs(folder: Path) -> list[dict[str, Any]]:
    """The files that a manifest names, in the order of their names."""
    manifest = json.loads((folder / "manifest.json").read_text())
    return sorted(manifest["inputs"], key=lambda one: str(one["name"]))


def test_encoding(tmp_path: Path) -> None:
    small_tokenizer(tmp_path / "t.json")
    out = append_while_files_arrive(tmp_path, "encode", "--tokenizer", "t.json")
    encode(corpus(tmp_path), tmp_path / "t.json", tmp_path / "ids")
    assert sorted(decoded(out)) == sorted(DROPS.documents)
    assert inputs(out) == inputs(tmp_path / "ids")
    assert letters(out) == letters(tmp_path / "ids")


def test_counting(tmp_path: Path) -> None:
    out = append_while_files_arrive(tmp_path, "count")
    train(tmp_path / "batch", inputs=corpus(tmp_path))
    assert letters(out) == letters(tmp_path / "batch" / "counts")
    train(tmp_path / "model", counts=(CountsInput(directory=str(out)),))
    for name in ("tokenizer.json", "training.json"):
        made = (tmp_path / "model" / name).read_bytes()
        assert made == (tmp_path / "batch" / name).read_bytes()
    manifest = json.loads((out / "manifest.json").read_text())
    assert len(manifest["sets"]) < 2 * FAN_IN
