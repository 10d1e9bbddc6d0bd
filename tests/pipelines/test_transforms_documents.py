"""Reading files as elements, and encoding elements."""

from __future__ import annotations

import json
import pickle
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple, get_args

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
    tokenizer_files,
)
from pipelines.batches import fields_of
from pipelines.tables import Table
from pipelines.transforms import encoding
from tests.pipelines.beam_runs import (
    MODES,
    assert_that,
    at_times,
    both_modes,
    pipeline,
    reason_of,
    stream,
    streaming_pipeline,
    windowed,
)
from tests.pipelines.corpora import Corpus, sentence
from tests.shared_data import long_but

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
    sliced = table.slice(1, 2)
    with pipeline(mode) as p:
        tables = p | beam.Create([table, sliced]).with_output_types(pa.Table)
        encoded = tables | EncodeDocuments(tokenizer=tokenizer) | beam.Reshuffle()
        kept = encoded | beam.Map(lambda one: one.to_pylist()).with_input_types(pa.Table)
        ids = [tokenizer.encode(text) for text in table["text"].to_pylist()]
        rows = [row | {"input_ids": one} for row, one in zip(table.to_pylist(), ids, strict=True)]
        assert_that(kept, equal_to([rows, rows[1:]]))


def test_a_slice_of_a_table_is_as_long_as_it_looks() -> None:
    coder = beam.coders.registry.get_coder(Table)
    table = pa.table({"text": ["low " * 100] * 1000})
    sliced = table.slice(3, 1)
    encoded = coder.encode(sliced)
    assert coder.decode(encoded) == sliced
    assert len(encoded) < 2000
    assert coder.estimate_size(sliced) < 2000
    assert coder.to_type_hint() is Table


def jsonl(path: Path, *records: Any) -> str:
    path.write_text("".join(json.dumps(record) + "\n" for record in records))
    return str(path)


def test_columns_are_kept_whatever_their_names(tmp_path: Path) -> None:
    first = {"body": "low", "n": 7, "lang": "en", "tags": ["x"], "class": 1}
    file = jsonl(tmp_path / "a.jsonl", first, {"body": "new", "n": 8, "a key": "k", "tags": []})
    place = len(json.dumps(first)) + 1
    keep = ["lang:string", "n", "tags:list<string>"]
    expected = [["a.jsonl:0", "low", "en", 7, ["x"]], [f"a.jsonl:{place}", "new", None, 8, []]]
    with pipeline() as p:
        read = partial(ReadDocuments, [file], text_field="body")
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
        found = (
            bad
            | beam.Reshuffle()
            | "Record" >> beam.Map(lambda one: one[0])
            | "Bad" >> beam.Map(lambda record: (record.name, record.place, record.raw))
        )
        expected = [("a.jsonl", 16, b"no json"), ("a.jsonl", 24, b'{"text": 1}')]
        assert_that(found, equal_to(expected), label="bad")
    p = pipeline()
    _ = p | ReadDocuments([str(tmp_path)]).with_exception_handling(threshold=0.6)
    with pytest.raises(Exception, match=r"exceeded threshold: 2 / 3 = 0\.6+. > 0\.6"):
        p.run().wait_until_finish()


