"""The transforms inside pipelines of other programs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import apache_beam as beam
import pytest
from apache_beam.testing.util import equal_to

import bpe
from pipelines import CountCorpus, EncodeCorpus, EncodeDocuments
from pipelines.errors import ConfigError, InputError, OutputError
from pipelines.failures import error_in
from pipelines.settings import EncodeSettings
from tests.pipelines.beam_runs import assert_that, pipeline
from tests.pipelines.corpora import (
    Corpus,
    count,
    encode,
    tree,
)

if TYPE_CHECKING:
    from pathlib import Path


def test_a_foreign_pipeline_counts_and_encodes_files(
    corpus: Corpus, model: Path, tmp_path: Path
) -> None:
    inputs = [*corpus.patterns]
    with pipeline("multi_threading") as p:
        counted = p | CountCorpus(inputs=inputs, split_size=700, output=str(tmp_path / "c"))
        encoded = p | EncodeCorpus(
            inputs=inputs,
            split_size=700,
            tokenizer=bpe.Tokenizer.load(model),  # it may travel in the graph
            output=str(tmp_path / "ids"),
            append_token="<|end|>",
            allow_special=["all"],
        )
        documents = (
            (counted, encoded) | beam.Flatten() | beam.Map(lambda m: m["totals"]["documents"])
        )
        assert_that(documents, equal_to([len(corpus.documents)] * 2))
    count(corpus.inputs(), tmp_path / "c2")
    settings = EncodeSettings(append_token="<|end|>", allow_special=("all",))
    encode(corpus.inputs(), model, tmp_path / "ids2", encoding=settings)
    assert tree(tmp_path / "c") == tree(tmp_path / "c2")
    assert tree(tmp_path / "ids") == tree(tmp_path / "ids2")


def test_what_is_wrong_is_told_when_a_foreign_pipeline_runs(
    corpus: Corpus, model: Path, tmp_path: Path
) -> None:
    (tmp_path / "c").mkdir()
    (tmp_path / "c" / "mine").touch()
    reads: dict[str, Any] = {"inputs": [*corpus.patterns]}
    encodes = {**reads, "output": str(tmp_path / "ids")}
    for transform, kind, message in (
        (CountCorpus(**reads, output=str(tmp_path / "c")), OutputError, "holds 'mine'"),
        (EncodeCorpus(**encodes, tokenizer=str(tmp_path / "no.json")), InputError, "cannot read"),
        (
            beam.Create([]) | EncodeDocuments(tokenizer=tmp_path / "no.json"),
            InputError,
            "cannot read",
        ),
        (
            EncodeCorpus(**encodes, tokenizer=str(model), append_token="<eos>"),
            ConfigError,
            "'<eos>' is not a special token",
        ),
    ):
        p = pipeline()
        _ = p | transform
        with pytest.raises(Exception, match=message) as error:
            p.run()
        assert type(error_in(error.value)) is kind
    assert not (tmp_path / "ids").exists()
