"""Texts in batches: gathered, encoded, counted; no pipeline."""

from __future__ import annotations

import pickle
import re
from collections import Counter
from dataclasses import dataclass
from itertools import chain
from typing import Any, NamedTuple

import apache_beam as beam
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import bpe
from bpe._native import add_counts
from bpe.counting import PretokenCounter
from bpe.counts.files import counts_from_ipc, counts_from_table
from bpe.tokenizer import CacheUse
from pipelines import batches
from pipelines.batches import (
    IdEncoder,
    TextBatches,
    TextCounters,
    column_of,
    count_pairs,
    counts_of_messages,
    fields_of,
    id_arrays,
    pretoken_bytes,
    sorted_messages,
    text_of,
    with_ids,
)
from pipelines.errors import ConfigError, RecordError
from pipelines.settings import PretokenSettings
from tests.pipelines.corpora import END


class Named(NamedTuple):
    text: Any
    lang: str = "en"


@dataclass
class Classed:
    text: Any
    lang: str = "en"


TEXTS = st.one_of(st.text(max_size=40), st.binary(max_size=40))


# Elements.


@pytest.mark.parametrize(
    ("element", "text"),
    [
        ({"text": "né", "lang": "en"}, "né".encode()),
        (beam.Row(text="né", lang="en"), "né".encode()),
        (Named("né"), "né".encode()),
        (Classed("né"), "né".encode()),
        (Classed("né".encode()), "né".encode()),
        ("né", "né".encode()),
        ("plain", "plain"),
        (b"\xff", b"\xff"),
    ],
)
def test_the_text_of_an_element(element: Any, text: str | bytes) -> None:
    assert text_of(element, "text") == text
    if not isinstance(element, (str, bytes)):
        values = fields_of(element)
        assert list(values) == ["text", "lang"]
        values["more"] = 1
        assert "more" not in fields_of(element), "the element itself was changed"


@pytest.mark.parametrize(
    ("element", "message"),
    [
        (7, r"the element is int 7: give str, bytes, a dict, a Row or a pyarrow\.Table"),
        (None, "the element is NoneType None"),
        (["text"], "the element is list"),
        (Classed, "the element is type"),
        ({"body": "a"}, r"no field 'text' \(its fields: 'body'\): .*text_field="),
        ({}, r"its fields: none"),
        ({"text": None}, "field 'text' is NoneType None, not text"),
        (Named(3), "field 'text' is int 3, not text"),
        ("a\udc80", "the element has a lone surrogate at character 1"),
        (beam.Row(text="\ud800"), "field 'text' has a lone surrogate at character 0"),
    ],
)
def test_elements_without_a_text_say_why(element: Any, message: str) -> None:
    with pytest.raises(RecordError, match=message):
        text_of(element, "text")


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
    good, bad = with_ids(
        table, IdEncoder(tokenizer), text_field="text", output_field="ids", use=CacheUse()
    )
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


@given(
    texts=st.lists(TEXTS, max_size=20),
    chunk=st.integers(1, 20),
    ends=st.booleans(),
    special=st.sampled_from([(), (END,), ("all",)]),
)
def test_batches_have_the_ids_of_the_texts(
    tokenizer: bpe.Tokenizer,
    texts: list[str | bytes],
    chunk: int,
    *,
    ends: bool,
    special: tuple[str, ...],
) -> None:
    column = pa.chunked_array(
        [pa.array(texts[i : i + chunk], pa.large_binary()) for i in range(0, len(texts), chunk)],
        pa.large_binary(),
    )
    encoder = IdEncoder(tokenizer, append_token=END if ends else None, allowed_special=special)
    encoded = encoder.encode(column, CacheUse())
    end = [tokenizer.special_tokens[END]] if ends else []
    allowed = (END,) if special else ()
    expected = [tokenizer.encode(text, allowed_special=allowed) + end for text in texts]
    assert encoded.ids.to_pylist() == expected
    assert encoded.ids.type == pa.list_(pa.uint16())
    arrays = list(id_arrays(encoded.ids))
    assert [array.tolist() for array in arrays] == expected
    assert all(array.dtype == np.uint16 and array.flags.writeable for array in arrays)
    assert not encoded.bad


@given(texts=st.lists(st.text("abcx ", max_size=8), max_size=30))
def test_texts_that_fail_are_left_out_and_no_others(
    letters: bpe.Tokenizer, texts: list[str]
) -> None:
    encoded = IdEncoder(letters).encode(pa.array(texts, pa.string()), CacheUse())
    bad = [row for row, text in enumerate(texts) if "x" in text]
    assert list(encoded.bad) == bad
    assert all("row" not in reason and "'x" in reason for reason in encoded.bad.values())
    expected = [letters.encode(text) for text in texts if "x" not in text]
    assert encoded.ids.to_pylist() == expected


@pytest.mark.parametrize(
    "arguments",
    [
        {"allowed_special": ("<|eos|>",)},
        {"append_token": "<|eos|>"},
        {"prepend_token": "<|eos|>"},
        {"id_type": "uint8"},
    ],
)
def test_what_the_tokenizer_lacks_is_refused(
    tokenizer: bpe.Tokenizer, arguments: dict[str, Any]
) -> None:
    with pytest.raises(ConfigError, match=f"`{next(iter(arguments))}`.*'"):
        IdEncoder(tokenizer, **arguments)


