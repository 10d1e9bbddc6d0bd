"""Parquet ids back to documents."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import bpe
from pipelines import storage
from pipelines.errors import InputError
from tests.pipelines.corpora import (
    decoded,
    edit_manifest,
    encode,
    write_jsonl,
)

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def one(model: Path, tmp_path: Path) -> Path:
    """A document that is encoded."""
    corpus = write_jsonl(tmp_path / "in" / "docs.jsonl", ["text"])
    encode(corpus.inputs(), model, tmp_path / "ids")
    return tmp_path / "ids"


def test_counts_are_not_decoded(counted: Path) -> None:
    with pytest.raises(InputError, match="holds counts"):
        decoded(counted)


def test_an_earlier_manifest_is_refused_with_the_remedy(one: Path) -> None:
    edit_manifest(one, partial(dict.update, version=5))
    with pytest.raises(InputError, match=r"reads 8: .*or encode the corpus again to another"):
        decoded(one)


def test_another_tokenizer_is_refused(one: Path) -> None:
    other = bpe.train(bpe.count_pretokens(["aaaa"]), vocab_size=257)
    other.save(one / "tokenizer.json")
    with pytest.raises(InputError, match="not the tokenizer that the manifest names"):
        decoded(one)


def test_an_id_of_no_token_is_named_with_its_part(one: Path) -> None:
    (part,) = one.glob("data/train-*")
    table = pq.read_table(part)
    place = table.schema.get_field_index("input_ids")
    ids = table.column(place).to_pylist()[0]
    wrong = pa.array([[9999, *ids[1:]]], table.schema.field(place).type)
    pq.write_table(table.set_column(place, table.schema.field(place), wrong), part)
    written = storage.digest(str(part))
    entry = {"bytes": written.bytes, "sha256": written.sha256}
    edit_manifest(one, lambda manifest: manifest["parts"][0].update(entry))
    with pytest.raises(InputError, match=rf"{part.name}: .*9999.*: check it with bpe verify"):
        decoded(one)
