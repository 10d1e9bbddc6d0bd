"""Packed rows: which documents they are of, and what happens to the last one."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipelines.errors import ConfigError, RecordError
from pipelines.settings import ADDED_COLUMNS, ExportSettings
from tests.examples import examples
from tests.export import oracle
from tests.export.exports import export_and_check, export_plainly, found
from tests.export.oracle import Options, Row
from tests.pipelines.corpora import END, encode, write_jsonl

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


def rows(output: Path, half: str = "train") -> list[Row]:
    return [row for rows in found(output, "parquet", half) for row in rows]


def test_rows_are_rectangular_where_the_last_is_padded_or_dropped(
    ids: Callable[[str], Path], tmp_path: Path
) -> None:
    sources = {"edges": ids("edges"), "web": ids("web")}
    for name, options in (
        ("dropped", Options(pack=33, pack_remainder="drop", validation="20%")),
        ("padded", Options(pack=33, pack_remainder="pad", pad_token=END, validation="20%")),
    ):
        export_and_check(sources, tmp_path / name, options)
        for half in ("train", "validation"):
            assert {len(row["input_ids"]) for row in rows(tmp_path / name, half)} == {33}
    manifest = json.loads((tmp_path / "dropped" / "manifest.json").read_bytes())
    for half, documents in oracle.halves(oracle.read(sources), options).items():
        written = rows(tmp_path / "dropped", half)
        totals = manifest["training" if half == "train" else half]
        tokens = sum(row["num_tokens"] for row in written)
        assert totals["tokens"] == tokens
        assert totals["dropped_tokens"] == sum(len(one.ids) for one in documents) - tokens < 33
        begun = [one["id"] for row in written for one in row["documents"] if not one["offset"]]
        assert totals["dropped_documents"] == len(documents) - len(begun)


lengths = st.lists(st.integers(0, 9), max_size=14)


@st.composite
def shapes(draw: Any) -> dict[str, Any]:
    """Options of packed rows that go together."""
    packing = draw(st.sampled_from(["concatenate", "best-fit"]))
    remainders = ["keep", "pad"] if packing == "best-fit" else ["keep", "drop", "pad"]
    remainder = draw(st.sampled_from(remainders))
    return {
        "pack": draw(st.integers(1, 7)),
        "packing": packing,
        "pack_remainder": remainder,
        "pad_token": END if remainder == "pad" else None,
        "add_column": tuple(draw(st.lists(st.sampled_from(ADDED_COLUMNS), unique=True))),
        "shuffle": draw(st.none() | st.integers(0, 99)),
        "validation": draw(st.sampled_from(["0", "1/2"])),
    }


@examples(40)
@given(
    sizes=lengths,
    shape=shapes() | st.builds(lambda n: {"max_tokens": n}, st.integers(1, 5)),
    unit_tokens=st.sampled_from([1, 6, 20, 10**6]),
    split_size=st.sampled_from([60, 200, None]),
)
def test_any_rows(
    ids: Callable[[str], Path],
    tmp_path_factory: pytest.TempPathFactory,
    *,
    sizes: list[int],
    shape: dict[str, Any],
    unit_tokens: int,
    split_size: int | None,
) -> None:
    folder = tmp_path_factory.mktemp("rows")
    texts = ["".join("zqxjkvwy"[(i + n) % 8] for n in range(size)) for i, size in enumerate(sizes)]
    corpus = write_jsonl(folder / "in" / "docs.jsonl", texts)
    model = ids("web") / "tokenizer.json"
    encode(corpus.inputs(split_size=split_size), model, folder / "ids")
    options = Options(**shape)
    export_and_check({"ids": folder / "ids"}, folder / "out", options, unit_tokens=unit_tokens)


def test_a_row_names_no_endless_number_of_documents(
    ids: Callable[[str], Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pipelines.export.rows.MAX_ROW_DOCUMENTS", 20)
    export_plainly({"web": ids("web")}, tmp_path / "few", Options(pack=16))
    with pytest.raises(RecordError, match=r"more than 20 documents.*`append_token`"):
        export_plainly({"edges": ids("edges")}, tmp_path / "many", Options(pack=16))


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"max_tokens": 0}, "`max_tokens` 0 is not between 1 and"),
        ({"pack": 1 << 21}, "`pack` 2097152 is not between 1 and 1,048,576"),
        ({"pack": 8, "max_tokens": 8}, "`pack` and `max_tokens` exclude each other"),
        ({"pack_remainder": "drop"}, "needs `pack`"),
        ({"packing": "best-fit"}, "needs `pack`"),
        ({"pack": 8, "packing": "best-fit", "pack_remainder": "drop"}, "`packing` best-fit"),
        ({"pack": 8, "pack_remainder": "carry"}, "use one of keep, drop, pad"),
        ({"pack": 8, "pad_token": END}, "needs `pack_remainder` pad"),
        ({"add_column": ("cu_seqlens",)}, "`add_column` needs `pack`"),
        ({"pack": 8, "add_column": ("cu_seqlens",) * 2}, "`add_column`: a column is named twice"),
        ({"pack": 8, "add_column": ("mask",)}, "use one of document_ids, position_ids, cu_seqlens"),
        ({"pack": 8, "to": "bin", "add_column": ("cu_seqlens",)}, "needs `to` parquet"),
    ],
)
def test_settings_that_cannot_be_are_refused(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        ExportSettings(**{"to": "parquet", **settings})


@pytest.mark.parametrize(
    ("pad_token", "message"),
    [
        ("<pad>", "`pad_token`: '<pad>' is not a special token"),
        (None, "no token for the role pad: name a special token"),
    ],
)
def test_the_pad_token_is_one_of_the_tokenizer(
    ids: Callable[[str], Path], tmp_path: Path, pad_token: str | None, message: str
) -> None:
    options = Options(pack=8, pack_remainder="pad", pad_token=pad_token)
    with pytest.raises(ConfigError, match=message):
        export_plainly({"web": ids("web")}, tmp_path / "out", options)
    assert not (tmp_path / "out").exists()
