"""A record of many megabytes, below the limit, is one like any other."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import numpy as np
import pyarrow.parquet as pq
import pytest

import bpe as core
from tests.cli.process import bpe

if TYPE_CHECKING:
    from pathlib import Path

# Cut alike wherever it is: it begins with a letter and ends with a line break before one.
UNIT = "The quick brown fox, 1984 times, jumps over the lazy dog; naïve café — 東京 🙂 don't stop\n"
UNITS = 2_000_000  # of the record: 200 MB
SECONDS = 1800  # on a machine that is busy


@pytest.mark.long
@pytest.mark.parametrize("kind", ["jsonl", "txt"])
def test_it_is_counted_and_encoded(tmp_path: Path, kind: str) -> None:
    unit = UNIT if kind == "txt" else json.dumps(UNIT, ensure_ascii=False)[1:-1]
    begin, end = ("", "") if kind == "txt" else ('{"text": "', '"}\n')
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / f"one.{kind}").write_text(begin + unit * UNITS + end, "utf-8")
    config = tmp_path / "job.yaml"
    settings = {"input": str(tmp_path / "in"), "output": str(tmp_path / "out"), "vocab_size": 300}
    config.write_text(json.dumps(settings))
    bpe("run", config, "--workers", "2", "--quiet", seconds=SECONDS)
    counts = core.PretokenCounts.load(tmp_path / "out" / "counts")
    of_unit = core.count_pretokens([UNIT]).items()
    assert dict(counts.items()) == {pretoken: UNITS * count for pretoken, count in of_unit}
    tokenizer = core.Tokenizer.load(tmp_path / "out" / "tokenizer.json")
    parts = sorted((tmp_path / "out" / "encoded").glob("data/train-*.parquet"))
    (row,) = (row for part in parts for row in pq.read_table(part)["input_ids"])
    expected = np.array(tokenizer.encode(UNIT), np.uint16)
    ids = row.values.to_numpy()
    assert len(ids) == UNITS * len(expected)
    assert (ids.reshape(UNITS, -1) == expected).all()
