"""The whole command from a Parquet corpus to tokenizer.json, start of Python included."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from benchmarks.contenders.report import Report, strings_digest
from benchmarks.contenders.whole_command import measured
from benchmarks.corpora import DATA, SCRIPTS, column, parquet_file, text_bytes
from benchmarks.processes import cores_there

if TYPE_CHECKING:
    from collections.abc import Sequence


def command(name: str, corpus: Path, folder: Path, vocab_size: str) -> list[str | Path]:
    """What is typed; it leaves ``folder/tokenizer.json``."""
    if name == "beam-bpe":
        return [
            *(sys.executable, "-m", "pipelines.cli", "train", "--input", corpus),
            *("--output", folder, "--vocab-size", vocab_size, "--ties", "huggingface"),
            *("--workers", str(cores_there()), "--quiet"),
        ]
    script, *more = {
        "tokenizers": ("train_tokenizers.py",),
        "gigatoken, its reader": ("train_gigatoken.py", "--own-reader"),
        "gigatoken, pyarrow": ("train_gigatoken.py",),
    }[name]
    output = folder / "tokenizer.json"
    return [sys.executable, SCRIPTS / script, corpus, output, vocab_size, *more]


def prepare(arguments: Sequence[str]) -> None:
    """Make the corpus."""
    corpus, size, _ = arguments
    parquet_file(corpus, int(size))


def run(name: str, arguments: Sequence[str], *, check: bool) -> Report:
    """Train; the arguments are the corpus, bytes of it, and the size of the vocabulary."""
    corpus, size, vocab_size = arguments
    path = parquet_file(corpus, int(size))
    with TemporaryDirectory(dir=DATA) as folder:
        measures = measured(command(name, path, Path(folder), vocab_size), check=check)
        model = json.loads((Path(folder) / "tokenizer.json").read_text("utf-8"))["model"]
    pairs = [merge.split(" ") if isinstance(merge, str) else merge for merge in model["merges"]]
    return Report(
        digest=strings_digest((left.encode(), right.encode()) for left, right in pairs),
        measures=measures,
        text_bytes=text_bytes(column(corpus, int(size))),
    )
