"""Drift of appended text: the figures, the rows, the warnings."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

import bpe
from pipelines.encode.drift import (
    Measured,
    drift_rows,
    note_drift,
    trained_bytes_per_token,
)
from pipelines.errors import InputError
from pipelines.settings import DriftSettings
from tests.cli.process import bpe as run
from tests.pipelines.corpora import write_jsonl

if TYPE_CHECKING:
    from pathlib import Path

NOW = 1_795_000_000.0  # 2026-11-18


def note(folder: Path, measured: Measured, *, trained: float | None, after: float) -> list[str]:
    """Note it some seconds later."""
    return note_drift(str(folder), [measured], DriftSettings(), trained=trained, now=NOW + after)


def test_rows_hold_what_came_since_the_row_before(tmp_path: Path) -> None:
    first = Measured(text_bytes=400, tokens=100, single_byte_tokens=20)
    assert note(tmp_path, first, trained=4.0, after=0) == []
    more = first + Measured(text_bytes=100, tokens=100, single_byte_tokens=90)
    assert note(tmp_path, first, trained=4.0, after=30) == []  # nothing new
    (warning,) = note(tmp_path, more, trained=4.0, after=61)
    assert (
        warning == "1.00 bytes per token, below 0.8 of the 4.00 that the tokenizer was trained to"
    )
    assert note(tmp_path, first, trained=4.0, after=70) == []  # a smaller file in another's place
    last = first + Measured(text_bytes=8, tokens=2)
    assert note(tmp_path, last, trained=4.0, after=86_400) == []
    rows = drift_rows(str(tmp_path))
    assert [row["text_bytes"] for row in rows] == [400, 100, 0, 8]
    assert [row["single_byte_share"] for row in rows] == [0.2, 0.9, None, 0.0]
    assert rows[0]["time"] == "2026-11-18T11:06:40Z"
    assert sorted(path.name for path in (tmp_path / "drift").iterdir()) == [
        "2026-11-18.jsonl",
        "2026-11-19.jsonl",
    ]


def test_without_a_training_the_first_row_is_the_measure(tmp_path: Path) -> None:
    first = Measured(text_bytes=300, tokens=100)
    assert note(tmp_path, first, trained=None, after=0) == []
    more = first + Measured(text_bytes=100, tokens=100)
    assert note(tmp_path, more, trained=None, after=1)


@pytest.mark.parametrize("superwords", [False, True])
def test_appending_measures_and_warns(tmp_path: Path, superwords: bool) -> None:
    texts = ["low lower lowest new newer newest " * 30] * 20
    counts = bpe.count_pretokens(texts)
    counts.save(tmp_path / "counts")
    tokenizer = bpe.train(counts, vocab_size=300)
    if superwords:
        runs = bpe.count_runs(texts, tokenizer=tokenizer)
        boundless = bpe.train_superwords(runs, tokenizer=tokenizer, boundless=True)
        assert trained_bytes_per_token(str(saved(boundless, tmp_path / "boundless"))) is None
        tokenizer = bpe.train_superwords(runs, tokenizer=tokenizer, superwords=5)
    model = saved(tokenizer, tmp_path / "model")
    trained = trained_bytes_per_token(str(model))
    assert trained == sum(map(len, texts)) / sum(map(len, tokenizer.encode_batch(texts)))
    text = "low lower" + " ξένο" * 3
    write_jsonl(tmp_path / "in" / "a.jsonl", [text])
    (tmp_path / "append.yaml").write_text(
        "append: true\ninput: in\nwarn_single_bytes: 0.5\nbaseline: counts\nwarn_unseen: 100000\n"
    )
    done = run(
        *("encode", "--config", "append.yaml", "--tokenizer", model, "--output", "ids", "--quiet"),
        cwd=tmp_path,
    )
    (row,) = drift_rows(str(tmp_path / "ids"))
    ids = tokenizer.encode(text)
    assert row["trained_bytes_per_token"] == trained
    assert row["bytes_per_token"] == len(text.encode()) / len(ids)
    singles = sum(len(tokenizer.token_bytes(one)) == 1 for one in ids)
    assert row["single_byte_share"] == singles / len(ids)
    assert row["unseen_per_million"] == 1e6 * 3 / 5
    fit, single_bytes, unseen = row["warnings"]
    assert "bytes per token, below 0.8 of the" in fit
    assert single_bytes.endswith("% of the tokens are single bytes, more than 50.0%")
    assert unseen == "600,000 in a million pre-tokens were not seen in training, more than 100,000"
    assert done.stderr.count("the tokenizer fits new text less well") == 3


def saved(tokenizer: bpe.Tokenizer, folder: Path) -> Path:
    """The file of a tokenizer, beside which the report of its training is."""
    folder.mkdir()
    tokenizer.save(folder / "tokenizer.json", dialect="beam-bpe")
    assert tokenizer.training is not None
    tokenizer.training.save(folder / "training.json")
    return folder / "tokenizer.json"


@pytest.mark.parametrize("row", ['{"bytes_per_token": 3.0}', '{"sums": {"tokens": "x"}}', "[1]"])
def test_a_row_that_was_edited_is_named(tmp_path: Path, row: str) -> None:
    (tmp_path / "drift").mkdir()
    (tmp_path / "drift" / "2026-01-01.jsonl").write_text(row + "\n", "utf-8")
    with pytest.raises(InputError, match="drift: a row is damaged"):
        note(tmp_path, Measured(), trained=None, after=0)
