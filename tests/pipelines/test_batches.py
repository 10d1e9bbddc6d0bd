"""Texts in batches: gathered, encoded, counted; no pipeline."""

from __future__ import annotations

import pickle
import re
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import bpe
from bpe._arrow import list_array
from bpe.counts.files import counts_from_table
from bpe.errors import EncodingError
from pipelines import batches
from pipelines.batches import (
    IdEncoder,
    TextBatches,
    column_of,
    document_of,
    sorted_messages,
    totals_of,
    with_ids,
)
from pipelines.errors import RecordError


@dataclass
class Document:
    text: str
    lang: str = "en"


ids_of = partial(with_ids, text_field="text", output_field="ids")


# Elements.


def test_a_dataclass_has_a_text_and_fields() -> None:
    values = {"text": "né", "lang": "en"}
    assert document_of(Document("né"), "text") == (values, "né".encode())


@pytest.mark.parametrize(
    "kind",
    [
        *(pa.string(), pa.large_string(), pa.binary(), pa.large_binary()),
        *(pa.string_view(), pa.binary_view(), pa.dictionary(pa.int32(), pa.string())),
    ],
)
def test_columns_of_every_kind_of_text(tokenizer: bpe.Tokenizer, kind: pa.DataType) -> None:
    table = pa.table({"text": pa.array(["a b", None, ""]).cast(kind)})
    column = column_of(table, "text")
    assert column.cast(pa.string()).to_pylist() == ["a b", None, ""]
    good, bad = ids_of(table, IdEncoder(tokenizer))
    assert good["ids"].to_pylist() == [tokenizer.encode("a b"), []]
    assert good.schema.field("text").type == kind
    assert [reason for _, reason in bad] == ["column 'text' is null"]


def test_columns_that_hold_no_text() -> None:
    with pytest.raises(RecordError, match="column 'text' is int64, not text: cast it"):
        column_of(pa.table({"text": [1]}), "text")
    with pytest.raises(RecordError, match=r"0 columns 'text' \(its columns: 'body'\)"):
        column_of(pa.table({"body": ["a"]}), "text")
    with pytest.raises(RecordError, match="2 columns 'a'"):
        column_of(pa.Table.from_arrays([pa.array(["x"])] * 2, names=["a", "a"]), "a")


def test_a_batch_is_full_by_bytes_and_by_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(batches, "BATCH_BYTES", 10)
    monkeypatch.setattr(batches, "BATCH_ROWS", 3)
    waiting = TextBatches[str, int]()
    assert not waiting.add("a", 0, b"12345")
    assert not waiting.add("b", 1, b"1234")
    assert waiting.add("a", 2, b"1")
    assert list(waiting.drain()) == [
        ("a", [0, 2], pa.array([b"12345", b"1"], pa.large_binary())),
        ("b", [1], pa.array([b"1234"], pa.large_binary())),
    ]
    assert not waiting.add("a", 0, b"123456789")
    assert len(list(waiting.drain())) == 1
    assert [waiting.add(key, 0, b"") for key in "aba"] == [False, False, True]


# Encoding.


def test_a_table_keeps_its_columns_and_loses_its_bad_rows(letters: bpe.Tokenizer) -> None:
    """These go on without the rest of the table."""
    table = pa.table(
        {
            "id": pa.array(range(5), pa.int8()),
            "ids": ["old"] * 5,
            "text": ["ab" * 100_000, "x", None, "cab", "bx"],
        }
    )
    good, bad = ids_of(table, IdEncoder(letters))
    assert good.schema.names == ["id", "ids", "text"]
    assert good["id"].to_pylist() == [0, 3]
    assert good["ids"].to_pylist() == [letters.encode("ab" * 100_000), letters.encode("cab")]
    assert sorted(row["id"][0].as_py() for row, _ in bad) == [1, 2, 4]
    assert all(row.schema == table.schema for row, _ in bad)
    assert len(pickle.dumps(bad[0][0])) < 10_000
    empty, _ = ids_of(pa.table({"text": pa.chunked_array([], pa.string())}), IdEncoder(letters))
    assert empty["ids"].type == good["ids"].type


def test_more_ids_than_one_list_array_holds(
    letters: bpe.Tokenizer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A table may have 2^31 ids in one chunk: only a text that has so many by itself is bad."""

    def limited(ids: Any, offsets: Any, **of: Any) -> pa.ListArray:
        if len(memoryview(ids).cast("B")) // 2 > 5:
            raise EncodingError("too many tokens")
        return list_array(ids, offsets, **of)

    texts = pa.array(["c" * 3, "c" * 3, "xx", "c" * 9, "c" * 2, "c" * 3])
    monkeypatch.setattr(bpe.tokenizer, "list_array", limited)
    ids, bad = IdEncoder(letters).encode(texts)
    assert list(map(len, ids.to_pylist())) == [3, 3, 2, 3]
    assert list(bad) == [2, 3]
    assert bad[3] == "too many tokens"


# Counting.


def test_bytes_past_64_bits_are_right() -> None:
    table = pa.table({"pretoken": pa.array([b"a" * 9], pa.large_binary()), "count": [1 << 61]})
    assert totals_of(counts_from_table(table, where="test")).bytes == 9 << 61


@pytest.mark.parametrize(
    "pair",
    [
        *((b"", 1), ("text", 1), ("\ud800", 1), (b"a", 0), (b"a", -1), (b"a", 1.0), (b"a", True)),
        *((b"a", 1 << 63), (b"a", 1, 2), b"ab", 1),
    ],
)
def test_what_is_no_count_is_refused(pair: Any) -> None:
    with pytest.raises(
        RecordError, match=re.escape("test takes (pre-token, count), bytes and")
    ) as refused:
        list(sorted_messages([(b"a", np.int64(1)), pair], 1, "test"))
    is_pair = isinstance(pair, tuple) and len(pair) == 2 and isinstance(pair[0], bytes)
    assert is_pair or f"got {pair!r}: count texts with" in str(refused.value)
