"""A watch that is killed while files arrive and started again: nothing twice, nothing lost."""

from __future__ import annotations

import json
import random
import signal
import time
from functools import partial
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.cli.process import bpe
from tests.pipelines.corpora import small_tokenizer
from tests.watch.drops import FAST, MANY, Drops, dropping, make_drops, running, taken, wait_for

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture(scope="module")
def drops() -> Drops:
    return make_drops(60)


@pytest.fixture(scope="module")
def batch(tmp_path_factory: pytest.TempPathFactory, drops: Drops) -> Path:
    """The same files encoded and counted by jobs over all of them."""
    folder = tmp_path_factory.mktemp("batch")
    (folder / "in").mkdir()
    for name, data in drops.contents.items():
        (folder / "in" / name).write_bytes(data)
    small_tokenizer(folder / "tokenizer.json")
    inputs = ("--input", "in", *MANY)
    bpe("encode", *inputs, "--tokenizer", "tokenizer.json", "--output", "ids", cwd=folder)
    bpe("train", *inputs, "--vocab-size", "300", "--output", "model", cwd=folder)
    return folder


def watch_to_the_end(folder: Path, command: tuple[str, ...], drops: Drops, seconds: float) -> str:
    """Watch while files are dropped, be killed twice, and start again; the last summary."""
    dice = random.Random(5)
    with dropping(drops.contents, folder / "in", seconds=seconds):
        for share in (0.2, 0.6):
            with running(*command, cwd=folder) as process:
                wait_for(partial(has_taken, folder / "out", share * len(drops.contents)), process)
                time.sleep(dice.random() * 0.5)
                process.send_signal(signal.SIGKILL)
    return bpe(*command, "--stop-idle", "2", "--json", cwd=folder).stdout


def has_taken(output: Path, files: float) -> bool:
    return taken(output) >= files


def rows(folder: Path) -> dict[str, list[int]]:
    tables = [pq.read_table(path) for path in folder.glob("part-*.parquet")]
    table = pa.concat_tables(tables)
    assert len(set(table["id"].to_pylist())) == len(table), "a document is there twice"
    return dict(zip(table["id"].to_pylist(), table["input_ids"].to_pylist(), strict=True))


def dead_letters(folder: Path) -> list[dict[str, Any]]:
    lines = [
        line for path in folder.glob("dead-letters/*") for line in path.read_text().splitlines()
    ]
    return sorted(map(json.loads, lines), key=lambda one: (one["file"], one["place"]))


def test_encoding(tmp_path: Path, drops: Drops, batch: Path) -> None:
    command = (
        *("encode", "--watch", "in/*", "--tokenizer", str(batch / "tokenizer.json")),
        *("--output", "out", *FAST, *MANY),
    )
    summary = json.loads(watch_to_the_end(tmp_path, command, drops, 6))
    assert summary["failures"] == drops.bad
    assert rows(tmp_path / "out") == rows(batch / "ids")
    assert rows(tmp_path / "out").keys() == drops.texts.keys()
    assert dead_letters(tmp_path / "out") == dead_letters(batch / "ids")
    own, of_batch = (
        json.loads((path / "manifest.json").read_text())["totals"]
        for path in (tmp_path / "out", batch / "ids")
    )
    assert {**own, "bytes": 0} == {**of_batch, "bytes": 0}
    bpe("verify", "out", "--input", "in/*", cwd=tmp_path)
    decoded = map(json.loads, bpe("decode", "out", cwd=tmp_path).stdout.splitlines())
    assert {one["id"]: one["text"] for one in decoded} == drops.texts


def test_counting(tmp_path: Path, drops: Drops, batch: Path) -> None:
    command = ("count", "--watch", "in/*", "--output", "out", *FAST, *MANY)
    summary = json.loads(watch_to_the_end(tmp_path, command, drops, 6))
    assert summary["documents"] == len(drops.documents)
    assert summary["failures"] == drops.bad
    bpe("train", "--counts", "out", "--vocab-size", "300", "--output", "model", cwd=tmp_path)
    for name in ("tokenizer.json", "training.json"):
        assert (tmp_path / "model" / name).read_bytes() == (batch / "model" / name).read_bytes()
    bpe("verify", "out", "--input", "in/*", cwd=tmp_path)
    assert dead_letters(tmp_path / "out") == dead_letters(batch / "model" / "counts")
    assert len(list((tmp_path / "out" / "sets").iterdir())) < len(drops.contents) / 2
