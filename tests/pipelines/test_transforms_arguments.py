"""Arguments of the transforms: refused when one is made or applied, before a pipeline runs."""

from __future__ import annotations

import inspect
from pathlib import Path
from typing import Any

import apache_beam as beam
import pytest
from apache_beam.transforms.display import DisplayData
from apache_beam.transforms.trigger import AccumulationMode, AfterCount, Repeatedly
from apache_beam.transforms.window import FixedWindows

import bpe
from pipelines import (
    BPETokenize,
    CountCorpus,
    CountPretokens,
    EncodeCorpus,
    EncodeDocuments,
    MeasureDrift,
    MixCounts,
    ReadCounts,
    ReadDocuments,
    TrainTokenizer,
    WriteCounts,
    WriteTokenIds,
)
from pipelines.errors import ConfigError
from pipelines.option import declared
from pipelines.settings import CountSettings, InputSettings, PretokenSettings, TrainSettings
from tests.pipelines.beam_runs import pipeline

TINY = bpe.train(bpe.count_pretokens(["aa"]), vocab_size=257)
GOOD: dict[Any, dict[str, Any]] = {
    BPETokenize: {"columns": ["text"], "tokenizer": "t.json"},
    CountCorpus: {"inputs": ["docs.jsonl"], "output": "out"},
    CountPretokens: {},
    EncodeCorpus: {"inputs": ["docs.jsonl"], "output": "ids", "tokenizer": "not there yet.json"},
    EncodeDocuments: {"tokenizer": "t.json"},
    MeasureDrift: {"tokenizer": "t.json"},
    MixCounts: {"shares": {"web": "100%"}},
    ReadCounts: {"path": "c"},
    ReadDocuments: {"patterns": ["a.txt"]},
    TrainTokenizer: {"vocab_size": 300},
    WriteCounts: {"path": "c"},
    WriteTokenIds: {"path": "ids", "tokenizer": "t.json"},
}


