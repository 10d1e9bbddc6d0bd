"""Rows with token ids have a schema, and go into Beam's own transforms as they are."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, NamedTuple, Optional

import apache_beam as beam
import fastavro
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from apache_beam.testing.util import equal_to
from apache_beam.typehints import TypeCheckError
from apache_beam.typehints.schemas import schema_from_element_type

from pipelines import CountPretokens, EncodeDocuments, ReadDocuments
from tests.pipelines.beam_runs import assert_that, pipeline, reason_of

if TYPE_CHECKING:
    from pathlib import Path

    import bpe


# Beam reads no annotations that are strings, as those of this file are.
Document = NamedTuple(  # noqa: UP014
    "Document",
    [("id", int), ("text", str), ("lang", Optional[str])],  # noqa: UP045
)

DOCUMENTS = [Document(1, "the fox", "en"), Document(2, "", None), Document(3, "naïve café", "fr")]


@pytest.fixture(scope="module")
def expected(tokenizer: bpe.Tokenizer) -> list[dict[str, Any]]:
    return [
        {**document._asdict(), "input_ids": tokenizer.encode(document.text)}
        for document in DOCUMENTS
    ]


def test_rows_go_where_rows_with_a_schema_go(
    tokenizer: bpe.Tokenizer, expected: list[dict[str, Any]], tmp_path: Path
) -> None:
    with pipeline() as p:
        rows = p | beam.Create(DOCUMENTS) | EncodeDocuments(tokenizer=tokenizer)
        _ = rows | beam.io.WriteToParquet(str(tmp_path / "rows.parquet"))
        _ = rows | beam.io.WriteToAvro(str(tmp_path / "rows.avro"))
        texts = rows | "JSON" >> beam.Map(lambda row: json.dumps(row._asdict()))
        assert_that(texts, equal_to([json.dumps(row) for row in expected]), "as JSON")
        sizes = rows | beam.Select("id", num_tokens=lambda row: len(row.input_ids))
        lengths = {row["id"]: len(row["input_ids"]) for row in expected}
        short = [beam.Row(id=id_, num_tokens=size) for id_, size in lengths.items()]
        assert_that(sizes, equal_to(short), "as rows")
        total = sizes | beam.GroupBy().aggregate_field("num_tokens", sum, "tokens")
        tokens = total | beam.Map(lambda row: row.tokens)
        assert_that(tokens, equal_to([sum(lengths.values())]), "total")
    (parquet,) = tmp_path.glob("rows.parquet*")
    table = pq.read_table(parquet)
    assert sorted(table.to_pylist(), key=lambda row: row["id"]) == expected
    assert pa.types.is_int64(table.schema.field("input_ids").type.value_type)
    (avro,) = tmp_path.glob("rows.avro*")
    with avro.open("rb") as file:
        records: list[Any] = [*fastavro.reader(file)]
    assert sorted(records, key=lambda row: row["id"]) == expected


def test_the_schema_is_one_that_other_languages_know(
    tokenizer: bpe.Tokenizer, tmp_path: Path
) -> None:
    p = pipeline()
    encode = EncodeDocuments(tokenizer=tokenizer)
    read = ReadDocuments([str(tmp_path)], keep=["lang:string", "tags:list<string>"])
    for name, source, fields in (
        ("texts", beam.Create(["low"]), ["text"]),
        ("rows", beam.Create([beam.Row(id="a", text="low")]), ["id", "text"]),
        ("tuples", beam.Create(DOCUMENTS), ["id", "text", "lang"]),
        ("files", read, ["id", "text", "lang", "tags"]),
    ):
        encoded = p | name >> source | f"Encode {name}" >> encode
        selected = encoded | f"Select {name}" >> beam.Select("input_ids")
        for rows, names in ((encoded, [*fields, "input_ids"]), (selected, ["input_ids"])):
            schema = schema_from_element_type(rows.element_type)
            assert [field.name for field in schema.fields] == names
            assert "pythonsdk_any" not in str(schema), name


@pytest.mark.parametrize(
    ("elements", "settings", "message"),
    [
        ([1, 2], {}, "elements of type <class 'int'> are no documents"),
        ([("a", "b", "c")], {}, "are no documents"),
        (DOCUMENTS, {"text_field": "body"}, "have no field 'body'"),
        (DOCUMENTS, {"text_field": "id"}, "have a field 'id' that is no text"),
        ([beam.Row(text=1)], {}, "have a field 'text' that is no text"),
    ],
)
@pytest.mark.parametrize("name", ["CountPretokens", "EncodeDocuments"])
def test_what_is_declared_to_be_no_document_is_refused_when_the_pipeline_is_built(
    name: str, elements: list[Any], settings: dict[str, Any], message: str, tokenizer: bpe.Tokenizer
) -> None:
    count = CountPretokens(**settings)
    encode = EncodeDocuments(tokenizer=tokenizer, **settings)
    source = pipeline() | beam.Create(elements)
    with pytest.raises(TypeCheckError, match=f"{name}: .*{message}"):
        _ = source | (count if name == "CountPretokens" else encode)


# Keys.


def test_documents_with_keys_keep_them(tokenizer: bpe.Tokenizer) -> None:
    table = pa.table({"text": ["fox", None]})
    elements = [("a", "the fox"), ("b", DOCUMENTS[0]), (3, {"text": "dog", "n": 1}), ("t", table)]
    bad = [("c", {"body": ""}), ("d", 7)]

    def plain(keyed: Any) -> Any:
        key, made = keyed
        if isinstance(made, pa.Table):
            return key, made["input_ids"].to_pylist()[0]
        return key, made["input_ids"] if isinstance(made, dict) else made.input_ids

    with pipeline() as p:
        keyed = p | beam.Create([*elements, *bad])
        good, failed = keyed | EncodeDocuments(tokenizer=tokenizer).with_exception_handling()
        texts = {"a": "the fox", "b": "the fox", 3: "dog", "t": "fox"}
        ids = [(key, tokenizer.encode(text)) for key, text in texts.items()]
        assert_that(good | beam.Map(plain), equal_to(ids), "good")
        keys = failed | beam.Map(lambda one: (one[0][0], reason_of(one)))
        missing = "the element has no field 'text' (its fields"
        reasons = [("c", missing), ("d", "the element is int 7"), ("t", "column 'text' is null")]
        assert_that(keys, equal_to(reasons), "bad")


def test_what_follows_knows_the_type_of_keyed_documents(tokenizer: bpe.Tokenizer) -> None:
    with pipeline() as p:
        keyed = p | beam.Create([(f"k{one.id}", one) for one in DOCUMENTS])
        encoded = keyed | EncodeDocuments(tokenizer=tokenizer)
        schema = schema_from_element_type(encoded.element_type.tuple_types[1])
        assert "pythonsdk_any" not in str(schema)
        grouped = encoded | beam.GroupByKey() | beam.Keys()
        assert_that(grouped, equal_to([f"k{one.id}" for one in DOCUMENTS]))
