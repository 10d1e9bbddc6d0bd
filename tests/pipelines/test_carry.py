"""What is left of packed parts, in one part more: whole jobs."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pyarrow.parquet as pq
import pytest

import bpe
from pipelines.encode.job import _with_last
from pipelines.errors import ConfigError, VerificationError
from pipelines.output.names import MAX_PARTS, manifest_bytes
from pipelines.settings import EncodeSettings, InputSettings, OutputSettings, WatchSettings
from pipelines.watch.job import watch_encode
from tests import jobs
from tests.pipelines.corpora import (
    END,
    ONE,
    TWO,
    Corpus,
    decoded,
    encode,
    sentence,
    tree,
    write_jsonl,
)

if TYPE_CHECKING:
    from pathlib import Path

CARRIED = EncodeSettings(pack=33, pack_remainder="carry", append_token=END)
HELD_OUT = replace(CARRIED, validation=0.3, shuffle=2)


def parts(directory: Path, half: str = "train") -> list[list[dict[str, Any]]]:
    return [pq.read_table(path).to_pylist() for path in sorted(directory.glob(f"data/{half}-*"))]


def test_one_row_is_short(corpus: Corpus, model: Path, tmp_path: Path) -> None:
    ids = tmp_path / "ids"
    summary = encode(corpus.inputs(), model, ids, encoding=CARRIED)
    *full, last = parts(ids)
    assert {row["num_tokens"] for rows in full for row in rows} == {33}
    assert {row["num_tokens"] for row in last[:-1]} == {33}
    assert summary.short_rows == (last[-1]["num_tokens"] < 33)
    assert summary.rows == sum(map(len, full)) + len(last)
    tokenizer = bpe.Tokenizer.load(model)
    expected = [
        id_
        for text in corpus.texts
        for id_ in [*tokenizer.encode(text), tokenizer.special_tokens[END]]
    ]
    assert summary.tokens == len(expected)
    found = [id_ for rows in [*full, last] for row in rows for id_ in row["input_ids"]]
    assert sorted(found) == sorted(expected)
    assert decoded(ids) == corpus.documents
    encode(corpus.inputs(), model, tmp_path / "two", encoding=CARRIED, execution=TWO)
    assert tree(ids) == tree(tmp_path / "two")


def test_both_halves_of_a_shuffled_corpus(corpus: Corpus, model: Path, tmp_path: Path) -> None:
    ids = tmp_path / "ids"
    summary = encode(corpus.inputs(), model, ids, encoding=HELD_OUT, execution=TWO)
    for half in ("train", "validation"):
        *full, last = parts(ids, half)
        assert {row["num_tokens"] for rows in full for row in rows} <= {33}
        assert {row["num_tokens"] for row in last[:-1]} <= {33}
    assert summary.short_rows <= 2
    assert sorted(decoded(ids)) == sorted(corpus.documents)
    before = tree(ids)
    again = encode(corpus.inputs(), model, ids, encoding=HELD_OUT, resume=True)
    assert again.resumed_parts == summary.parts == len(list(ids.glob("data/*")))
    max(ids.glob("data/train-*")).unlink()
    encode(corpus.inputs(), model, ids, encoding=HELD_OUT, resume=True)
    assert tree(ids) == before
    for inputs in (None, corpus.inputs()):
        verified = jobs.verify(directory=str(ids), inputs=inputs)
        assert (verified.documents, verified.tokens) == (len(corpus.documents), summary.tokens)


def test_a_part_that_is_not_what_the_others_carry_is_found(model: Path, tmp_path: Path) -> None:
    for name, first in (("one", 0), ("two", 100)):
        texts = [sentence(i) for i in range(first, first + 60)]
        corpus = write_jsonl(tmp_path / name / "docs.jsonl", texts)
        encode(corpus.inputs(), model, tmp_path / f"{name} ids", encoding=CARRIED)
    one, two = (
        json.loads((tmp_path / f"{name} ids" / "manifest.json").read_bytes())
        for name in ("one", "two")
    )
    last, other = one["parts"][-1], two["parts"][-1]
    assert last["inputs"] == other["inputs"] == []
    ids = tmp_path / "one ids"
    (ids / last["file"]).write_bytes((tmp_path / "two ids" / other["file"]).read_bytes())
    for name in ("rows", "tokens", "bytes"):
        one["totals"][name] += other[name] - last[name]
    one["parts"][-1] = {**other, "file": last["file"]}
    (ids / "manifest.json").write_bytes(manifest_bytes(one))
    with pytest.raises(VerificationError, match=r"made from other inputs|row 0, document.*is"):
        jobs.verify(directory=str(ids))


def test_there_is_a_limit_for_parts() -> None:
    inputs = InputSettings(patterns=("x",))
    assert _with_last(MAX_PARTS - 1, inputs) == MAX_PARTS
    with pytest.raises(ConfigError, match="carry: the job makes 99,999 parts and one more"):
        _with_last(MAX_PARTS, inputs)


@pytest.mark.parametrize("settings", [CARRIED, EncodeSettings(shuffle=1)])
def test_a_watch_has_no_last_part(
    settings: EncodeSettings, corpus: Corpus, model: Path, tmp_path: Path
) -> None:
    with pytest.raises(ConfigError, match="does not work with a watch"):
        watch_encode(
            inputs=corpus.inputs(),
            tokenizer=str(model),
            output=OutputSettings(directory=str(tmp_path / "ids")),
            execution=ONE,
            encoding=settings,
            watch=WatchSettings(),
        )
    assert not (tmp_path / "ids").exists()
