"""Writing documents with token ids as bpe encode does."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import apache_beam as beam
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from apache_beam.testing.util import equal_to
from xxhash import xxh64_intdigest as xxh64

import bpe
from bpe.roles import Roles
from pipelines import (
    CountPretokens,
    EncodeDocuments,
    ReadDocuments,
    TrainTokenizer,
    WriteTokenIds,
)
from pipelines.transforms import token_ids
from tests import jobs
from tests.pipelines.beam_runs import assert_that, pipeline
from tests.pipelines.corpora import END, Corpus, encoded_manifest, tree

if TYPE_CHECKING:
    from pathlib import Path


def rows_of(folder: Path) -> list[dict[str, Any]]:
    """All rows, in an order of their own."""
    rows = pq.read_table(folder / "data").to_pylist()
    return sorted(rows, key=lambda row: (row["id"], row["input_ids"]))


def write(documents: list[Any], output: Path, tokenizer: Path, **settings: Any) -> None:
    with pipeline() as p:
        encoded = p | beam.Create(documents) | EncodeDocuments(tokenizer=tokenizer)
        _ = encoded | WriteTokenIds(str(output), tokenizer=tokenizer, parts=4, **settings)


@pytest.mark.parametrize(("mode", "as_tables"), [("in_memory", True), ("multi_threading", False)])
def test_rows_are_those_of_the_command(
    mode: str, as_tables: bool, corpus: Corpus, model: Path, encoded: Path, tmp_path: Path
) -> None:
    with pipeline(mode) as p:
        documents = p | ReadDocuments(corpus.patterns, split_size=700, as_tables=as_tables)
        rows = documents | EncodeDocuments(tokenizer=model)
        manifests = rows | WriteTokenIds(str(tmp_path / "ids"), tokenizer=model, parts=3)
        totals = manifests | beam.Map(lambda one: one["totals"]["documents"])
        assert_that(totals, equal_to([len(corpus.documents)]))
    expected = rows_of(encoded)
    for row in expected:  # whether a record has an id of its own is lost on the way
        row["key"] = xxh64(row["id"].encode())
    assert rows_of(tmp_path / "ids") == expected
    ours, theirs = (
        json.loads((ids / "manifest.json").read_text()) for ids in (tmp_path / "ids", encoded)
    )
    assert len(encoded_manifest(tmp_path / "ids")["parts"]) == 3
    for name in ("tokenizer", "id_type", "rows"):
        assert ours[name] == theirs[name]
    for name in ("documents", "tokens", "unknown", "text_bytes", "failures"):
        assert ours["totals"][name] == theirs["totals"][name]
    assert jobs.verify(directory=str(tmp_path / "ids")).documents == len(corpus.documents)


def test_the_same_documents_are_the_same_bytes(
    model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    documents: list[Any] = [
        {"id": f"d{i % 30}", "text": f"fox {i % 40}", "lang": "en"} for i in range(80)
    ]
    write(documents, tmp_path / "a", model, keep=["lang:string"])
    monkeypatch.setattr(token_ids, "_GATHERED_IDS", 7 * token_ids._LEAST_IDS)
    write(documents[::-1], tmp_path / "b", model, keep=["lang:string"])
    tables = [pa.Table.from_pylist(documents[i : i + 9]) for i in range(0, 80, 9)]
    write(tables, tmp_path / "c", model, keep=["lang:string"])
    assert tree(tmp_path / "a") == tree(tmp_path / "b") == tree(tmp_path / "c")
    assert jobs.verify(directory=str(tmp_path / "a")).documents == 80


@pytest.mark.parametrize("as_tables", [False, True])
def test_columns_pass_through_and_fields_have_any_name(
    model: Path, tmp_path: Path, *, as_tables: bool
) -> None:
    documents: list[dict[str, Any]] = [
        {"key": 7, "body": "fox", "text_bytes": 999, "lang": "en", "more": "x"},
        {"key": 8, "body": "dog", "text_bytes": 2},
    ]
    encode = EncodeDocuments(tokenizer=model, text_field="body", output_field="ids")
    tokenizer = bpe.Tokenizer.load(model).with_roles(Roles(eos=END))
    write = WriteTokenIds(
        str(tmp_path / "ids"),
        tokenizer=tokenizer,
        id_field="key",
        ids_field="ids",
        text_field="body",
        keep=["text_bytes:int32", "lang:string"],
        id_type="uint32",
        parts=1,
    )
    with pipeline() as p:
        elements = [pa.Table.from_pylist(documents)] if as_tables else documents
        _ = p | beam.Create(elements) | encode | write
    table = pq.read_table(tmp_path / "ids" / "data")
    assert table.schema.names == ["id", "text_bytes", "lang", "key", "input_ids", "num_tokens"]
    assert table.schema.field("input_ids").type.value_type == pa.uint32()
    assert table["id"].to_pylist() == ["7", "8"]
    assert table["text_bytes"].to_pylist() == [999, 2]
    assert table["lang"].to_pylist() == ["en", None]
    totals = json.loads((tmp_path / "ids" / "manifest.json").read_text())["totals"]
    assert totals["text_bytes"] == 6
    assert bpe.Tokenizer.load(tmp_path / "ids").roles == tokenizer.roles
    assert jobs.verify(directory=str(tmp_path / "ids")).documents == 2


def test_bytes_of_tokens_count_where_there_is_no_text(model: Path, tmp_path: Path) -> None:
    tokenizer = bpe.Tokenizer.load(model)
    ids = np.array(tokenizer.encode("naïve fox"), np.uint16)
    with pipeline() as p:
        rows = p | beam.Create([{"id": "a", "input_ids": ids}])
        _ = rows | WriteTokenIds(str(tmp_path / "ids"), tokenizer=model, parts=1)
    totals = json.loads((tmp_path / "ids" / "manifest.json").read_text())["totals"]
    assert totals["text_bytes"] == len("naïve fox".encode())


def test_a_tokenizer_that_is_trained_on_the_way(corpus: Corpus, tmp_path: Path) -> None:
    with pipeline() as p:
        documents = p | ReadDocuments(corpus.patterns)
        tokenizer = documents | CountPretokens() | TrainTokenizer(vocab_size=300)
        encoded = documents | EncodeDocuments(tokenizer=tokenizer)
        _ = encoded | WriteTokenIds(str(tmp_path / "ids"), tokenizer=tokenizer, parts=2)
    expected = bpe.train(bpe.count_pretokens(corpus.texts), vocab_size=300)
    assert bpe.Tokenizer.load(tmp_path / "ids" / "tokenizer.json") == expected
    assert len(rows_of(tmp_path / "ids")) == len(corpus.documents)


def test_no_documents_are_a_corpus_too(model: Path, tmp_path: Path) -> None:
    write([], tmp_path / "ids", model)
    assert rows_of(tmp_path / "ids") == []
    assert jobs.verify(directory=str(tmp_path / "ids")).documents == 0


@pytest.mark.parametrize(
    ("element", "message"),
    [
        ({"input_ids": [1]}, "field 'id' is None, where a document's id"),
        ({"id": True, "input_ids": [1]}, "field 'id' is True"),
        ({"id": "a", "input_ids": b"text"}, "field 'input_ids' is b'text'"),
        ({"id": "a", "input_ids": [1.5]}, r"field 'input_ids' is \[1.5\]"),
        ({"id": "a", "input_ids": [1, None]}, r"field 'input_ids' is \[1, None\]"),
        ({"id": "a", "input_ids": [-1]}, "rows do not have the types asked for"),
        ({"id": "a", "input_ids": [99999]}, "has the id 99999, and the greatest of the tokenizer"),
        ("text", "field 'id' is None, .* — element 'text'"),
        (7, "the element is int 7"),
        (pa.table({"id": ["a"]}), r"the table has 0 columns 'input_ids' \(its columns: 'id'\)"),
        (pa.table({"input_ids": [[1]]}), "0 columns 'id' .*: name the one of the ids, id_field="),
        (pa.table({"id": [None], "input_ids": [[1]]}), "column 'id' has nulls"),
        (pa.table({"id": ["a"], "input_ids": [None]}), "column 'input_ids' has nulls"),
        (pa.table({"id": ["a"], "input_ids": ["b"]}), "column 'input_ids' holds no token ids"),
        (pa.table({"id": ["a"], "input_ids": [[-1]]}), "rows do not have the types asked for"),
        (pa.table({"id": ["a"], "input_ids": [[1, None]]}), "column 'input_ids' has null ids"),
    ],
)
def test_documents_that_are_no_rows(
    element: Any, message: str, model: Path, tmp_path: Path
) -> None:
    write = WriteTokenIds(str(tmp_path / "ids"), tokenizer=model, parts=1)
    with pytest.raises(Exception, match=message), pipeline() as p:
        _ = p | beam.Create([element]) | write
    assert not (tmp_path / "ids" / "manifest.json").exists()
