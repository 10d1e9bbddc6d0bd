"""The column `key`: the hash by which an export holds out and chooses documents."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
from xxhash import xxh64_intdigest as xxh64

from tests import jobs
from tests.pipelines.corpora import encode, write_jsonl, write_rows

if TYPE_CHECKING:
    from pathlib import Path


def test_a_key_is_the_hash_of_the_id_or_else_of_the_text(model: Path, tmp_path: Path) -> None:
    records: list[dict[str, Any]] = [
        {"id": "ünï", "text": "a"},
        {"text": "same"},
        {"id": 7, "text": ""},
        {"id": None, "text": "same"},
    ]
    write_rows(tmp_path / "in" / "a.jsonl", records)
    (tmp_path / "in" / "b.txt").write_text("same", "utf-8")
    ids = pa.array(["x", None])
    pq.write_table(pa.table({"id": ids, "text": ["1", "same"]}), tmp_path / "in" / "c.parquet")
    expected = [xxh64(one.encode()) for one in ("ünï", "same", "7", "same", "same", "x", "same")]
    corpus = write_jsonl(tmp_path / "in" / "d.jsonl", [])
    for split_size in (None, 60):
        output = tmp_path / f"ids{split_size}"
        encode(corpus.inputs(split_size=split_size), model, output)
        keys = pq.read_table(output / "data")["key"]
        assert keys.type == pa.uint64()
        assert keys.to_pylist() == expected
        assert jobs.verify(directory=str(output), inputs=corpus.inputs(split_size=split_size))
