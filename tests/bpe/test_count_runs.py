"""Counting runs of tokens: what ends a run, and what is refused."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pyarrow as pa
import pytest

import bpe
from bpe.errors import CountsError, EncodingError
from bpe.run_counting import RunCounter
from tests.bpe.models import make
from tests.bpe.oracle import known, runs_of
from tests.bpe.vocabularies import byte_tokenizer

LETTERS = byte_tokenizer(" a", " b", joins=[" |a", " |b"])


def test_ids_of_large_vocabularies_take_four_bytes() -> None:
    others = [f"{number:06d}" for number in range(1 << 16)]
    tokenizer = byte_tokenizer(*others, " a", joins=[" |a"])
    counts = bpe.count_runs(["a a a"], tokenizer=tokenizer)
    assert known(counts.runs).id_bytes == 4
    assert runs_of(counts.sorted_counts, 4) == {(97, tokenizer.max_id, tokenizer.max_id): 1}


def test_threads_share_a_counter() -> None:
    rows = pa.array(["a b" * 5, " b a b", "a"] * 50)
    counter = RunCounter(LETTERS)
    with ThreadPoolExecutor(4) as pool:
        total = sum(pool.map(lambda _: counter.add(rows), range(8)))
    (run,) = counter.drain(1)
    once = bpe.count_runs(rows, tokenizer=LETTERS)
    assert total == 8 * once.totals.pretokens
    assert runs_of(run, 2) == {ids: 8 * n for ids, n in runs_of(once.sorted_counts, 2).items()}


def test_what_is_unsuitable_is_refused() -> None:
    pieces = make(["[UNK]"], special=["[UNK]"], model=bpe.WordPiece())
    cases: list[tuple[dict[str, Any], str]] = [
        ({"tokenizer": pieces}, "byte-level tokens, the tokenizer's are WordPiece"),
        *(({"merge_pattern": one}, r"merge pattern .* does not compile") for one in ("(", None)),
        *(({"max_run": one}, "max_run") for one in (0, 1, -1, 2.0, True)),
        ({"texts": pa.array(["a", None])}, "text 1 is null"),
        ({"texts": ["\ud800"]}, "surrogate"),
    ]
    for arguments, message in cases:
        with pytest.raises((CountsError, EncodingError), match=message):
            bpe.count_runs(**{"texts": ["a"], "tokenizer": LETTERS, **arguments})
    with pytest.raises(ValueError, match="null"):
        RunCounter(LETTERS).add(pa.array([None], pa.string()))
