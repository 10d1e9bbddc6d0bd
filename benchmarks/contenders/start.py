"""The start of a command: one line encoded, or Beam imported and nothing done."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from benchmarks import vocabularies
from benchmarks.contenders.encode_command import ours, parquet_digest
from benchmarks.contenders.report import Report
from benchmarks.contenders.whole_command import measured, own_python
from benchmarks.corpora import DATA

if TYPE_CHECKING:
    from collections.abc import Sequence


def prepare(_: Sequence[str]) -> None:
    """Make the tokenizer."""
    vocabularies.tokenizer_json("r50k_base")


def run(name: str, _: Sequence[str], *, check: bool) -> Report:
    """Start once, as ``beam-bpe`` or by importing Beam alone."""
    if name != "beam-bpe":
        command: list[str | Path] = [own_python(), "-c", name]
        return Report(digest=name, measures=measured(command, check=check))
    tokenizer = vocabularies.tokenizer_json("r50k_base")
    with TemporaryDirectory(dir=DATA) as folder:
        source, output = Path(folder, "line.jsonl"), Path(folder, "ids")
        source.write_text('{"id": "1", "text": "A line of text."}\n', encoding="utf-8")
        measures = measured(ours(source, tokenizer, output, workers=1), check=check)
        return Report(digest=parquet_digest(output), measures=measures)
