"""Counting the elements of a PCollection, writing counts, reading them, training on them."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import apache_beam as beam
import pyarrow as pa
import pytest
from apache_beam.testing.util import equal_to

import bpe
from bpe.counts import PretokenCounts
from pipelines import (
    CountPretokens,
    ReadCounts,
    TrainTokenizer,
    WriteCounts,
    batches,
)
from pipelines.transforms import counting
from tests.pipelines.beam_runs import assert_that, both_modes, pipeline
from tests.pipelines.corpora import sentence, tree

if TYPE_CHECKING:
    from pathlib import Path

TEXTS = [sentence(i) for i in range(100)] + [""]


def pairs(texts: list[Any], **settings: Any) -> list[tuple[bytes, int]]:
    return list(bpe.count_pretokens(texts, **settings).items())


# Counting.


@both_modes
def test_texts_are_counted(mode: str) -> None:
    settings: dict[str, dict[str, Any]] = {
        "default": {},
        "words": {"pretokenizer": "words", "special_tokens": ["fox"]},
        "pattern": {"pattern": r"\w+", "normalizer": ["lowercase"]},
        "never split": {"pretokenizer": "words", "never_split": ["url"]},
    }
    with pipeline(mode) as p:
        texts = p | beam.Create(TEXTS)
        for name, given in settings.items():
            counts = texts | name >> CountPretokens(**given)
            assert counts.element_type == beam.typehints.Tuple[bytes, int]
            assert_that(counts, equal_to(pairs(TEXTS, **given)), name)


def test_elements_of_every_kind_are_counted() -> None:
    elements = [
        "low lower",
        b"low \xff",
        {"body": "low", "text": 1},
        beam.Row(body="lowest", id=1),
        pa.table({"body": ["low new", "newer"]}),
        pa.record_batch({"body": ["low"]}),
        pa.table({"body": pa.chunked_array([["a"], ["b"]])}),
    ]
    texts = [b"low lower", b"low \xff", b"low", b"lowest", b"low new", b"newer", b"low", b"a", b"b"]
    with pipeline() as p:
        counts = p | beam.Create(elements) | CountPretokens(text_field="body")
        assert_that(counts, equal_to(pairs(texts)))


def test_counts_do_not_depend_on_when_they_are_flushed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(batches, "BATCH_ROWS", 3)
    monkeypatch.setattr(counting, "FLUSH_BYTES", 0)
    with pipeline() as p:
        counts = p | beam.Create(TEXTS) | CountPretokens()
        assert_that(counts, equal_to(pairs(TEXTS)))


# Files.


@both_modes
def test_counts_are_written_and_read(mode: str, tmp_path: Path) -> None:
    cut: dict[str, Any] = {"pretokenizer": "words", "special_tokens": ["fox"]}
    with pipeline(mode) as p:
        texts = p | beam.Create(TEXTS)
        manifests = (
            texts
            | CountPretokens(**cut)
            | WriteCounts(
                str(tmp_path / "c"),
                **cut,
                documents=beam.pvalue.AsSingleton(texts | beam.combiners.Count.Globally()),
                text_bytes=sum(len(text.encode()) for text in TEXTS),
            )
        )
        totals = manifests | beam.Map(lambda one: one["totals"]["documents"])
        assert_that(totals, equal_to([len(TEXTS)]))
    expected = bpe.count_pretokens(TEXTS, **cut)
    expected.save(tmp_path / "saved")
    written = tree(tmp_path / "c")
    assert written.pop(".plan.json")
    assert written == tree(tmp_path / "saved")
    with pipeline(mode) as p:
        found = p | ReadCounts(str(tmp_path / "c"))
        assert found.element_type == beam.typehints.Tuple[bytes, int]
        assert_that(found, equal_to(list(expected.items())))


def test_totals_that_nobody_gave(tmp_path: Path) -> None:
    write = WriteCounts(str(tmp_path / "c"), pretokenizer="words", prune_below=3, shards=2)
    with pipeline() as p:
        _ = p | beam.Create([(b"low", 5), (b"new", 2), (b"low", 1)]) | write
    counts = PretokenCounts.load(tmp_path / "c")
    assert dict(counts.items()) == {b"low": 6}
    assert (counts.totals.documents, counts.totals.bytes, counts.totals.pretokens) == (0, 24, 8)
    assert counts.prune is not None
    assert counts.prune.occurrences == 2
    assert len(list((tmp_path / "c").rglob("*.parquet"))) == 2


def test_nothing_counted_is_counts_too(tmp_path: Path) -> None:
    with pipeline() as p:
        _ = p | beam.Create([]) | WriteCounts(tmp_path / "c")
    assert len(PretokenCounts.load(tmp_path / "c")) == 0
    with pipeline() as p:
        assert_that(p | ReadCounts(str(tmp_path / "c")), equal_to([]))


def test_a_directory_is_read_and_checked_when_the_pipeline_runs(tmp_path: Path) -> None:
    counts = bpe.count_pretokens(TEXTS)
    replace(counts, scale=2).save(tmp_path / "half")
    counts.save(tmp_path / "c")
    part = max((tmp_path / "c").rglob("*.parquet"))
    part.write_bytes(part.read_bytes()[:-9] + b"x" * 9)
    for name, message in (
        ("nothing", "nothing: there is no such directory"),
        ("half", "weighted, in units of 1/2"),
        ("c", "part-00015-of-00016"),
    ):
        p = pipeline()
        _ = p | ReadCounts(str(tmp_path / name))
        with pytest.raises(Exception, match=message):
            p.run()


# Training.


@both_modes
def test_training_on_elements_is_training_on_counts(
    mode: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(counting, "_GATHERED", 7)
    cut: dict[str, Any] = {"pretokenizer": "o200k", "special_tokens": ["<|end|>"]}
    with pipeline(mode) as p:
        counts = p | beam.Create(TEXTS) | beam.Reshuffle() | CountPretokens(**cut)
        trained = counts | TrainTokenizer(vocab_size=320, ties="bytes-max", **cut)
        assert trained.element_type == bpe.Tokenizer
        expected = bpe.train(bpe.count_pretokens(TEXTS, **cut), vocab_size=320, ties="bytes-max")
        shuffled = trained | "Shuffle" >> beam.Reshuffle()
        found = shuffled | "Training" >> beam.Map(lambda one: (one, one.training.merges))
        assert expected.training is not None
        assert_that(found, equal_to([(expected, expected.training.merges)]))


@pytest.mark.parametrize(
    ("elements", "message"),
    [
        ([], "there are no counts to train on"),
        ([(b"low", 1, 1)], r"TrainTokenizer takes \(pre-token, count\).*CountPretokens"),
    ],
)
def test_there_must_be_counts_to_train_on(elements: list[Any], message: str) -> None:
    with pytest.raises(Exception, match=message), pipeline() as p:
        _ = p | beam.Create(elements) | TrainTokenizer(vocab_size=300)
