"""Jobs that count with patterns never split, pruning and weights."""

from __future__ import annotations

import json
from dataclasses import asdict, replace
from typing import TYPE_CHECKING

import pytest

import bpe
from bpe.counts import PretokenCounts
from pipelines.errors import InputError, JobError, VerificationError
from pipelines.output.names import manifest_bytes
from pipelines.settings import CountsInput, InputSettings, PretokenSettings, TrainSettings
from tests import jobs
from tests.pipelines.corpora import count, train

if TYPE_CHECKING:
    from pathlib import Path

    from tests.pipelines.corpora import Corpus


def test_a_pattern_that_looks_around_ends_the_job_with_its_name(
    corpus: Corpus, tmp_path: Path
) -> None:
    way = PretokenSettings(never_split=(r"brown(?= fox)",))
    with pytest.raises(JobError, match=r"never_split 'brown\(\?= fox\)' matches 'brown' only"):
        count(corpus.inputs(), tmp_path / "c", pretokens=way)


# Pruning.


def test_rare_words_are_dropped_after_all_counts_are_added(corpus: Corpus, tmp_path: Path) -> None:
    expected = bpe.count_pretokens(corpus.texts).pruned(60)
    count(corpus.inputs(), tmp_path / "0", prune_below=60)
    assert PretokenCounts.load(tmp_path / "0") == expected
    assert expected.prune is not None
    assert expected.prune.occurrences > 0
    manifest = json.loads((tmp_path / "0" / "manifest.json").read_text())
    assert manifest["pruned"] == asdict(expected.prune)
    assert jobs.verify(directory=str(tmp_path / "0"), inputs=corpus.inputs()).compared
    manifest["pruned"]["max_pair"] += 1
    (tmp_path / "0" / "manifest.json").write_bytes(manifest_bytes(manifest))
    with pytest.raises(VerificationError, match="counting again gives"):
        jobs.verify(directory=str(tmp_path / "0"), inputs=corpus.inputs())


# Weights.


def test_weights_are_exact(tmp_path: Path) -> None:
    bpe.count_pretokens(["low low lower lowest"]).save(tmp_path / "c1")
    bpe.count_pretokens(["new newer newest wide"]).save(tmp_path / "c2")
    sources = tuple(CountsInput.parse(f"{tmp_path}/{name}") for name in ("c1:0.5", "c2:1/3"))
    train(tmp_path / "model", counts=sources, training=TrainSettings(vocab_size=265))
    counts = PretokenCounts.load(tmp_path / "c1") * 3 + PretokenCounts.load(tmp_path / "c2") * 2
    # A pair that makes less than one occurrence is not merged.
    expected = bpe.train(counts, vocab_size=265, min_frequency=6)
    assert (tmp_path / "model" / "tokenizer.json").read_text() == expected.to_json()
    training = json.loads((tmp_path / "model" / "training.json").read_text())
    assert training["counts"]["scale"] == 6


def test_weighted_counts_cannot_be_compared_with_an_input(corpus: Corpus, tmp_path: Path) -> None:
    count(corpus.inputs(), tmp_path / "c")
    counts = PretokenCounts.load(tmp_path / "c")
    replace(counts, scale=2).save(tmp_path / "half")
    assert not jobs.verify(directory=str(tmp_path / "half")).compared
    with pytest.raises(VerificationError, match="weighted, in units of 1/2"):
        jobs.verify(directory=str(tmp_path / "half"), inputs=corpus.inputs())


def test_an_empty_directory_says_that_it_is_empty(tmp_path: Path) -> None:
    (tmp_path / "empty" / "deep").mkdir(parents=True)
    with pytest.raises(InputError, match=r"the directory '.*empty' holds no files to read"):
        count(InputSettings(patterns=(str(tmp_path / "empty"),)), tmp_path / "c")
