"""The Parquet that is written opens in what people train with."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import datasets
import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow.parquet as pq
import pytest

from pipelines.settings import EncodeSettings, InputSettings
from tests.pipelines.corpora import encode, sentence, small_tokenizer
from tests.pipelines.test_keep import jsonl

END = "<|end|>"
MODES = {
    "documents": EncodeSettings(keep=("lang", "score", "tags")),
    "chunks": EncodeSettings(max_tokens=8, keep=("lang", "score", "tags"), id_type="uint32"),
    "packed": EncodeSettings(pack=16, append_token=END, keep=("lang", "score", "tags")),
}
Rows = list[dict[str, Any]]


def by_datasets(pattern: str) -> Rows:
    found = datasets.load_dataset("parquet", data_files=pattern, split="train", streaming=True)
    return list(found)


def by_polars(pattern: str) -> Rows:
    return pl.read_parquet(pattern).to_dicts()


def by_duckdb(pattern: str) -> Rows:
    with duckdb.connect() as connection:
        result = connection.execute("SELECT * FROM read_parquet(?)", [pattern])
        names = [column[0] for column in result.description]
        return [dict(zip(names, row, strict=True)) for row in result.fetchall()]


def by_pandas(pattern: str) -> Rows:
    frames = [pd.read_parquet(path) for path in sorted(Path(pattern).parent.glob("part-*"))]
    records: Rows = pd.concat(frames).to_dict("records")
    return records


@pytest.fixture(scope="module", params=MODES)
def encoded(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> str:
    folder = tmp_path_factory.mktemp("open")
    records: Rows = [
        {"text": sentence(i), "lang": f"l{i % 3}", "score": i / 2, "tags": ["a"] * (i % 4)}
        for i in range(60)
    ]
    jsonl(folder / "in" / "docs.jsonl", records)
    small_tokenizer(folder / "t.json")
    inputs = InputSettings(patterns=(str(folder / "in"),), split_size=2000)
    encode(inputs, folder / "t.json", folder / "ids", encoding=MODES[request.param])
    return str(folder / "ids" / "part-*.parquet")


def plain(value: Any) -> Any:
    """What a library gives, as lists, dicts and numbers of Python."""
    if isinstance(value, dict):
        return {name: plain(one) for name, one in value.items()}
    if hasattr(value, "tolist"):
        value = value.tolist()
    if isinstance(value, list):
        return [plain(one) for one in value]
    return value


@pytest.mark.parametrize("read", [by_datasets, by_polars, by_duckdb, by_pandas])
def test_it_opens_and_says_the_same(encoded: str, read: Any) -> None:
    expected = pq.ParquetDataset(sorted(Path(encoded).parent.glob("part-*"))).read().to_pylist()
    assert len(expected) > 20
    assert [plain(row) for row in read(encoded)] == expected


def test_a_training_loop_takes_batches_while_it_streams(encoded: str) -> None:
    stream = datasets.load_dataset("parquet", data_files=encoded, split="train", streaming=True)
    tokens = 0
    for batch in stream.batch(batch_size=8):
        longest = max(batch["num_tokens"])
        inputs = np.zeros((len(batch["input_ids"]), longest), np.int64)
        for row, ids in enumerate(batch["input_ids"]):
            inputs[row, : len(ids)] = ids
        assert inputs.max() < 320
        tokens += sum(batch["num_tokens"])
    totals = json.loads((Path(encoded).parent / "manifest.json").read_bytes())["totals"]
    assert tokens == totals["tokens"]
