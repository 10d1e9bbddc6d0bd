"""Reading files as elements, and encoding elements."""

from __future__ import annotations

import json
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple, get_args
from unittest.mock import patch

import apache_beam as beam
import numpy as np
import pyarrow as pa
import pytest
from apache_beam.testing.util import equal_to
from apache_beam.transforms.window import FixedWindows, SlidingWindows

import bpe
from pipelines import (
    CountPretokens,
    EncodeDocuments,
    ReadDocuments,
    TrainTokenizer,
    batches,
)
from pipelines.batches import fields_of
from pipelines.tables import Table
from pipelines.tokenizer_files import load_tokenizer
from pipelines.transforms import encoding
from pipelines.transforms.encoding import load_given
from tests.pipelines.beam_runs import (
    assert_that,
    at_times,
    both_modes,
    pipeline,
    windowed,
)
from tests.pipelines.corpora import Corpus, sentence, write_rows

if TYPE_CHECKING:
    from pathlib import Path

TEXTS = [sentence(i) for i in range(60)] + [""]


class Named(NamedTuple):
    text: str
    lang: str


def plain(encoded: Any) -> Any:
    """(text, ids) of each row."""
    return encoded | "Plain" >> beam.Map(lambda row: (row.text, row.input_ids))


# Reading.


@both_modes
def test_documents_are_those_of_the_corpus(mode: str, corpus: Corpus) -> None:
    with pipeline(mode) as p:
        documents = p | ReadDocuments([*corpus.patterns], split_size=700)
        found = documents | beam.Map(lambda document: (document.id, document.text))
        assert_that(found, equal_to(corpus.documents))
        tables = p | "Tables" >> ReadDocuments(corpus.patterns, split_size=700, as_tables=True)
        assert issubclass(tables.element_type, pa.Table)
        rows = tables | beam.FlatMap(lambda one: [tuple(row.values()) for row in one.to_pylist()])
        assert_that(rows, equal_to(corpus.documents), "tables")


@both_modes
def test_tables_cross_a_shuffle_as_they_are(mode: str, tokenizer: bpe.Tokenizer) -> None:
    table = pa.table(
        {
            "text": pa.chunked_array([["low", "new"], ["fox"]]),
            "lang": pa.array(["en", None, "en"]).dictionary_encode(),
        }
    )
    ids = [tokenizer.encode(text) for text in table["text"].to_pylist()]
    expected = table.append_column("input_ids", pa.array(ids, pa.list_(pa.uint16())))
    with pipeline(mode) as p:
        tables = p | beam.Create([table, table.slice(1, 2)]).with_output_types(pa.Table)
        encoded = tables | EncodeDocuments(tokenizer=tokenizer)
        assert issubclass(encoded.element_type, pa.Table)
        assert_that(encoded, equal_to([expected, expected.slice(1)]))


def test_a_slice_of_a_table_is_as_long_as_it_looks() -> None:
    coder = beam.coders.registry.get_coder(Table)
    sliced = pa.table({"text": ["low " * 100] * 1000}).slice(3, 1)
    assert len(coder.encode(sliced)) < 2000
    assert coder.estimate_size(sliced) < 2000
    assert coder.to_type_hint() is Table


def test_columns_are_kept_whatever_their_names(tmp_path: Path) -> None:
    first = {"body": "low", "n": 7, "lang": "en", "tags": ["x"], "class": 1}
    second = {"body": "new", "n": 8, "a key": "k", "tags": []}
    write_rows(tmp_path / "a.jsonl", [first, second])
    place = len(json.dumps(first)) + 1
    keep = ["lang:string", "n", "tags:list<string>"]
    expected = [["a.jsonl:0", "low", "en", 7, ["x"]], [f"a.jsonl:{place}", "new", None, 8, []]]
    with pipeline() as p:
        read = partial(ReadDocuments, [str(tmp_path)], text_field="body")
        tables = p | "Tables" >> read(keep=keep, as_tables=True)
        values = tables | beam.FlatMap(lambda one: [[*row.values()] for row in one.to_pylist()])
        assert_that(values, equal_to(expected), "tables")
        documents = p | read(keep=keep)
        schema = beam.typehints.schemas.named_fields_from_element_type(documents.element_type)
        assert [name for name, _ in schema] == ["id", "text", "lang", "n", "tags"]
        assert set(get_args(dict(schema)["lang"])) == {str, type(None)}
        values = documents | beam.Map(lambda one: [*one.as_dict().values()])
        assert_that(values, equal_to(expected))
        odd = p | "Odd names" >> read(keep=["a key:string", "class:int64"]) | beam.Reshuffle()
        values = odd | "Odd values" >> beam.Map(lambda one: [*one.as_dict().items()][2:])
        pairs = [[("a key", None), ("class", 1)], [("a key", "k"), ("class", None)]]
        assert_that(values, equal_to(pairs), "odd names")


