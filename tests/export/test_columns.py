"""The columns of Parquet exports: those of the sources together, and in what they open."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import datasets
import duckdb
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from transformers import AutoTokenizer

import bpe
from pipelines.errors import ConfigError
from pipelines.settings import EncodeSettings, InputSettings
from tests.export.exports import Options, export_and_check, export_plainly, rows, verify
from tests.pipelines.corpora import encode, sentence, write_rows

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.export.conftest import Ids

Rows = list[dict[str, Any]]
SHAPES = {
    "documents": Options(),
    "chunks": Options(max_tokens=8, shuffle=1),
    "packed": Options(pack=16, add_column=("document_ids", "position_ids", "cu_seqlens")),
}


@pytest.mark.parametrize("shape", SHAPES)
def test_a_column_that_a_source_lacks_is_null(ids: Ids, tmp_path: Path, shape: str) -> None:
    sources = {"edges": ids("edges"), "web": ids("web"), "code": ids("code")}
    export_and_check(sources, tmp_path / "out", SHAPES[shape])
    for path in (tmp_path / "out" / "data").glob("*"):
        schema = pq.read_schema(path)
        of_pieces = (
            schema if shape != "packed" else pa.schema(schema.field("documents").type.value_type)
        )
        assert [of_pieces.field(name).type for name in ("lang", "score", "stars")] == [
            *(pa.string(), pa.float64(), pa.int64())
        ]


def encoded(folder: Path, model: Path, values: Rows, **settings: Any) -> Path:
    write_rows(
        folder / "in" / "docs.jsonl", [{"text": sentence(i), **one} for i, one in enumerate(values)]
    )
    inputs = InputSettings(patterns=(str(folder / "in"),), split_size=300)
    encode(inputs, model, folder / "ids", encoding=EncodeSettings(**settings))
    return folder / "ids"


def test_a_column_of_two_types_is_refused(ids: Ids, tmp_path: Path) -> None:
    model = ids("web") / "tokenizer.json"
    one = encoded(tmp_path / "one", model, [{"score": "high"}] * 5, keep=("score",))
    with pytest.raises(ConfigError, match=r"score.*string.*double|score.*double.*string"):
        export_plainly({"web": ids("web"), "one": one}, tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_a_number_that_is_none_is_the_same_when_it_is_made_again(ids: Ids, tmp_path: Path) -> None:
    values: Rows = [{"score": float("nan")}, {"score": 1.5}] * 4
    source = encoded(tmp_path, ids("web") / "tokenizer.json", values, keep=("score:double",))
    export_plainly({"one": source}, tmp_path / "out", Options(pack=16))
    verify(tmp_path / "out", {"one": source})


def test_other_ids_are_refused(ids: Ids, tmp_path: Path) -> None:
    model = ids("web") / "tokenizer.json"
    wide = encoded(tmp_path / "wide", model, [{}] * 5, id_type="uint32")
    with pytest.raises(ConfigError, match=r"uint32.*uint16|uint16.*uint32"):
        export_plainly({"web": ids("web"), "wide": wide}, tmp_path / "out")
    tokenizer = bpe.train(bpe.count_pretokens(["the quick"]), vocab_size=260)
    tokenizer.save(tmp_path / "other.json")
    other = encoded(tmp_path / "other", tmp_path / "other.json", [{}] * 5)
    with pytest.raises(ConfigError, match="tokenizer"):
        export_plainly({"web": ids("web"), "other": other}, tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_columns_of_every_type_travel_with_their_documents(ids: Ids, tmp_path: Path) -> None:
    values: Rows = [
        {"n": i, "tags": [f"t{i}"] * (i % 3), "at": {"x": i / 2} if i % 7 else None}
        for i in range(60)
    ]
    names = ("n", "tags", "at")
    source = encoded(tmp_path, ids("web") / "tokenizer.json", values, keep=names)
    for name, options in (("rows", Options(shuffle=1)), ("packed", Options(shuffle=1, pack=64))):
        export_and_check({"ids": source}, tmp_path / name, options)


# The Parquet opens in what people train with.


def by_datasets(directory: Path) -> Rows:
    return list(datasets.load_dataset(str(directory), split="train", streaming=True))


def by_pyarrow(directory: Path) -> Rows:
    rows: Rows = pq.read_table(directory / "data").to_pylist()
    return rows


def by_polars(directory: Path) -> Rows:
    return pl.read_parquet(directory / "data" / "train-*.parquet").to_dicts()


def by_duckdb(directory: Path) -> Rows:
    with duckdb.connect() as connection:
        result = connection.execute(f"SELECT * FROM '{directory}/data/train-*.parquet'")  # noqa: S608
        names = [column[0] for column in result.description]
        return [dict(zip(names, row, strict=True)) for row in result.fetchall()]


def by_pandas(directory: Path) -> Rows:
    rows: Rows = pa.Table.from_pandas(pd.read_parquet(directory / "data")).to_pylist()
    return rows


@pytest.fixture(scope="module", params=["ids", *SHAPES])
def opened(
    request: pytest.FixtureRequest,
    ids: Ids,
    tmp_path_factory: pytest.TempPathFactory,
) -> Path:
    """The ids themselves, or an export; with a temporary file left in it."""
    if request.param == "ids":
        return ids("web")
    folder = tmp_path_factory.mktemp("open") / "out"
    export_plainly({"web": ids("web")}, folder, SHAPES[request.param])
    left = folder / "data" / f".train-00000-of-00001.parquet.{'0' * 32}.tmp"
    left.write_bytes(b"half")
    return folder


@pytest.mark.parametrize("read", [by_datasets, by_pyarrow, by_polars, by_duckdb, by_pandas])
def test_it_opens_and_says_the_same(opened: Path, read: Callable[[Path], Rows]) -> None:
    paths = sorted((opened / "data").glob("train-*.parquet"))
    expected = [row for path in paths for row in pq.read_table(path).to_pylist()]
    assert len(expected) > 20
    assert read(opened) == expected


def test_transformers_has_the_tokenizer(opened: Path) -> None:
    assert len(AutoTokenizer.from_pretrained(str(opened))) == 320


def test_datasets_loads_both_halves(ids: Ids, tmp_path: Path) -> None:
    export_plainly({"web": ids("web")}, tmp_path / "out", Options(validation=0.25))
    loaded = datasets.load_dataset(str(tmp_path / "out"), streaming=True)
    assert {name: list(loaded[name]) for name in loaded} == {
        name: rows(tmp_path / "out", name) for name in ("train", "validation")
    }
