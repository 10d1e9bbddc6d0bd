"""Superwords of real corpora: the merges that the published implementation learns.

``../shared/superwords`` has its merges with their counts, in GPT-2's spelling of bytes.
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import bpe
from bpe.byte_alphabet import from_text
from tests.bpe.huggingface import written
from tests.bpe.oracle import known, training_of
from tests.shared_data import LONG, shared_file

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from bpe.training_report import TrainedMerge

Merge = tuple[bytes, bytes, int]


def published(name: str) -> list[Merge]:
    """The merges of a file, in order."""
    lines = shared_file(f"superwords/{name}.tsv").read_text("utf-8").splitlines()
    rows = [line.split("\t") for line in lines]
    return [(from_text(left), from_text(right), int(count)) for left, right, count in rows]


def learnt(merges: Iterable[TrainedMerge]) -> list[Merge]:
    """The same of merges that were trained."""
    return [(merge.left, merge.right, merge.count) for merge in merges]


def texts_of(corpus: str) -> pa.ChunkedArray:
    """All documents of a corpus."""
    return pq.read_table(shared_file(f"corpora/{corpus}.parquet"), columns=["text"])["text"]


def counted(corpus: str) -> bpe.PretokenCounts:
    """The words of all documents of a corpus."""
    return bpe.count_pretokens(texts_of(corpus), pretokenizer="o200k")


@pytest.mark.shared
def test_word_merges_of_disjoint_pairs() -> None:
    expected = published("en.word.head")
    tokenizer = bpe.train(counted("en"), max_merges=len(expected), pair_counts="disjoint")
    assert learnt(training_of(tokenizer).merges) == expected


@functools.cache
def words_and_runs(corpus: str) -> tuple[bpe.Tokenizer, bpe.PretokenCounts]:
    """The word tokenizer of the published files, and its runs."""
    words = bpe.train(counted(corpus), max_merges=16_141, pair_counts="disjoint")
    return words, bpe.count_runs(texts_of(corpus), tokenizer=words)


CORPORA = ["multi", pytest.param("en", marks=pytest.mark.long)]


@pytest.mark.shared
@pytest.mark.parametrize("corpus", CORPORA)
def test_superbpe(corpus: str) -> None:
    words, runs = words_and_runs(corpus)
    expected = published(f"{corpus}.superbpe")
    tokenizer = bpe.train_superwords(runs, tokenizer=words, superwords=len(expected))
    assert learnt(known(training_of(tokenizer).superwords).merges) == expected
    assert tokenizer.merges == words.merges
    assert len(tokenizer) == len(words) + len(expected)


@pytest.mark.shared
@pytest.mark.parametrize("settings", [{"superwords": 8192}, {"boundless": True}])
@pytest.mark.parametrize("corpus", CORPORA)
def test_hugging_faces_file_gives_the_same_ids(
    tmp_path: Path, corpus: str, settings: dict[str, Any]
) -> None:
    words, runs = words_and_runs(corpus)
    tokenizer = bpe.train_superwords(runs, tokenizer=words, **settings)
    tokenizer.save(tmp_path)
    assert bpe.Tokenizer.load(tmp_path).text_sha256 == tokenizer.text_sha256
    texts = [str(text) for text in texts_of(corpus)[:: 1 if LONG else 40]]
    for form in (tokenizer, tokenizer.approximate()):
        theirs = written(form)
        for first in range(0, len(texts), 1000):
            some = texts[first : first + 1000]
            encoded = theirs.encode_batch(some, add_special_tokens=False)
            assert [one.ids for one in encoded] == form.encode_batch(some)


@pytest.mark.shared
@pytest.mark.parametrize(
    ("corpus", "kept"), [("multi", 15_339), pytest.param("en", 13_550, marks=pytest.mark.long)]
)
def test_boundless(corpus: str, kept: int) -> None:
    words, runs = words_and_runs(corpus)
    tokenizer = bpe.train_superwords(runs, tokenizer=words, boundless=True)
    expected = published(f"{corpus}.boundlessbpe")
    assert learnt(known(training_of(tokenizer).superwords).merges) == expected
    assert len(tokenizer.merges) == kept
    assert len(tokenizer) == len(words)