@both_modes
def test_bad_records_have_an_output_of_their_own(mode: str, tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text('{"text": "low"}\nno json\n{"text": 1}\n')
    with pipeline(mode) as p:
        documents, bad = p | ReadDocuments([str(tmp_path)]).with_exception_handling()
        texts = documents | beam.Map(lambda document: document.text)
        assert_that(texts, equal_to(["low"]))
        records = bad | beam.Reshuffle() | "Record" >> beam.Map(lambda one: one[0])
        found = records | "Bad" >> beam.Map(lambda one: (one.name, one.place, one.raw))
        expected = [("a.jsonl", 16, b"no json"), ("a.jsonl", 24, b'{"text": 1}')]
        assert_that(found, equal_to(expected), label="bad")
    ends = r"a\.jsonl, record at byte 16: .*with_exception_handling"
    with pytest.raises(Exception, match=ends), pipeline() as p:
        _ = p | ReadDocuments([str(tmp_path)])
    message = r"exceeded threshold: 2 / 3 = 0\.6+. > 0\.6"
    with pytest.raises(Exception, match=message), pipeline() as p:
        _ = p | ReadDocuments([str(tmp_path)]).with_exception_handling(threshold=0.6)


def test_files_are_looked_for_when_the_pipeline_runs(tmp_path: Path) -> None:
    with pipeline() as p:
        documents = p | ReadDocuments([str(tmp_path / "*.txt")], format="lines")
        assert_that(documents | beam.Map(lambda one: one.text), equal_to(["low", "new"]))
        (tmp_path / "later.txt").write_text("low\nnew\n")
    with pytest.raises(Exception, match="no file matches"), pipeline() as p:
        _ = p | ReadDocuments([str(tmp_path / "*.jsonl")])


# Encoding.


@both_modes
def test_texts_are_encoded_whatever_the_batches(
    mode: str, model: Path, tokenizer: bpe.Tokenizer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(batches, "BATCH_BYTES", 3)
    with pipeline(mode) as p:
        encoded = p | beam.Create(TEXTS) | EncodeDocuments(tokenizer=str(model))
        assert_that(plain(encoded), equal_to([(text, tokenizer.encode(text)) for text in TEXTS]))
        kinds = encoded | "Kinds" >> beam.Map(lambda row: {type(one) for one in row.input_ids})
        assert_that(kinds, equal_to([{int}] * (len(TEXTS) - 1) + [set()]), label="kinds")


def test_elements_of_every_kind_keep_what_they_are(tokenizer: bpe.Tokenizer) -> None:
    ids = tokenizer.encode("low fox")
    lists = pa.array([ids], pa.list_(pa.uint16()))
    given = {"text": "low fox", "lang": "en"}
    pairs = [
        ("low fox", beam.Row(text="low fox", input_ids=ids)),
        (b"low fox", beam.Row(text=b"low fox", input_ids=ids)),
        (given, {**given, "input_ids": ids}),
        (beam.Row(**given), beam.Row(**given, input_ids=ids)),
        (Named(**given), beam.Row(**given, input_ids=ids)),
        (pa.table({"text": ["low fox"]}), pa.table({"text": ["low fox"], "input_ids": lists})),
        (
            pa.record_batch({"text": ["low fox"]}),
            pa.table({"text": ["low fox"], "input_ids": lists}),
        ),
    ]
    with pipeline() as p:
        elements = p | beam.Create([one for one, _ in pairs], reshuffle=False)
        encoded = elements | EncodeDocuments(tokenizer=tokenizer)
        assert_that(encoded, equal_to([expected for _, expected in pairs]))
    assert given == {"text": "low fox", "lang": "en"}


def test_fields_have_the_names_given(tokenizer: bpe.Tokenizer) -> None:
    encode = EncodeDocuments(
        tokenizer=tokenizer,
        text_field="body",
        output_field="ids",
        append_token="<|end|>",
        allowed_special=["<|end|>"],
    )
    end = tokenizer.special_tokens["<|end|>"]
    with pipeline() as p:
        rows = p | beam.Create([{"body": "fox<|end|>", "ids": "old"}]) | encode
        ids = [*tokenizer.encode("fox"), end, end]
        assert_that(rows, equal_to([{"body": "fox<|end|>", "ids": ids}]))
        texts = p | "Texts" >> beam.Create(["fox"]) | "Encode texts" >> encode
        assert_that(texts | beam.Map(lambda row: row.body), equal_to(["fox"]), label="texts")
        replace = EncodeDocuments(tokenizer=tokenizer, output_field="text")
        more = p | "More" >> beam.Create(["fox", {"text": "fox"}]) | "Replace" >> replace
        found = more | beam.Map(lambda row: fields_of(row, "text")["text"])
        assert_that(found, equal_to([tokenizer.encode("fox")] * 2), label="replaced")


@both_modes
def test_elements_keep_their_windows_and_times(mode: str, tokenizer: bpe.Tokenizer) -> None:
    elements = [("low", 1.0), ("fox", 9.5), ("", 10.0), ("dog", 25.0)]
    with pipeline(mode) as p:
        texts = p | at_times(*elements) | beam.WindowInto(SlidingWindows(10, 5))
        found = windowed(plain(texts | EncodeDocuments(tokenizer=tokenizer)))
        expected = [
            ((text, tokenizer.encode(text)), start, time)
            for text, time in elements
            for start in (time // 5 * 5 - 5, time // 5 * 5)
        ]
        assert_that(found, equal_to(expected))


# The tokenizer.


@pytest.mark.parametrize(("id_type", "dtype"), [("auto", "uint16"), ("uint32", "uint32")])
def test_ids_are_arrays_on_request(id_type: Any, dtype: str, tokenizer: bpe.Tokenizer) -> None:
    with pipeline() as p:
        encode = EncodeDocuments(tokenizer=tokenizer, as_numpy=True, id_type=id_type)
        rows = p | beam.Create(TEXTS[:3], reshuffle=False) | encode
        owned = rows | "Owned" >> beam.Map(lambda row: row.input_ids.base is None)
        assert_that(owned, equal_to([True] * 3), label="no batch is kept alive")
        shuffled = rows | beam.Reshuffle()
        found = shuffled | beam.Map(lambda row: (row.input_ids.dtype, row.input_ids.tolist()))
        expected = [(np.dtype(dtype), tokenizer.encode(text)) for text in TEXTS[:3]]
        assert_that(found, equal_to(expected))


@pytest.mark.parametrize("wrapped", [False, True])
def test_each_window_is_encoded_with_its_own_tokenizer(wrapped: bool) -> None:
    elements = [("low low lower", 1.0), ("new newer new", 11.0), ("lowest", 2.0)]
    first, second = (
        bpe.train(bpe.count_pretokens(texts), vocab_size=258)
        for texts in (["low low lower", "lowest"], ["new newer new"])
    )
    with pipeline() as p:
        texts = p | at_times(*elements) | beam.WindowInto(FixedWindows(10))
        trained = texts | CountPretokens() | TrainTokenizer(vocab_size=258)
        given = beam.pvalue.AsSingleton(trained) if wrapped else trained
        expected = [
            (text, (first if time < 10 else second).encode(text)) for text, time in elements
        ]
        assert_that(plain(texts | EncodeDocuments(tokenizer=given)), equal_to(expected))


def test_the_tokenizer_is_loaded_once_in_a_process(model: Path, tokenizer: bpe.Tokenizer) -> None:
    with (
        patch.object(encoding, "load_tokenizer", wraps=load_tokenizer) as load,
        pipeline("multi_threading") as p,
    ):
        texts = p | beam.Create(TEXTS) | beam.Reshuffle()
        encoded = plain(texts | EncodeDocuments(tokenizer=model))
        assert_that(encoded, equal_to([(text, tokenizer.encode(text)) for text in TEXTS]))
    load.assert_called_once_with(str(model))


def test_each_sliding_window_has_one_encoder_in_a_bundle() -> None:
    init = batches.IdEncoder.__init__
    with (
        patch.object(batches.IdEncoder, "__init__", autospec=True, side_effect=init) as made,
        pipeline() as p,
    ):
        texts = p | at_times(*((f"low {n}", 10.0 + n) for n in range(20)))
        texts |= beam.WindowInto(SlidingWindows(40, 10))
        trained = texts | CountPretokens() | TrainTokenizer(vocab_size=258)
        _ = texts | EncodeDocuments(tokenizer=trained)
    assert 0 < made.call_count <= 2 * 6  # windows of the elements, and bundles


def test_a_tokenizer_goes_to_workers_without_its_training() -> None:
    trained = bpe.train(bpe.count_pretokens(TEXTS), vocab_size=300)
    loaded = load_given(EncodeDocuments(tokenizer=trained)._given, "EncodeDocuments")
    assert (loaded, loaded.training) == (trained, None)


def test_a_path_is_read_by_the_workers(tmp_path: Path, tokenizer: bpe.Tokenizer) -> None:
    with pipeline() as p:
        encode = EncodeDocuments(tokenizer=str(tmp_path / "later.json"))
        encoded = plain(p | beam.Create(["fox"]) | encode)
        assert_that(encoded, equal_to([("fox", tokenizer.encode("fox"))]))
        tokenizer.save(tmp_path / "later.json")
    encode = EncodeDocuments(tokenizer=str(tmp_path / "later.json"), append_token="<|eos|>")
    message = r"`append_token`: '<\|eos\|>' is not a special token"
    with pytest.raises(Exception, match=message), pipeline() as p:
        _ = p | beam.Create(["fox"]) | encode


@pytest.mark.parametrize(
    ("number", "wrapped", "message"),
    [
        (0, False, "the side input holds no tokenizer in the window"),
        (2, False, "holds 2 values in one window: a trigger fired several"),
        (2, True, "holds 2 values in one window: a trigger fired several"),
    ],
)
def test_a_side_input_holds_one_tokenizer(
    number: int, wrapped: bool, message: str, tokenizer: bpe.Tokenizer
) -> None:
    p = pipeline()
    held: Any = p | "Held" >> beam.Create([tokenizer] * number, reshuffle=False)
    held = beam.pvalue.AsSingleton(held) if wrapped else held
    _ = p | beam.Create(["low"]) | EncodeDocuments(tokenizer=held)
    with pytest.raises(Exception, match=message):
        p.run()
