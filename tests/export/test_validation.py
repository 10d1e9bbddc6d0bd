"""Documents held out for validation: which, and where they are."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import datasets
import pytest

from pipelines.errors import ConfigError
from pipelines.settings import ExportSettings
from tests.export import oracle
from tests.export.exports import FORMATS, export_and_check, export_plainly, found
from tests.export.oracle import Options

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


def rows(output: Path, half: str) -> list[dict[str, Any]]:
    return [row for rows in found(output, "parquet", half) for row in rows]


def test_the_key_decides(ids: Callable[[str], Path], tmp_path: Path) -> None:
    sources = {"web": ids("web"), "code": ids("code")}
    export_and_check(sources, tmp_path / "out", Options(validation="25%"))
    documents = oracle.read(sources)
    held_out = [one.id for one in documents if one.key < 2**62]
    assert 0 < len(held_out) < len(documents)
    assert [row["id"] for row in rows(tmp_path / "out", "validation")] == held_out
    rest = [one.id for one in documents if one.id not in held_out]
    assert [row["id"] for row in rows(tmp_path / "out", "train")] == rest


@pytest.mark.parametrize("to", FORMATS)
def test_a_half_without_documents_has_no_files(
    ids: Callable[[str], Path], tmp_path: Path, to: str
) -> None:
    for name, share in (("train", "0"), ("validation", "0.9999999999")):
        export_and_check({"web": ids("web")}, tmp_path / name, Options(validation=share), to=to)
        other = "validation" if name == "train" else "train"
        assert found(tmp_path / name, to, name)
        assert not found(tmp_path / name, to, other)


def test_a_larger_share_holds_out_the_documents_of_a_smaller_one(
    ids: Callable[[str], Path], tmp_path: Path
) -> None:
    before: set[str] = set()
    for share in ("5%", "20%", "3/4"):
        options = Options(validation=share, shuffle=1)
        export_and_check({"web": ids("web")}, tmp_path / share.replace("/", "_"), options)
        output = tmp_path / share.replace("/", "_")
        held_out = {row["id"] for row in rows(output, "validation")}
        assert before < held_out
        before = held_out


def test_packed_rows_mix_no_documents_of_both(ids: Callable[[str], Path], tmp_path: Path) -> None:
    options = Options(validation="1/4", pack=16, shuffle=3)
    export_and_check({"web": ids("web")}, tmp_path / "out", options)
    key_of = {one.id: one.key for one in oracle.read({"web": ids("web")})}
    for half, expected in (("validation", True), ("train", False)):
        pieces = [piece for row in rows(tmp_path / "out", half) for piece in row["documents"]]
        assert {key_of[piece["id"]] < 2**62 for piece in pieces} == {expected}


def test_datasets_loads_both(ids: Callable[[str], Path], tmp_path: Path) -> None:
    export_plainly({"web": ids("web")}, tmp_path / "out", Options(validation="25%"))
    loaded = datasets.load_dataset(str(tmp_path / "out"), streaming=True)
    assert {name: list(loaded[name]) for name in loaded} == {
        name: rows(tmp_path / "out", name) for name in ("train", "validation")
    }


def test_the_manifest_counts_both(ids: Callable[[str], Path], tmp_path: Path) -> None:
    made = export_plainly({"web": ids("web")}, tmp_path / "out", Options(validation="25%"))
    held_out, train = (rows(tmp_path / "out", half) for half in ("validation", "train"))
    totals = json.loads((tmp_path / "out" / "manifest.json").read_bytes())
    for half, some in (("training", train), ("validation", held_out)):
        assert totals[half]["documents"] == totals[half]["rows"] == len(some)
        assert totals[half]["tokens"] == sum(row["num_tokens"] for row in some)
    assert made.sum_of("rows") == 90


@pytest.mark.parametrize("share", [1, 1000, -0.1, float("nan"), "0.5%", True])
def test_what_is_no_share_is_refused(share: Any) -> None:
    with pytest.raises(ConfigError, match=r"`validation` .*: give a share from 0 to below 1"):
        ExportSettings(to="bin", validation=share)
