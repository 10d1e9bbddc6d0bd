"""Parquet ids back to documents."""

from __future__ import annotations

import hashlib
import io
import json
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import bpe
from pipelines.errors import InputError
from tests import jobs
from tests.pipelines.corpora import (
    count,
    decoded,
    edit_manifest,
    encode,
    small_tokenizer,
    write_jsonl,
)

if TYPE_CHECKING:
    from pathlib import Path


def test_a_corpus_without_documents(tmp_path: Path) -> None:
    corpus = write_jsonl(tmp_path / "in" / "docs.jsonl", [])
    small_tokenizer(tmp_path / "t.json")
    encode(corpus.inputs(), tmp_path / "t.json", tmp_path / "ids")
    assert decoded(tmp_path / "ids") == []


def test_line_separators_in_texts_do_not_cut_lines(tmp_path: Path) -> None:
    texts = ["a\u2028b\u0085c\x0bd\r\ne", "\x00\ufeff"]
    corpus = write_jsonl(tmp_path / "in" / "docs.jsonl", texts)
    small_tokenizer(tmp_path / "t.json")
    encode(corpus.inputs(), tmp_path / "t.json", tmp_path / "ids")
    stream = io.BytesIO()
    jobs.decode(directory=str(tmp_path / "ids"), stream=stream)
    assert [json.loads(line)["text"] for line in stream.getvalue().split(b"\n")[:-1]] == texts


def test_what_is_no_encoded_corpus_is_refused(tmp_path: Path) -> None:
    corpus = write_jsonl(tmp_path / "in" / "docs.jsonl", ["text"])
    count(corpus.inputs(), tmp_path / "counts")
    for name, message in ((".", "no manifest"), ("nowhere", "no such"), ("counts", "holds counts")):
        with pytest.raises(InputError, match=message):
            jobs.decode(directory=str(tmp_path / name), stream=io.BytesIO())


def test_damage_is_named(tmp_path: Path) -> None:
    corpus = write_jsonl(tmp_path / "in" / "docs.jsonl", ["text " * 500])
    small_tokenizer(tmp_path / "t.json")
    encode(corpus.inputs(split_size=None), tmp_path / "t.json", tmp_path / "ids")
    (part,) = (tmp_path / "ids").glob("data/train-*")
    data = bytearray(part.read_bytes())
    data[len(data) // 4] ^= 1
    part.write_bytes(data)
    with pytest.raises(InputError, match=r"data/train-00000-of-00001\.parquet: its SHA-256 is not"):
        jobs.decode(directory=str(tmp_path / "ids"), stream=io.BytesIO())
    other = bpe.train(bpe.count_pretokens(["aaaa"]), vocab_size=257)
    other.save(tmp_path / "ids" / "tokenizer.json")
    with pytest.raises(InputError, match="not the tokenizer that the manifest names"):
        jobs.decode(directory=str(tmp_path / "ids"), stream=io.BytesIO())


def test_an_id_of_no_token_is_named_with_its_part(tmp_path: Path) -> None:
    corpus = write_jsonl(tmp_path / "in" / "docs.jsonl", ["text"])
    small_tokenizer(tmp_path / "t.json")
    encode(corpus.inputs(), tmp_path / "t.json", tmp_path / "ids")
    (part,) = (tmp_path / "ids").glob("data/train-*")
    table = pq.read_table(part)
    place = table.schema.get_field_index("input_ids")
    ids = table.column(place).to_pylist()[0]
    wrong = pa.array([[9999, *ids[1:]]], table.schema.field(place).type)
    pq.write_table(table.set_column(place, table.schema.field(place), wrong), part)
    data = part.read_bytes()
    written = {"bytes": len(data), "sha256": hashlib.sha256(data).hexdigest()}
    edit_manifest(tmp_path / "ids", lambda manifest: manifest["parts"][0].update(written))
    with pytest.raises(InputError, match=rf"{part.name}: .*9999.*: check it with bpe verify"):
        jobs.decode(directory=str(tmp_path / "ids"), stream=io.BytesIO())


def test_a_reader_that_goes_away_is_told_as_that(tmp_path: Path) -> None:
    corpus = write_jsonl(tmp_path / "in" / "docs.jsonl", ["text"])
    small_tokenizer(tmp_path / "t.json")
    encode(corpus.inputs(), tmp_path / "t.json", tmp_path / "ids")

    class Gone(io.BytesIO):
        def write(self, data: object, /) -> int:
            raise BrokenPipeError

    with pytest.raises(BrokenPipeError):
        jobs.decode(directory=str(tmp_path / "ids"), stream=Gone())
