"""Faults that exports had once."""

from __future__ import annotations

import itertools
import json
import shutil
from typing import TYPE_CHECKING, Any

import pytest

from tests.cli.process import bpe
from tests.export.exports import FORMATS, export_and_check, found
from tests.export.oracle import Options
from tests.pipelines.corpora import END, sentence, write_jsonl
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


def test_packed_documents_that_nothing_separates_are_warned_of(tmp_path: Path) -> None:
    corpus = write_jsonl(tmp_path / "in" / "docs.jsonl", [sentence(i) for i in range(40)])
    train = ("train", "--input", corpus.folder, "--vocab-size", "300", "--output", "model", "-q")
    bpe(*train, "--eos", END, cwd=tmp_path)
    encode = ("encode", "--input", corpus.folder, "--tokenizer", "model/tokenizer.json", "-q")
    bpe(*encode, "--output", "glued", cwd=tmp_path)
    bpe(*encode, "--output", "ended", "--append-token", "eos", cwd=tmp_path)
    for name in ("glued", "ended"):
        shutil.copy(tmp_path / "model" / "tokenizer_config.json", tmp_path / name)
    for name, rows, warned in (
        ("glued", ("--pack", "16"), True),
        ("glued", ("--pack", "32", "--packing", "best-fit"), True),
        ("ended", ("--pack", "16"), False),
        ("glued", ("--max-tokens", "16"), False),
    ):
        output = ("--output", f"{name}{len(rows[0])}-{rows[1]}")
        done = bpe("export", name, "--to", "bin", *output, *rows, cwd=tmp_path)
        assert ("--append-token" in done.stdout) == warned, done.stdout
    bpe(*train, "--overwrite", cwd=tmp_path)  # whose tokenizer has no such token
    bpe(*encode, "--output", "none", cwd=tmp_path)
    done = bpe("export", "none", "--to", "bin", "--output", "o", "--pack", "16", cwd=tmp_path)
    assert "--append-token" not in done.stdout
