"""Real text of ten languages and code, in every format, cut as a plan cuts it."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from pipelines.corpus.documents import ReadOptions, read_split
from pipelines.corpus.inputs import find_inputs
from pipelines.corpus.splits import plan_splits
from pipelines.settings import InputSettings
from tests.pipelines.corpus_files import pack
from tests.shared_data import shared_rows

if TYPE_CHECKING:
    from pathlib import Path

    from pipelines.corpus.files import Compression
    from pipelines.settings import Format


def read_back(path: Path | str, split_size: int, format_: Format = "auto") -> pa.Table:
    """Ids and texts of a file, read split by split."""
    settings = InputSettings(patterns=(str(path),), format=format_)
    ids: list[pa.Array] = []
    texts: list[pa.Array] = []
    for split in plan_splits(find_inputs(settings).files, split_size):
        for block in read_split(split, ReadOptions()):
            assert block.bad == ()
            ids.append(block.ids)
            texts.append(block.texts.cast(pa.string()))
    return pa.table({"id": pa.chunked_array(ids), "text": pa.chunked_array(texts)})


@pytest.mark.shared
@pytest.mark.parametrize("how", ["parquet", "escaped", "utf-8"])
def test_records(tmp_path: Path, how: str) -> None:
    corpus = shared_rows("multi", sample=2000)
    path = tmp_path / ("f.parquet" if how == "parquet" else "f.jsonl")
    if how == "parquet":
        pq.write_table(corpus, path, row_group_size=500)
    else:
        rows = [json.dumps(row, ensure_ascii=how == "escaped") for row in corpus.to_pylist()]
        path.write_text("".join(row + "\n" for row in rows), "utf-8", newline="")
    for split_size in (999_999, 1 << 30):
        assert read_back(path, split_size).equals(corpus)


@pytest.mark.shared
@pytest.mark.parametrize("compression", ["none", "gz", "zst"])
def test_lines(tmp_path: Path, compression: Compression) -> None:
    text = "\n".join(shared_rows("multi", sample=2000)["text"].to_pylist()).removesuffix("\n")
    path = tmp_path / ("f" if compression == "none" else f"f.{compression}")
    path.write_bytes(pack(text.encode(), compression))
    lines = [line.removesuffix("\r") for line in text.split("\n")]
    assert read_back(path, 1_000_003, "lines")["text"].to_pylist() == lines