def test_a_bad_record_ends_the_pipeline(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text("no json\n")
    p = pipeline()
    _ = p | ReadDocuments([str(tmp_path)])
    with pytest.raises(Exception, match=r"a\.jsonl, record at byte 0: .*with_exception_handling"):
        p.run().wait_until_finish()


def test_files_are_looked_for_when_the_pipeline_runs(tmp_path: Path) -> None:
    p = pipeline()
    texts = (
        p | ReadDocuments([str(tmp_path / "*.txt")], format="lines") | beam.Map(lambda d: d.text)
    )
    assert_that(texts, equal_to(["low", "new"]))
    (tmp_path / "later.txt").write_text("low\nnew\n")
    p.run().wait_until_finish()
    p = pipeline()
    _ = p | ReadDocuments([str(tmp_path / "*.jsonl")])
    with pytest.raises(Exception, match="no file matches"):
        p.run().wait_until_finish()


# Encoding.


@both_modes
def test_texts_are_encoded(mode: str, model: Path, tokenizer: bpe.Tokenizer) -> None:
    with pipeline(mode) as p:
        texts = p | beam.Create(TEXTS)
        encoded = texts | EncodeDocuments(tokenizer=str(model))
        shuffled = encoded | beam.Reshuffle()
        expected = [(text, tokenizer.encode(text)) for text in TEXTS]
        assert_that(plain(shuffled), equal_to(expected))
        kinds = shuffled | "Kinds" >> beam.Map(lambda row: {type(one) for one in row.input_ids})
        some = kinds | beam.Filter(bool)
        assert_that(some, equal_to([{int}] * (len(TEXTS) - 1)), label="kinds")


def test_elements_of_every_kind_keep_what_they_are(tokenizer: bpe.Tokenizer) -> None:
    ids = tokenizer.encode("low fox")
    given = {"text": "low fox", "lang": "en"}
    elements = [
        "low fox",
        b"low fox",
        given,
        beam.Row(text="low fox", lang="en"),
        Named("low fox", "en"),
        pa.table({"text": ["low fox"], "lang": ["en"]}),
        pa.record_batch({"text": ["low fox"]}),
    ]
    expected = [
        beam.Row(text="low fox", input_ids=ids),
        beam.Row(text=b"low fox", input_ids=ids),
        {**given, "input_ids": ids},
        beam.Row(text="low fox", lang="en", input_ids=ids),
        beam.Row(text="low fox", lang="en", input_ids=ids),
        {"text": ["low fox"], "lang": ["en"], "input_ids": [ids]},
        {"text": ["low fox"], "input_ids": [ids]},
    ]

    def comparable(value: Any) -> Any:
        if isinstance(value, pa.Table):
            assert value.schema.field("input_ids").type == pa.list_(pa.uint16())
            return value.to_pydict()
        return value

    with pipeline() as p:
        encoded = p | beam.Create(elements, reshuffle=False) | EncodeDocuments(tokenizer=tokenizer)
        assert_that(encoded | beam.Map(comparable), equal_to(expected))
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
        found = more | beam.Map(lambda row: fields_of(row)["text"])
        assert_that(found, equal_to([tokenizer.encode("fox")] * 2), label="replaced")


def test_types_of_elements_are_known(tokenizer: bpe.Tokenizer) -> None:
    fields = beam.typehints.schemas.named_fields_from_element_type
    p = pipeline()
    encode = EncodeDocuments(tokenizer=tokenizer)
    for label, element, expected in (
        ("str", "low", ["text", "input_ids"]),
        ("row", beam.Row(id=1, text="low"), ["id", "text", "input_ids"]),
        ("named", Named("low", "en"), ["text", "lang", "input_ids"]),
    ):
        encoded = p | label >> beam.Create([element]) | f"{label} ids" >> encode
        assert [name for name, _ in fields(encoded.element_type)] == expected
    tables = p | "table" >> beam.Create([pa.table({"text": ["a"]})]) | "table ids" >> encode
    assert issubclass(tables.element_type, pa.Table)


@pytest.mark.parametrize("mode", [*MODES, "streaming"])
def test_elements_keep_their_windows_and_times(mode: str, tokenizer: bpe.Tokenizer) -> None:
    elements = [("low", 1.0), ("fox", 9.5), ("", 10.0), ("dog", 25.0)]
    streaming = mode == "streaming"
    with streaming_pipeline() if streaming else pipeline(mode) as p:
        texts = p | (stream(*elements) if streaming else at_times(*elements))
        encoded = texts | beam.WindowInto(FixedWindows(10)) | EncodeDocuments(tokenizer=tokenizer)
        found = windowed(plain(encoded))
        expected = [
            ((text, tokenizer.encode(text)), time // 10 * 10, time) for text, time in elements
        ]
        assert_that(found, equal_to(expected))


def test_an_element_of_several_windows_stays_in_them(tokenizer: bpe.Tokenizer) -> None:
    with pipeline() as p:
        texts = p | at_times(("fox", 6.0)) | beam.WindowInto(SlidingWindows(10, 5))
        found = windowed(plain(texts | EncodeDocuments(tokenizer=tokenizer)))
        row = ("fox", tokenizer.encode("fox"))
        assert_that(found, equal_to([(row, 0.0, 6.0), (row, 5.0, 6.0)]))


@pytest.mark.parametrize("limit", long_but(["BATCH_ROWS", "BATCH_BYTES"], "BATCH_BYTES"))
def test_ids_do_not_depend_on_batches(
    limit: str, tokenizer: bpe.Tokenizer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(batches, limit, 3)
    with pipeline() as p:
        encoded = p | beam.Create(TEXTS) | EncodeDocuments(tokenizer=tokenizer)
        assert_that(plain(encoded), equal_to([(text, tokenizer.encode(text)) for text in TEXTS]))


BAD = [7, {"body": "low"}, beam.Row(text=None), "abx", pa.table({"body": ["a"]})]
NO_TOKEN = "the character 'x' (U+0078) has no token, and the tokenizer has no unknown token"
REASONS = [
    "the element is int 7",
    "the element has no field 'text' (its fields",
    "field 'text' is NoneType None, not text",
    NO_TOKEN,
    "the table has 0 columns 'text' (its columns",
]


@both_modes
def test_bad_elements_have_an_output(mode: str, letters: bpe.Tokenizer) -> None:
    table = pa.table({"text": ["ab", "x", None], "id": [1, 2, 3]})
    good = ["ab", {"text": "cab"}, "", table]
    elements = [*BAD, *good]
    with pipeline(mode) as p:
        numbers = p | beam.Create(range(len(elements)), reshuffle=False)
        encode = EncodeDocuments(tokenizer=letters).with_exception_handling()
        encoded, bad = numbers | beam.Map(elements.__getitem__) | encode
        kinds = encoded | "Kinds" >> beam.Map(lambda one: type(one).__name__)
        assert_that(kinds, equal_to(["Row", "dict", "Row", "Table"]))
        ids = (
            encoded
            | "Table" >> beam.Filter(lambda one: isinstance(one, pa.Table))
            | "Ids" >> beam.Map(lambda one: (one["id"].to_pylist(), one["input_ids"].to_pylist()))
        )
        assert_that(ids, equal_to([([1], [letters.encode("ab")])]), label="table")
        starts = bad | beam.Reshuffle() | beam.Map(reason_of)
        expected = [*REASONS, NO_TOKEN, "column 'text' is null"]
        assert_that(starts, equal_to(expected), label="reasons")


@pytest.mark.parametrize("number", [1, 3])  # bad before its batch, and in it
def test_a_bad_element_ends_the_pipeline(number: int, letters: bpe.Tokenizer) -> None:
    p = pipeline()
    elements = p | beam.Create([BAD[number]])
    _ = elements | EncodeDocuments(tokenizer=letters)
    with pytest.raises(Exception, match="collect bad elements") as caught:
        p.run().wait_until_finish()
    assert REASONS[number] in str(caught.value)


def test_a_bad_element_stays_in_its_window(letters: bpe.Tokenizer) -> None:
    elements = [("ab", 1.0), ("x", 12.0)]
    with pipeline() as p:
        texts = p | at_times(*elements) | beam.WindowInto(FixedWindows(10))
        encode = EncodeDocuments(tokenizer=letters).with_exception_handling()
        encoded, bad = texts | encode
        assert_that(windowed(plain(encoded)), equal_to([(("ab", letters.encode("ab")), 0.0, 1.0)]))
        found = windowed(bad | "Element" >> beam.Map(lambda one: one[0]), label="Bad windows")
        assert_that(found, equal_to([("x", 10.0, 12.0)]), label="bad")


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


def test_count_train_and_encode_in_one_pipeline(corpus: Corpus) -> None:
    with pipeline("multi_threading") as p:
        documents = p | ReadDocuments([*corpus.patterns], split_size=700)
        counts = documents | CountPretokens(pretokenizer="words")
        trained = counts | TrainTokenizer(vocab_size=300, pretokenizer="words")
        expected = bpe.train(
            bpe.count_pretokens(corpus.texts, pretokenizer="words"), vocab_size=300
        )
        rows = [(id_, expected.encode(text)) for id_, text in corpus.documents]
        for label, tokenizer in (("plain", trained), ("wrapped", beam.pvalue.AsSingleton(trained))):
            encoded = documents | label >> EncodeDocuments(tokenizer=tokenizer)
            found = encoded | f"{label} ids" >> beam.Map(lambda row: (row.id, row.input_ids))
            assert_that(found, equal_to(rows), label)


def test_each_window_is_encoded_with_its_own_tokenizer() -> None:
    elements = [("low low lower", 1.0), ("new newer new", 11.0), ("lowest", 2.0)]
    first, second = (
        bpe.train(bpe.count_pretokens(texts), vocab_size=258)
        for texts in (["low low lower", "lowest"], ["new newer new"])
    )
    with pipeline() as p:
        texts = p | at_times(*elements) | beam.WindowInto(FixedWindows(10))
        trained = texts | CountPretokens() | TrainTokenizer(vocab_size=258)
        encoded = texts | EncodeDocuments(tokenizer=trained)
        expected = [
            (text, (first if time < 10 else second).encode(text)) for text, time in elements
        ]
        assert_that(plain(encoded), equal_to(expected))


def test_the_tokenizer_is_loaded_once_in_a_process(model: Path, tokenizer: bpe.Tokenizer) -> None:
    loaded: list[str] = []
    load = tokenizer_files.load_tokenizer

    def counted(given: str) -> bpe.Tokenizer:
        loaded.append(given)
        return load(given)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(encoding, "load_tokenizer", counted)
        with pipeline("multi_threading") as p:
            texts = p | beam.Create(TEXTS) | beam.Reshuffle()
            encoded = texts | EncodeDocuments(tokenizer=model)
            expected = [(text, tokenizer.encode(text)) for text in TEXTS]
            assert_that(plain(encoded), equal_to(expected))
    assert loaded == [str(model)]


def test_a_tokenizer_goes_to_workers_without_its_training() -> None:
    trained = bpe.train(bpe.count_pretokens(TEXTS), vocab_size=300)
    assert trained.training is not None
    source = EncodeDocuments(tokenizer=trained)._source
    assert source is not None
    sent = source.load()
    assert sent == trained
    assert sent.training is None
    copied = pickle.loads(pickle.dumps(trained))  # noqa: S301 - as Beam does it
    assert copied.training == trained.training


def test_a_path_is_read_by_the_workers(tmp_path: Path, tokenizer: bpe.Tokenizer) -> None:
    p = pipeline()
    texts = p | beam.Create(["fox"])
    encoded = texts | EncodeDocuments(tokenizer=str(tmp_path / "later.json"))
    assert_that(plain(encoded), equal_to([("fox", tokenizer.encode("fox"))]))
    tokenizer.save(tmp_path / "later.json")
    p.run().wait_until_finish()
    p = pipeline()
    _ = p | beam.Create(["fox"]) | EncodeDocuments(tokenizer=str(tmp_path / "none.json"))
    with pytest.raises(Exception, match=r"none\.json: cannot read the tokenizer"):
        p.run().wait_until_finish()


def test_a_special_token_that_the_file_lacks_ends_the_pipeline(model: Path) -> None:
    p = pipeline()
    encode = EncodeDocuments(tokenizer=model, append_token="<|eos|>")
    _ = p | beam.Create(["fox"]) | encode
    with pytest.raises(Exception, match=r"`append_token`: '<\|eos\|>' is not a special token"):
        p.run().wait_until_finish()


# Construction.


def encode_with(tokenizers: list[bpe.Tokenizer], *, wrapped: bool = False) -> None:
    """Run a pipeline whose tokenizer is a side input that holds these."""
    with pipeline() as p:
        held: Any = p | "Held" >> beam.Create(tokenizers, reshuffle=False)
        held = beam.pvalue.AsSingleton(held) if wrapped else held
        _ = p | beam.Create(["low"]) | EncodeDocuments(tokenizer=held)


def test_a_window_without_a_tokenizer_says_so() -> None:
    with pytest.raises(Exception, match="the side input holds no tokenizer in the window"):
        encode_with([])


@pytest.mark.parametrize("wrapped", [False, True])
def test_a_tokenizer_that_comes_twice_is_refused(
    tokenizer: bpe.Tokenizer, *, wrapped: bool
) -> None:
    with pytest.raises(Exception, match="holds 2 values in one window: a trigger fired several"):
        encode_with([tokenizer, tokenizer], wrapped=wrapped)


def test_each_sliding_window_has_one_encoder_in_a_bundle(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    made: list[bpe.Tokenizer] = []
    init = batches.IdEncoder.__init__

    def counted(self: Any, tokenizer: bpe.Tokenizer, **tokens: Any) -> None:
        made.append(tokenizer)
        init(self, tokenizer, **tokens)

    monkeypatch.setattr(batches.IdEncoder, "__init__", counted)
    with pipeline() as p:
        texts = p | at_times(*((f"low {n}", 10.0 + n) for n in range(20)))
        texts |= beam.WindowInto(SlidingWindows(40, 10))
        trained = texts | CountPretokens() | TrainTokenizer(vocab_size=258)
        encoded = texts | EncodeDocuments(tokenizer=trained)
        assert_that(encoded | beam.combiners.Count.Globally().without_defaults(), _some)
    assert len(made) <= 2 * 6  # windows of the elements, and bundles


def _some(found: list[int]) -> None:
    assert sum(found) == 20 * 4
