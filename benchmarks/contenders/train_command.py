"""The whole command from a Parquet corpus to tokenizer.json, start of Python included."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from benchmarks.contenders.report import Report, strings_digest
from benchmarks.contenders.whole_command import measured, own_python
from benchmarks.corpora import DATA, SCRIPTS, column, parquet_file, text_bytes
from benchmarks.processes import cores_there

if TYPE_CHECKING:
    from collections.abc import Sequence


def ours(corpus: Path, folder: Path, vocab_size: str, *, workers: int) -> list[str | Path]:
    """``bpe train``."""
    return [
        *(own_python(), "-m", "pipelines.cli", "train", "--input", corpus),
        *("--output", folder, "--vocab-size", vocab_size, "--ties", "huggingface"),
        *("--workers", str(workers), "--quiet"),
    ]


def command(name: str, corpus: Path, folder: Path, vocab_size: str) -> list[str | Path]:
    """The command; it leaves ``folder/tokenizer.json``."""
    if name == "beam-bpe":
        return ours(corpus, folder, vocab_size, workers=cores_there())
    script, *more = {
        "tokenizers": ("train_tokenizers.py",),
        "gigatoken, its reader": ("train_gigatoken.py", "--own-reader"),
        "gigatoken, pyarrow": ("train_gigatoken.py",),
    }[name]
    output = folder / "tokenizer.json"
    return [sys.executable, SCRIPTS / script, corpus, output, vocab_size, *more]


def prepare(arguments: Sequence[str]) -> None:
    """Make the corpus."""
    corpus, size, copies, _ = arguments
    parquet_file(corpus, int(size), copies=int(copies))


def run(name: str, arguments: Sequence[str], *, check: bool) -> Report:
    """Train; the arguments are the corpus, bytes of it, copies, and the vocabulary size."""
    corpus, size, copies, vocab_size = arguments
    path = parquet_file(corpus, int(size), copies=int(copies))
    with TemporaryDirectory(dir=DATA) as folder:
        measures = measured(command(name, path, Path(folder), vocab_size), check=check)
        digest = merges_digest(Path(folder) / "tokenizer.json")
    return Report(
        digest=digest,
        measures=measures,
        text_bytes=int(copies) * text_bytes(column(corpus, int(size))),
    )


def merges_digest(path: Path) -> str:
    """Of the merges in a tokenizer.json."""
    model = json.loads(path.read_text("utf-8"))["model"]
    pairs = [merge.split(" ") if isinstance(merge, str) else merge for merge in model["merges"]]
    return strings_digest((left.encode(), right.encode()) for left, right in pairs)
