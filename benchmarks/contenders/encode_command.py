"""The whole command from JSON lines to Parquet token ids, start of Python included."""

from __future__ import annotations

import hashlib
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks import vocabularies
from benchmarks.contenders.report import Report, strings_digest
from benchmarks.contenders.whole_command import measured, own_python
from benchmarks.corpora import DATA, SCRIPTS, column, jsonl_file, text_bytes
from benchmarks.processes import cores_there

if TYPE_CHECKING:
    from collections.abc import Sequence


def ours(source: Path, tokenizer: Path, folder: Path, *, workers: int) -> list[str | Path]:
    """``bpe encode``."""
    return [
        *(own_python(), "-m", "pipelines.cli", "encode", "--input", source),
        *("--tokenizer", tokenizer, "--output", folder),
        *("--workers", str(workers), "--quiet"),
    ]


def command(name: str, source: Path, tokenizer: Path, folder: Path) -> list[str | Path]:
    """The command; it leaves Parquet files in ``folder``."""
    if name == "beam-bpe":
        return ours(source, tokenizer, folder, workers=cores_there())
    script, *more = {
        "datasets": ("encode_datasets.py", str(folder / "cache")),
        "gigatoken, its reader": ("encode_gigatoken.py", "--own-reader"),
        "gigatoken, pyarrow": ("encode_gigatoken.py",),
        "gigatoken with our encoding, its reader": (
            *("encode_gigatoken.py", "--own-reader", "--our-encoding"),
        ),
        "gigatoken with our encoding, pyarrow": ("encode_gigatoken.py", "--our-encoding"),
    }[name]
    output = folder / "part-0.parquet"
    return [sys.executable, SCRIPTS / script, source, tokenizer, output, *more]


def prepare(arguments: Sequence[str]) -> None:
    """Make the corpus and the tokenizer."""
    corpus, size, copies = arguments
    jsonl_file(corpus, int(size), copies=int(copies))
    vocabularies.tokenizer_json("r50k_base")


def run(name: str, arguments: Sequence[str], *, check: bool) -> Report:
    """Encode copies of a corpus; the arguments are the corpus, bytes of it, and how many."""
    corpus, size, copies = arguments
    source = jsonl_file(corpus, int(size), copies=int(copies))
    tokenizer = vocabularies.tokenizer_json("r50k_base")
    with TemporaryDirectory(dir=DATA) as folder:
        measures = measured(command(name, source, tokenizer, Path(folder)), check=check)
        digest = parquet_digest(Path(folder))
    return Report(
        digest=digest,
        measures=measures,
        text_bytes=int(copies) * text_bytes(column(corpus, int(size))),
    )


def parquet_digest(folder: Path) -> str:
    """Of the documents' ids and their token ids, whatever the types and row groups."""
    parts = sorted([*folder.glob("part-*"), *folder.glob("data/train-*")])
    names, lengths, ids = hashlib.sha256(), hashlib.sha256(), hashlib.sha256()
    for part in parts:
        for batch in pq.ParquetFile(part).iter_batches(columns=["id", "input_ids"]):
            names.update("".join(name + "\n" for name in batch["id"].to_pylist()).encode())
            lists = batch["input_ids"]
            lengths.update(lists.value_lengths().to_numpy().astype("<i8").tobytes())
            tokens = lists.flatten().cast(pa.uint32()).to_numpy()
            ids.update(np.ascontiguousarray(tokens, dtype="<u4").tobytes())
    return strings_digest([(names.digest(), lengths.digest(), ids.digest())])
