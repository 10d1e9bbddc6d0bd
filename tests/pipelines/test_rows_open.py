"""The Parquet that is written opens in what people train with."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import datasets
import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow.parquet as pq
import pytest

from pipelines.settings import EncodeSettings, InputSettings
from tests.pipelines.corpora import encode, encoded_manifest, sentence, small_tokenizer
from tests.pipelines.test_keep import jsonl

if TYPE_CHECKING:
    from pathlib import Path

END = "<|end|>"
MODES = {
    "documents": EncodeSettings(keep=("lang", "score", "tags")),
    "ends": EncodeSettings(append_token=END, keep=("lang", "score", "tags"), id_type="uint32"),
}
Rows = list[dict[str, Any]]


def by_datasets(ids: Path) -> Rows:
    return list(datasets.load_dataset(str(ids), split="train", streaming=True))


def by_pyarrow(ids: Path) -> Rows:
    rows: Rows = pq.read_table(ids / "data").to_pylist()
    return rows


def by_polars(ids: Path) -> Rows:
    return pl.read_parquet(ids / "data" / "train-*.parquet").to_dicts()


def by_duckdb(ids: Path) -> Rows:
    with duckdb.connect() as connection:
        result = connection.execute(f"SELECT * FROM '{ids}/data/train-*.parquet'")  # noqa: S608
        names = [column[0] for column in result.description]
        return [dict(zip(names, row, strict=True)) for row in result.fetchall()]


def by_pandas(ids: Path) -> Rows:
    records: Rows = pd.read_parquet(ids / "data").to_dict("records")
    return records


@pytest.fixture(scope="module", params=[(mode, size) for mode in MODES for size in (2000, None)])
def encoded(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An encoded directory, of several parts and of one, with a temporary file left in it."""
    mode, split_size = request.param
    folder = tmp_path_factory.mktemp("open")
    records: Rows = [
        {"text": sentence(i), "lang": f"l{i % 3}", "score": i / 2, "tags": ["a"] * (i % 4)}
        for i in range(60)
    ]
    jsonl(folder / "in" / "docs.jsonl", records)
    small_tokenizer(folder / "t.json")
    inputs = InputSettings(patterns=(str(folder / "in"),), split_size=split_size)
    summary = encode(inputs, folder / "t.json", folder / "ids", encoding=MODES[mode])
    assert (summary.parts == 1) == (split_size is None)
    left = folder / "ids" / "data" / f".train-00000-of-00001.parquet.{'0' * 32}.tmp"
    left.write_bytes(b"half")
    return folder / "ids"


def plain(value: Any) -> Any:
    """What a library gives, as lists, dicts and numbers of Python."""
    if isinstance(value, dict):
        return {name: plain(one) for name, one in value.items()}
    if hasattr(value, "tolist"):
        value = value.tolist()
    if isinstance(value, list):
        return [plain(one) for one in value]
    return value


@pytest.mark.parametrize("read", [by_datasets, by_pyarrow, by_polars, by_duckdb, by_pandas])
def test_it_opens_and_says_the_same(encoded: Path, read: Any) -> None:
    parts = encoded_manifest(encoded)["parts"]
    tables = [pq.ParquetFile(encoded / part["file"]).read() for part in parts]
    expected = [row for table in tables for row in table.to_pylist()]
    assert len(expected) > 20
    assert [plain(row) for row in read(encoded)] == expected


def test_a_training_loop_takes_batches_while_it_streams(encoded: Path) -> None:
    stream = datasets.load_dataset(str(encoded), split="train", streaming=True)
    tokens = 0
    for batch in stream.batch(batch_size=8):
        longest = max(batch["num_tokens"])
        inputs = np.zeros((len(batch["input_ids"]), longest), np.int64)
        for row, ids in enumerate(batch["input_ids"]):
            inputs[row, : len(ids)] = ids
        assert inputs.max() < 320
        tokens += sum(batch["num_tokens"])
    totals = json.loads((encoded / "manifest.json").read_bytes())["totals"]
    assert tokens == totals["tokens"]
