"""The order of a corpus: files sorted by name, documents as in their file, then position."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import bpe as library
from bpe.presets import Preset
from pipelines.settings import (
    Execution,
    InputSettings,
    OutputSettings,
    PretokenSettings,
    TrainSettings,
)
from tests import jobs

if TYPE_CHECKING:
    from pathlib import Path

PRESET = Preset.load("notebook")
# Every pair occurs twice: nothing but the order decides.
FILES = {
    "a.jsonl": ["xy yx", "zw wz", ""],
    "b.jsonl": ["qr rq pq"],
    "sub/c.jsonl": ["wz zw", "xy yx", "rq qr pq"],
}


def write(folder: Path, files: dict[str, list[str]], kind: str) -> None:
    for name, texts in files.items():
        path = folder / name.replace("jsonl", kind)
        path.parent.mkdir(parents=True, exist_ok=True)
        if kind == "parquet":
            pq.write_table(pa.table({"text": texts}), path, row_group_size=1)
        elif kind == "jsonl":
            lines = (json.dumps({"text": text}) + "\n" for text in texts)
            path.write_text("".join(lines), "utf-8")
        else:
            path.write_text("".join(f"{text}\n" for text in texts), "utf-8")


def trained(folder: Path, output: Path, *, workers: int, kind: str) -> library.Tokenizer:
    jobs.train(
        inputs=InputSettings(
            patterns=(str(folder),), format="lines" if kind == "txt" else "auto", split_size=7
        ),
        pretokens=PretokenSettings(pretokenizer="spaces"),
        training=TrainSettings(
            max_merges=15, ties="first-seen", model=PRESET.model, initial_alphabet=(" ",)
        ),
        output=OutputSettings(directory=str(output)),
        execution=Execution(workers=workers),
    )
    return library.Tokenizer.load(output / "tokenizer.json")


@pytest.mark.parametrize("kind", ["jsonl", "parquet", "txt"])
def test_the_order_does_not_depend_on_workers_or_splits(tmp_path: Path, kind: str) -> None:
    write(tmp_path / "in", FILES, kind)
    expected = PRESET.train(text for texts in FILES.values() for text in texts)
    assert expected.training is not None
    for workers in (1, 3):
        output = tmp_path / f"out{workers}"
        assert trained(tmp_path / "in", output, workers=workers, kind=kind) == expected
        training = json.loads((output / "training.json").read_text("utf-8"))
        assert [merge["left"] for merge in training["merges"]] == [
            merge.left.decode() for merge in expected.training.merges
        ]


def test_another_order_of_files_is_another_tokenizer() -> None:
    texts = [text for texts in FILES.values() for text in texts]
    assert PRESET.train(texts) != PRESET.train(reversed(texts))