def test_the_type_of_ids_goes_by_the_greatest(tokenizer: bpe.Tokenizer) -> None:
    tokens = [*(bytes([byte]) for byte in range(256)), *(b"%06d" % i for i in range(1 << 16))]
    large = bpe.Tokenizer(tokens=tokens, merges=[], pretokenizer=bpe.Pretokenizer("gpt2"))
    encoded = IdEncoder(large).encode(pa.array(["ab"]), CacheUse())
    assert encoded.ids.type == pa.list_(pa.uint32())
    assert next(id_arrays(encoded.ids)).flags.writeable
    with pytest.raises(ConfigError, match="`id_type` uint16"):
        IdEncoder(large, id_type="uint16")
    encoded = IdEncoder(tokenizer, id_type="uint32").encode(pa.array(["ab"]), CacheUse())
    assert encoded.ids.type == pa.list_(pa.uint32())


def test_a_table_keeps_its_columns_and_loses_its_bad_rows(letters: bpe.Tokenizer) -> None:
    """These go on without the rest of the table."""
    table = pa.table(
        {
            "id": pa.array(range(5), pa.int8()),
            "ids": ["old"] * 5,
            "text": ["ab" * 100_000, "x", None, "cab", "bx"],
        }
    )
    good, bad = with_ids(
        table, IdEncoder(letters), text_field="text", output_field="ids", use=CacheUse()
    )
    assert good.schema.names == ["id", "ids", "text"]
    assert good["id"].to_pylist() == [0, 3]
    assert good["ids"].to_pylist() == [letters.encode("ab" * 100_000), letters.encode("cab")]
    assert sorted(row["id"][0].as_py() for row, _ in bad) == [1, 2, 4]
    assert all(row.schema == table.schema for row, _ in bad)
    assert len(pickle.dumps(bad[0][0])) < 10_000


# Counting.


@given(
    texts=st.lists(st.tuples(st.sampled_from("abc"), st.text(max_size=20)), max_size=30),
    flush=st.sampled_from([0, 1 << 30]),
    shards=st.integers(1, 4),
    columns=st.booleans(),
)
def test_counters_count_each_key_by_itself(
    texts: list[tuple[str, str]], flush: int, shards: int, *, columns: bool
) -> None:
    counters = TextCounters[str, None](lambda: PretokenCounter(bpe.Pretokenizer("gpt2")))
    messages: dict[str, list[bytes]] = {}
    drained: list[tuple[str, tuple[int, bytes]]] = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(batches, "FLUSH_BYTES", flush)
        for key, text in texts:
            if columns:
                assert counters.add_column(key, pa.chunked_array([[text], [""]])) == {}
                full = counters.full()
            else:
                full = counters.add(key, None, text.encode())
            drained += counters.drain(shards) if full else []
    drained += counters.drain(shards)
    assert list(counters.drain(shards)) == []
    for key, (shard, message) in drained:
        assert counts_from_ipc(message).misplaced(shard, shards) == -1
        messages.setdefault(key, []).append(message)
    for key in "abc":
        expected = bpe.count_pretokens([text for one, text in texts if one == key])
        run = add_counts([counts_from_ipc(message) for message in messages.get(key, [])])
        assert dict(count_pairs(run)) == dict(expected.items())
    assert counters.totals.documents == len(texts) * (2 if columns else 1)
    assert counters.totals.bytes == sum(len(text.encode()) for _, text in texts)


@given(
    batches=st.lists(
        st.lists(
            st.tuples(
                st.binary(min_size=1, max_size=3), st.integers(1, 1 << 40) | st.just(np.int64(3))
            )
        )
    ),
    shards=st.integers(1, 3),
)
def test_counts_add_up(batches: list[list[tuple[bytes, int]]], shards: int) -> None:
    messages = [message for one in batches for _, message in sorted_messages(one, shards, "test")]
    expected: Counter[bytes] = Counter()
    for pretoken, count in chain.from_iterable(batches):
        expected[pretoken] += count
    counts = counts_of_messages(messages, PretokenSettings(special_tokens=(END,)))
    assert dict(counts.items()) == expected
    assert counts.totals.bytes == sum(len(one) * n for one, n in expected.items())
    assert counts.special_tokens == (END,)


def test_bytes_past_64_bits_are_right() -> None:
    table = pa.table({"pretoken": pa.array([b"a" * 9], pa.large_binary()), "count": [1 << 61]})
    assert pretoken_bytes(counts_from_table(table, where="test")) == 9 << 61


@pytest.mark.parametrize(
    "pair",
    [
        *((b"", 1), ("text", 1), (b"a", 0), (b"a", -1), (b"a", 1.0), (b"a", True)),
        *((b"a", 1 << 63), (b"a", 1, 2), b"ab"),
    ],
)
def test_what_is_no_count_is_refused(pair: Any) -> None:
    with pytest.raises(RecordError, match=re.escape("test takes (pre-token, count), bytes and")):
        list(sorted_messages([(b"a", 1), pair], 1, "test"))
