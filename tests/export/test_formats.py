"""Every format holds the rows that the oracle expects, whatever they are of."""

from __future__ import annotations

import itertools
import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from pipelines.errors import ConfigError
from pipelines.settings import EncodeSettings
from tests import jobs
from tests.export import readers
from tests.export.exports import (
    FORMATS,
    Options,
    expected,
    export,
    export_and_check,
    export_plainly,
    found,
    inputs_of,
    verify,
)
from tests.pipelines.corpora import END, encode, sentence, tree, write_jsonl
from tests.pipelines.object_store import ObjectStore
from tests.shared_data import LONG

if TYPE_CHECKING:
    from pathlib import Path

    from tests.export.conftest import Ids

SHAPES: dict[str, dict[str, Any]] = {
    "documents": {},
    "chunks": {"max_tokens": 7},
    "kept": {"pack": 16},
    "dropped": {"pack": 33, "pack_remainder": "drop"},
    "padded": {"pack": 33, "pack_remainder": "pad", "pad_token": END},
    "fitted": {"pack": 33, "packing": "best-fit"},
    "fitted and padded": {
        "pack": 33,
        "packing": "best-fit",
        "pack_remainder": "pad",
        "pad_token": END,
    },
}
TAKEN: dict[str, dict[str, Any]] = {
    "all": {},
    "both halves": {"validation": 0.3},
    "validation alone": {"validation": 0.9999999999},
    "mixed": {"mix": ("web=70%", "code=30%")},
    "repeated": {
        "mix": ("web=2/3", "code=1/3"),
        "token_budget": 3500,
        "mix_seed": 5,
        "validation": 0.3,
    },
}
ORDERS = {"in order": None, "shuffled": 7}
CASES = [*itertools.product(FORMATS, SHAPES, TAKEN, ORDERS)]


@pytest.mark.parametrize(
    ("to", "shape", "taken", "order"),
    CASES if LONG else CASES[::23],  # 23 divides no number of choices: they take turns
)
def test_the_matrix(
    ids: Ids, tmp_path: Path, *, to: Any, shape: str, taken: str, order: str
) -> None:
    names = ("web", "code") if "mix" in TAKEN[taken] else ("edges", "code", "blank")
    options = Options(to=to, **SHAPES[shape], **TAKEN[taken], shuffle=ORDERS[order])
    sources = {name: ids(name) for name in names}
    export_and_check(sources, tmp_path / "out", options)
    verify(tmp_path / "out", sources)


@pytest.mark.parametrize("to", FORMATS if LONG else ["bin", "litdata"])
@pytest.mark.parametrize("shape", SHAPES)
def test_parts_of_empty_documents_are_there(ids: Ids, tmp_path: Path, to: Any, shape: str) -> None:
    """They were left out once, and their rows counted; those of padding alone even in a stream."""
    options = Options(to=to, **SHAPES[shape])
    for name in ("edges", "blank"):
        export_and_check({name: ids(name)}, tmp_path / name, options, unit_tokens=9)
        if options.pack_remainder == "pad" and to in ("bin", "litdata"):
            rows = json.loads((tmp_path / name / "manifest.json").read_bytes())["training"]["rows"]
            assert sum(map(np.size, found(tmp_path / name, to))) == 33 * rows > 0


# On other workers: tests/contract/test_promises.py and, all formats, tests/cluster.
def test_in_a_store_it_is_the_same(ids: Ids, tmp_path: Path) -> None:
    options = Options(pack=16, shuffle=1, validation=0.2, token_budget=900)
    for path in ids("web").rglob("*"):
        if path.is_file():
            name = f"store://bucket/ids/{path.relative_to(ids('web'))}"
            ObjectStore.objects[name] = path.read_bytes()
    try:
        stored_ids: dict[str, Any] = {"web": "store://bucket/ids"}
        for to in FORMATS if LONG else ("megatron", "mds"):
            output, options = f"store://bucket/{to}", replace(options, to=to)
            export(stored_ids, output, options)
            export_plainly({"web": ids("web")}, tmp_path / to, options)
            assert ObjectStore.tree(output) == tree(tmp_path / to)
        assert jobs.verify(directory=output, inputs=inputs_of(stored_ids)).compared
    finally:
        ObjectStore.objects.clear()


def test_bin_has_the_header_of_llm_c(ids: Ids, tmp_path: Path) -> None:
    options = Options(to="bin", header="llm.c", validation=0.2)
    export_and_check({"web": ids("web")}, tmp_path / "out", options)
    for path in (tmp_path / "out").glob("*.bin"):
        number = (path.stat().st_size - 1024) // 2
        assert np.fromfile(path, "<i4", 256).tolist() == [20240520, 1, number, *[0] * 253]


