"""Whole commands with one worker and with two, less the same on next to no text.

What is left is the work without the start of Python, Beam and the workers. As the speed of a core
changes from minute to minute where others use the machine, all take turns within one process, and
each time is a median of those turns.
"""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from benchmarks import vocabularies
from benchmarks.contenders import encode_command, train_command
from benchmarks.contenders.report import Report, strings_digest
from benchmarks.contenders.whole_command import measured
from benchmarks.corpora import DATA, column, jsonl_file, parquet_file, text_bytes

if TYPE_CHECKING:
    from collections.abc import Sequence

_TURNS = 3
_LITTLE = 10_000_000  # bytes: outputs are compared, and times say nothing
_TINY = 100_000  # bytes
_WORKERS = (1, 2)


def prepare(arguments: Sequence[str]) -> None:
    """Make the corpora and the tokenizer."""
    corpus, size, copies, _ = arguments
    for length, times in ((int(size), int(copies)), (_TINY, 1)):
        parquet_file(corpus, length, copies=times)
        jsonl_file(corpus, length, copies=times)
    vocabularies.tokenizer_json("r50k_base")


def run(name: str, arguments: Sequence[str], *, check: bool) -> Report:
    """Train and encode; the arguments are the corpus, bytes of it, copies, and vocabulary size.

    Raises:
        ValueError: one worker and two made different outputs.
    """
    del name
    corpus, size, copies, vocab_size = arguments
    total = int(copies) * text_bytes(column(corpus, int(size)))
    little = total < _LITTLE
    outputs: dict[str, set[str]] = defaultdict(set)
    seconds: dict[str, list[float]] = defaultdict(list)
    for _ in range(1 if check or little else _TURNS):
        for job, once in (("train", train), ("encode", encode)):
            for workers in _WORKERS:
                way = f"{job}, {workers} worker{'s' if workers > 1 else ''}"
                start, _ = once(corpus, _TINY, 1, vocab_size, workers)
                took, digest = once(corpus, int(size), int(copies), vocab_size, workers)
                seconds[way].append(took if little else took - start)
                outputs[job].add(digest)
    for job, digests in outputs.items():
        if len(digests) != 1:
            raise ValueError(f"{job}: the outputs of one worker and of two differ: {digests}")
    return Report(
        digest=strings_digest(
            (job.encode(), *(digest.encode() for digest in digests))
            for job, digests in outputs.items()
        ),
        measures={} if check else {way: median(found) for way, found in seconds.items()},
        text_bytes=total,
    )


def train(corpus: str, size: int, copies: int, vocab_size: str, workers: int) -> tuple[float, str]:
    """Seconds of ``bpe train``, and the digest of the merges."""
    source = parquet_file(corpus, size, copies=copies)
    with TemporaryDirectory(dir=DATA) as folder:
        command = train_command.ours(source, Path(folder), vocab_size, workers=workers)
        seconds = measured(command, check=False)["seconds"]
        return seconds, train_command.merges_digest(Path(folder) / "tokenizer.json")


def encode(corpus: str, size: int, copies: int, _: str, workers: int) -> tuple[float, str]:
    """Seconds of ``bpe encode``, and the digest of the ids."""
    source = jsonl_file(corpus, size, copies=copies)
    tokenizer = vocabularies.tokenizer_json("r50k_base")
    with TemporaryDirectory(dir=DATA) as folder:
        command = encode_command.ours(source, tokenizer, Path(folder), workers=workers)
        seconds = measured(command, check=False)["seconds"]
        return seconds, encode_command.parquet_digest(Path(folder))
