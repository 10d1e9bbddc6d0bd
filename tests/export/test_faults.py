"""Faults that exports had once."""

from __future__ import annotations

import itertools
import json
import shutil
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import bpe
from bpe.roles import Roles
from pipelines.export.plan import plan_export
from pipelines.settings import EncodeSettings
from tests.cli.process import bpe as command
from tests.export.exports import FORMATS, export_and_check, found, settings_of
from tests.export.oracle import Options
from tests.pipelines.corpora import END, encode, sentence, write_jsonl
from tests.shared_data import LONG

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


SHAPES: list[dict[str, Any]] = [{}, {"max_tokens": 5}, {"pack": 8}]


@pytest.mark.parametrize(
    ("to", "shape", "name"),
    [
        (to, shape, name)
        for (i, to), (j, shape), (k, name) in itertools.product(
            enumerate(FORMATS), enumerate(SHAPES), enumerate(("edges", "blank"))
        )
        if LONG or (i + k) % len(SHAPES) == j
    ],
)
def test_rows_that_are_counted_are_there(
    ids: Callable[[str], Path], tmp_path: Path, *, to: str, shape: dict[str, Any], name: str
) -> None:
    """Parts whose documents are all empty were left out, and their rows counted."""
    options = Options(**shape)
    export_and_check({name: ids(name)}, tmp_path / "out", options, to=to, unit_tokens=9)
    totals = json.loads((tmp_path / "out" / "manifest.json").read_bytes())["training"]
    if to not in ("bin", "litdata"):
        parts = found(tmp_path / "out", to)
        rows = [row for part in parts for row in (part[0] if to == "megatron" else part)]
        assert len(rows) == totals["rows"]


@pytest.mark.parametrize("packing", ["concatenate", "best-fit"])
@pytest.mark.parametrize("to", ["bin", "litdata"])
def test_rows_of_padding_alone_are_there(
    ids: Callable[[str], Path], tmp_path: Path, *, to: str, packing: str
) -> None:
    """Parts of empty documents whose rows are padded were left out, and their rows counted."""
    options = Options(pack=8, packing=packing, pack_remainder="pad", pad_token=END)
    output = tmp_path / "out"
    export_and_check({"blank": ids("blank")}, output, options, to=to, unit_tokens=9)
    rows = json.loads((output / "manifest.json").read_bytes())["training"]["rows"]
    assert rows > 0
    assert sum(map(np.size, found(output, to))) == 8 * rows


def test_packed_documents_that_nothing_separates_are_warned_of(tmp_path: Path) -> None:
    corpus = write_jsonl(tmp_path / "in" / "docs.jsonl", [sentence(i) for i in range(40)])
    trained = bpe.train(bpe.count_pretokens(["the quick"]), vocab_size=300, special_tokens=[END])
    with_end = trained.with_roles(Roles(eos=END))
    for name, tokenizer, append_token in (
        ("glued", with_end, None),
        ("ended", with_end, "eos"),
        ("none", trained, None),
    ):
        model = tmp_path / "model" / name / "tokenizer.json"
        model.parent.mkdir(parents=True)
        tokenizer.save(model)
        encoding = EncodeSettings(append_token=append_token)
        encode(corpus.inputs(), model, tmp_path / name, encoding=encoding)
        shutil.copytree(model.parent, tmp_path / name, dirs_exist_ok=True)
    for name, rows, warned in (
        ("glued", Options(pack=16), True),
        ("glued", Options(pack=32, packing="best-fit"), True),
        ("glued", Options(max_tokens=16), False),
        ("ended", Options(pack=16), False),
        ("none", Options(pack=16), False),
    ):
        directories = {name: str(tmp_path / name)}
        *_, warning = plan_export(directories, settings_of(rows, "bin"))
        assert ("--append-token" in warning) == warned
    done = command("export", "glued", "--to", "bin", "--output", "o", "--pack", "16", cwd=tmp_path)
    assert "--append-token" in done.stdout