def test_ids_of_32_bits(ids: Ids, tmp_path: Path) -> None:
    corpus = write_jsonl(tmp_path / "in" / "docs.jsonl", [sentence(i) for i in range(9)])
    model = ids("web") / "tokenizer.json"
    encode(corpus.inputs(), model, tmp_path / "ids", encoding=EncodeSettings(id_type="uint32"))
    sources = {"ids": tmp_path / "ids"}
    for to in FORMATS:
        export_and_check(sources, tmp_path / to, Options(to=to))
    export_and_check(sources, tmp_path / "llm.c", Options(to="bin", header="llm.c"))
    (path,) = (tmp_path / "llm.c").glob("*.bin")
    assert np.fromfile(path, "<i4", 2).tolist() == [20240801, 7]


@pytest.mark.parametrize("to", ["mds", "litdata"])
@pytest.mark.parametrize("shard_size", [1, 600, 64 << 20])
def test_shards_are_filled_up_to_their_size(
    ids: Ids, tmp_path: Path, to: Any, shard_size: int
) -> None:
    sources = {"web": ids("web"), "edges": ids("edges")}
    options = Options(to=to, shard_size=shard_size)
    export_and_check(sources, tmp_path / "out", options, unit_tokens=10**6)
    read = readers.mds_shards if to == "mds" else readers.litdata_shards
    shards = read(tmp_path / "out")
    sizes = [(tmp_path / "out" / name).stat().st_size for name, _ in shards]
    for size, (_, rows) in zip(sizes, shards, strict=True):
        assert size <= shard_size or len(rows) == 1
    for size, (one, _), (other, rows) in zip(sizes, shards, shards[1:], strict=False):
        if one.split(".")[0] == other.split(".")[0]:  # the next row had no room
            assert size + len(rows[0]) * 2 + 100 > shard_size
    assert len(shards) == 2 or shard_size <= 600


def test_more_ids_than_a_header_counts_are_refused(
    ids: Ids, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pipelines.export.flat._MAX_IDS", 100)
    with pytest.raises(ConfigError, match=r"this header counts to 100: leave it out"):
        export({"web": ids("web")}, tmp_path / "out", Options(to="bin", header="llm.c"))


def test_row_groups_are_read_one_after_the_other(
    ids: Ids, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pipelines.parquet_writer.ROW_GROUP_ROWS", 3)
    texts = [f"{i} the quick " * (i % 9) for i in range(40)]
    corpus = write_jsonl(tmp_path / "in" / "a.jsonl", texts)
    encode(corpus.inputs(split_size=1 << 20), ids("web") / "tokenizer.json", tmp_path / "ids")
    for name, options in (("rows", Options(pack=16)), ("shuffled", Options(pack=16, shuffle=1))):
        export_and_check({"ids": tmp_path / "ids"}, tmp_path / name, options)


# What frameworks themselves read, where they are installed: each needs PyTorch, which is gigabytes.
# The readers above go by the same descriptions, and always run.


def rows_of(ids: Ids) -> list[list[int]]:
    (rows,) = expected({"web": ids("web")}, Options(), unit_tokens=10**6)["train"]
    return [row["input_ids"] for row in rows]


def test_megatron_reads_it(ids: Ids, tmp_path: Path) -> None:
    reader = pytest.importorskip("megatron.core.datasets.indexed_dataset")
    export_plainly({"web": ids("web")}, tmp_path / "out", Options(to="megatron"), unit_tokens=10**6)
    dataset = reader.IndexedDataset(str(tmp_path / "out" / "train-00000-of-00001"))
    assert [dataset[i].tolist() for i in range(len(dataset))] == rows_of(ids)


def test_streaming_reads_it(ids: Ids, tmp_path: Path) -> None:
    streaming = pytest.importorskip("streaming")
    export_plainly({"web": ids("web")}, tmp_path / "out", Options(to="mds", shard_size=900))
    dataset = streaming.StreamingDataset(local=str(tmp_path / "out"), batch_size=1)
    assert [dataset[i]["input_ids"].tolist() for i in range(len(dataset))] == rows_of(ids)


def test_litdata_reads_it(ids: Ids, tmp_path: Path) -> None:
    litdata = pytest.importorskip("litdata")
    export_plainly({"web": ids("web")}, tmp_path / "out", Options(to="litdata"))
    loader = litdata.TokensLoader(block_size=1)
    dataset = litdata.StreamingDataset(str(tmp_path / "out"), item_loader=loader)
    expected_ids = [id_ for row in rows_of(ids) for id_ in row]
    assert [int(dataset[i][0]) for i in range(len(dataset))] == expected_ids