@pytest.mark.parametrize(
    ("transform", "arguments", "message"),
    [
        (BPETokenize, {"columns": "text"}, "columns is one string"),
        (BPETokenize, {"columns": []}, "columns is empty"),
        (BPETokenize, {"columns": [""]}, "columns is ''"),
        (BPETokenize, {"tokenizer": None}, "tokenizer is None"),
        (CountCorpus, {"special_tokens": "<|end|>"}, "special_tokens is one string"),
        (CountCorpus, {"inputs": []}, "no input"),
        (CountPretokens, {"pretokenizer": "gpt3"}, "'gpt3' is unknown .did you"),
        (CountPretokens, {"pattern": "("}, "does not compile|missing"),
        (CountPretokens, {"special_tokens": [""]}, "`special_tokens` is empty"),
        (CountPretokens, {"normalizer": ["nfx"]}, "`normalizer` 'nfx' is unknown"),
        (CountPretokens, {"text_field": ""}, "text_field is ''"),
        (EncodeCorpus, {"inputs": "x"}, "inputs is one string"),
        (EncodeCorpus, {"overwrite": True, "resume": True}, "`resume`"),
        (EncodeCorpus, {"dropout_seed": 8}, "`dropout_seed` needs `dropout`"),
        (EncodeDocuments, {"text_field": ""}, "text_field is ''"),
        (EncodeDocuments, {"output_field": ""}, "output_field is ''"),
        (EncodeDocuments, {"tokenizer": TINY, "append_token": "<eos>"}, "'<eos>' is not a special"),
        (EncodeDocuments, {"id_type": "uint8"}, "`id_type` 'uint8'"),
        (EncodeDocuments, {"allowed_special": "<|end|>"}, "allowed_special is one string"),
        (MeasureDrift, {"baseline": 123}, "give a directory of counts"),
        (MixCounts, {"shares": {}}, "`shares` is empty"),
        (MixCounts, {"shares": {"web": "most"}}, "'most' is not a share"),
        (MixCounts, {"of": "tokens"}, "shares are of bytes or pretokens"),
        (ReadCounts, {"path": ""}, "the path is empty"),
        (ReadDocuments, {"patterns": []}, "no input"),
        (ReadDocuments, {"format": "csv"}, "`format` 'csv' is unknown"),
        (ReadDocuments, {"keep": "lang"}, "keep is one string"),
        (ReadDocuments, {"keep": ["id"]}, "`keep` id: a document has a column of that name"),
        (TrainTokenizer, {"vocab_size": None}, "no limit"),
        (TrainTokenizer, {"ties": "random"}, "`ties` 'random' is unknown"),
        (TrainTokenizer, {"ties": "first-seen"}, "'first-seen': the elements .* have no order"),
        (WriteCounts, {"path": ""}, "`output` is empty"),
        (WriteCounts, {"prune_below": 0}, "`prune_below` 0 is out of range"),
        (WriteTokenIds, {"tokenizer": None}, "tokenizer is None: give the path"),
        (WriteTokenIds, {"parts": 0}, "parts 0 is not between"),
        (WriteTokenIds, {"keep": ["lang"]}, "keep lang: say its type"),
        (WriteTokenIds, {"keep": ["input_ids:string"]}, "has a column of that name already"),
        (WriteTokenIds, {"id_field": ""}, "id_field is ''"),
    ],
)
def test_what_is_wrong_is_refused(transform: Any, arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        transform(**{**GOOD[transform], **arguments})


def test_arguments_are_keywords_that_the_settings_declare() -> None:
    count: Any = CountPretokens
    with pytest.raises(TypeError):
        count("positional")
    with pytest.raises(TypeError, match="'pretokeniser': did you mean 'pretokenizer'"):
        TrainTokenizer(vocab_size=300, pretokeniser="gpt2")
    with pytest.raises(TypeError, match="unknown argument 'track_order'"):
        WriteCounts("c", track_order=True)
    transform: Any
    for transform, classes in (
        (CountPretokens, [PretokenSettings]),
        (TrainTokenizer, [PretokenSettings, TrainSettings]),
        (WriteCounts, [PretokenSettings, CountSettings]),
        (ReadDocuments, [InputSettings]),
    ):
        given = set(inspect.signature(transform).parameters)
        options = {name for one in classes for name in declared(one)}
        across_words = {"superwords", "boundless", "prune_runs_below"}
        of_files = {"track_order", "max_failures", "group_by"}
        assert options - given <= of_files | across_words


AGAIN = {"trigger": Repeatedly(AfterCount(1)), "accumulation_mode": AccumulationMode.DISCARDING}


@pytest.mark.parametrize(
    ("transform", "windows", "message"),
    [
        (WriteCounts, {}, "WriteCounts writes one directory of a whole, bounded"),
        (WriteTokenIds, {}, "WriteTokenIds writes one directory"),
        (MeasureDrift, AGAIN, "MeasureDrift gives one row"),
        (MixCounts, AGAIN, "MixCounts weighs .*may fire several times"),
        (CountCorpus, {}, "CountCorpus reads its inputs itself"),
        (EncodeCorpus, {}, "EncodeCorpus reads its inputs itself"),
    ],
)
def test_what_a_transform_cannot_be_applied_to_is_refused(
    transform: Any, windows: dict[str, Any], message: str
) -> None:
    source = pipeline() | beam.Create([{"id": "a"}]).with_output_types(Any)
    source |= beam.WindowInto(FixedWindows(10), **windows)
    with pytest.raises(ConfigError, match=message):
        _ = ({"web": source} if transform is MixCounts else source) | transform(**GOOD[transform])


@pytest.mark.parametrize(
    ("transform", "shown"),
    [
        (
            EncodeDocuments(tokenizer=Path("t.json")),
            {"tokenizer": "t.json", "text_field": "text", "output_field": "input_ids"},
        ),
        (
            TrainTokenizer(vocab_size=300, pretokenizer="o200k"),
            {
                "pretokenizer": "o200k",
                "special_tokens": "none",
                "ties": "bytes-min",
                "vocab_size": 300,
            },
        ),
    ],
    ids=lambda one: type(one).__name__,
)
def test_a_runner_shows_what_was_asked_for(transform: Any, shown: dict[str, Any]) -> None:
    assert {one.key: one.value for one in DisplayData.create_from(transform).items} == shown
