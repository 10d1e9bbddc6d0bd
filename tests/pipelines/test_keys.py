"""The column `key`: the hash by which an export holds out and chooses documents."""

from __future__ import annotations

import json
from functools import partial
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from xxhash import xxh64_intdigest as xxh64

from pipelines.encode.manifest import read_encoded
from pipelines.errors import InputError, VerificationError
from tests import jobs
from tests.pipelines.corpora import edit_manifest, encode, write_jsonl

if TYPE_CHECKING:
    from pathlib import Path


def keys(directory: Path) -> list[int]:
    found = pa.concat_tables(map(pq.read_table, sorted(directory.glob("data/train-*"))))["key"]
    assert found.type == pa.uint64()
    assert not found.null_count
    return list(found.to_pylist())


def test_a_key_is_the_hash_of_the_id_or_else_of_the_text(model: Path, tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    records = [
        {"id": "ünï", "text": "a"},
        {"text": "same"},
        {"id": 7, "text": ""},
        {"id": None, "text": "same"},
    ]
    lines = [json.dumps(record) + "\n" for record in records]
    (tmp_path / "in" / "a.jsonl").write_text("".join(lines), "utf-8")
    (tmp_path / "in" / "b.txt").write_text("same", "utf-8")
    ids = pa.array(["x", None])
    pq.write_table(pa.table({"id": ids, "text": ["1", "same"]}), tmp_path / "in" / "c.parquet")
    expected = [xxh64(one.encode()) for one in ("ünï", "same", "7", "same", "same", "x", "same")]
    corpus = write_jsonl(tmp_path / "in" / "d.jsonl", [])
    for split_size in (None, 60):
        output = tmp_path / f"ids{split_size}"
        encode(corpus.inputs(split_size=split_size), model, output)
        assert keys(output) == expected
        assert jobs.verify(directory=str(output), inputs=corpus.inputs(split_size=split_size))


def test_earlier_manifests_are_refused_with_the_remedy(model: Path, tmp_path: Path) -> None:
    corpus = write_jsonl(tmp_path / "in" / "docs.jsonl", ["a b"])
    encode(corpus.inputs(), model, tmp_path / "ids")
    for version in (4, 5):
        edit_manifest(tmp_path / "ids", partial(dict.update, version=version))
        with pytest.raises(InputError, match="or encode the corpus again to another"):
            read_encoded(str(tmp_path / "ids"))
        with pytest.raises((InputError, VerificationError), match="this release reads 7"):
            jobs.verify(directory=str(tmp_path / "ids"))
