"""Superwords compared with words: tokens of the same text, seconds, memory; how runs grow.

    python -m benchmarks.superwords

Whole commands on the shared corpora, by turns, medians of `_TURNS`; encoding and the growth of runs
inside this process. The results also hold what the published program needs on its authors'
machine: its sources could not be had. With `--large`, only what a gigabyte costs is measured again.
"""

from __future__ import annotations

import json
import shutil
import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import click
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

import bpe
from benchmarks.contenders.whole_command import measured, own_python
from benchmarks.corpora import ROOT, SHARED
from benchmarks.growth import grown
from benchmarks.pages import with_block
from benchmarks.results import commit, processor, provenance
from bpe.run_counting import RunCounter

RESULTS = ROOT / "benchmarks" / "results" / "superwords.json"
PAGE = ROOT / "docs" / "superwords.md"
SCALE = ROOT / "docs" / "scale.md"
TITLES = {"en": "English, 100 MB", "multi": "ten languages and code, 30 MB"}
_TURNS = 3
_COPIES = 8  # of both corpora: a gigabyte
_WORDS, _SUPERWORDS = 16_141, 8_192  # merges of words, of superwords
_CUT = ("--pretokenizer", "o200k", "--pair-counts", "disjoint")
_WAYS = {
    "BPE": ("--max-merges", str(_WORDS + _SUPERWORDS)),
    "SuperBPE": ("--max-merges", str(_WORDS), "--superwords", str(_SUPERWORDS)),
    "BoundlessBPE": ("--max-merges", str(_WORDS + _SUPERWORDS), "--boundless"),
}
# fastboundlessbpe on en.parquet, two cores of an Intel Xeon: ../shared/superwords.md.
_PUBLISHED = {"words": 36.0, "SuperBPE": 53.0, "memory": 1.3e9, "encode": 2.3e6}


def train(*arguments: str | Path, output: Path, memory: bool = False) -> float:
    """Run ``bpe train`` once: its seconds, or the bytes of memory that it had at most."""
    shutil.rmtree(output, ignore_errors=True)
    command = [own_python(), "-m", "pipelines.cli", "train", *arguments, "--output", output]
    return next(iter(measured([*command, "--quiet"], check=memory).values()))


def encode(tokenizer: Path, texts: pa.ChunkedArray) -> tuple[float, int]:
    """Seconds and tokens of encoding texts in one thread, from an empty cache."""
    loaded = bpe.Tokenizer.load(tokenizer)
    began = time.perf_counter()
    ids = sum(len(loaded.encode_arrow(chunk).values) for chunk in texts.chunks)
    return time.perf_counter() - began, ids


def growth(tokenizer: Path, texts: pa.ChunkedArray) -> dict[str, Any]:
    """Distinct runs after each power of two of bytes, with Heaps' law fitted to them."""
    counter = RunCounter(bpe.Tokenizer.load(tokenizer))
    column = pa.concat_arrays(texts.chunks)
    column = column.take(pa.array(np.random.default_rng(1).permutation(len(column))))
    found = grown(counter, column)
    memory = counter.nbytes
    (run,) = counter.drain(1)
    return {
        "points": found["points"],
        "heaps": found["heaps"],
        "key_bytes": memoryview(run.data).nbytes / len(run),
        "table_bytes": memory / len(run),
    }


def compared(corpus: str, folder: Path) -> dict[str, Any]:
    """All ways on one corpus."""
    path = SHARED / "corpora" / f"{corpus}.parquet"
    texts = pq.read_table(path, columns=["text"])["text"].cast(pa.large_string())
    seconds: dict[str, list[float]] = {way: [] for way in _WAYS}
    memory: dict[str, float] = {}
    encoded: dict[str, list[tuple[float, int]]] = {way: [] for way in _WAYS}
    for turn in range(_TURNS):
        for way, size_of in _WAYS.items():
            options: tuple[str | Path, ...] = ("--input", path, *_CUT, *size_of)
            if way not in memory:
                memory[way] = train(*options, output=folder / way, memory=True)
            seconds[way].append(train(*options, output=folder / way))
            encoded[way].append(encode(folder / way / "tokenizer.json", texts))
            click.echo(
                f"{corpus}: {way}, turn {turn + 1}: {seconds[way][-1]:.2f} s, {encoded[way][-1]}"
            )
    made = folder / "SuperBPE"
    size = pc.sum(pc.binary_length(texts)).as_py()
    return {
        "bytes": size,
        "ways": {
            way: {
                "seconds": statistics.median(seconds[way]),
                "seconds_each": seconds[way],
                "memory": memory[way],
                "encode_seconds": statistics.median(took for took, _ in encoded[way]),
                "encode_seconds_each": [took for took, _ in encoded[way]],
                "tokens": encoded[way][0][1],
            }
            for way in _WAYS
        },
        "second_phase_memory": train(
            *("--counts", made / "runs", "--tokenizer", made / "words"),
            *("--superwords", str(_SUPERWORDS), "--pair-counts", "disjoint"),
            output=folder / "second",
            memory=True,
        ),
        "growth": growth(made / "words" / "tokenizer.json", texts),
    }


def large(folder: Path) -> dict[str, Any]:
    """SuperBPE on both corpora several times, the documents of each copy in another order."""
    texts = pa.chunked_array(
        [
            chunk
            for corpus in TITLES
            for chunk in pq.read_table(SHARED / "corpora" / f"{corpus}.parquet", columns=["text"])[
                "text"
            ].chunks
        ]
    )
    (folder / "corpus").mkdir(parents=True)
    for seed in range(_COPIES):
        order = np.random.default_rng(seed).permutation(len(texts))
        pq.write_table(
            pa.table({"text": texts.take(pa.array(order))}),
            folder / "corpus" / f"{seed}.parquet",
            row_group_size=1000,
        )
    options: tuple[str | Path, ...] = ("--input", folder / "corpus", *_CUT, *_WAYS["SuperBPE"])
    return {
        "commit": commit(),
        "processor": processor(),
        "copies": _COPIES,
        "bytes": _COPIES * pc.sum(pc.binary_length(texts)).as_py(),
        "memory": train(*options, output=folder / "large", memory=True),
        "seconds": train(*options, output=folder / "large"),
    }


def main() -> None:
    """Measure both corpora and write the results."""
    with tempfile.TemporaryDirectory() as folder:
        if "--large" in sys.argv[1:]:
            results = json.loads(RESULTS.read_text("utf-8"))
            results["large"] = large(Path(folder))
            RESULTS.write_text(json.dumps(results, indent=2) + "\n", "utf-8")
            return
        results = {
            **provenance(),
            "published": _PUBLISHED,
            "corpora": {corpus: compared(corpus, Path(folder) / corpus) for corpus in TITLES},
            "large": large(Path(folder)),
        }
    RESULTS.write_text(json.dumps(results, indent=2) + "\n", "utf-8")


def pages() -> dict[Path, str]:
    """The pages that show the results, as they should be."""
    results = json.loads(RESULTS.read_text("utf-8"))
    return {
        page: with_block(page.read_text("utf-8"), made(results), name=name)
        for page, made, name in ((PAGE, table, "table"), (SCALE, scale_table, "runs"))
    }


def scale_table(results: dict[str, Any]) -> str:
    """The cost of runs as a corpus grows, as a table in Markdown."""
    columns = (
        *("corpus", "distinct runs in *n* bytes", "in 1 TB", "bytes of a run"),
        *("bytes of a run in the counter", "memory of learning superwords"),
    )
    lines = [
        f"From `benchmarks/results/superwords.json`, at commit `{results['commit']}`.",
        "",
        f"| {' | '.join(columns)} |",
        "|---" * len(columns) + "|",
    ]
    for corpus, found in results["corpora"].items():
        grown = found["growth"]
        k, beta = grown["heaps"]["k"], grown["heaps"]["beta"]
        cells = (
            *(TITLES[corpus], f"{k:.3g} · *n*^{beta:.3f}", f"{k * 1e3 ** (4 * beta) / 1e9:,.1f} G"),
            *(f"{grown['key_bytes']:.1f}", f"{grown['table_bytes']:.0f}"),
            f"{found['second_phase_memory'] / 1e6:,.0f} MB for {grown['points'][-1][1]:,} runs",
        )
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def table(results: dict[str, Any]) -> str:
    """The results as text and a table in Markdown."""
    machine = results["machine"]
    where = f"{machine['processor']}, {machine['cores']} cores, at commit `{results['commit']}`"
    lines = [
        f"From `benchmarks/results/superwords.json`: {where}; medians of {_TURNS} turns.",
        "",
        "| corpus | tokens of | bytes per token | `bpe train` | memory | encoding, 1 thread |",
        "|---|---|---|---|---|---|",
    ]
    for corpus, found in results["corpora"].items():
        for way, one in found["ways"].items():
            speed = found["bytes"] / one["encode_seconds"] / 1e6
            lines.append(
                f"| {TITLES[corpus]} | {way} | {found['bytes'] / one['tokens']:.2f} | "
                f"{one['seconds']:.1f} s ({_range(one['seconds_each'])}) | "
                f"{one['memory'] / 1e6:,.0f} MB | {speed:.0f} MB/s |"
            )
    most = results["large"]
    lines.append(
        f"\nSuperBPE on {most['bytes'] / 1e9:.2f} GB (both corpora {most['copies']} times, the "
        f"documents of each copy in another order): {most['seconds']:.0f} s and "
        f"{most['memory'] / 1e6:,.0f} MB, at commit `{most['commit']}`."
    )
    return "\n".join(lines)


def _range(seconds: list[float]) -> str:
    return f"{min(seconds):.1f} to {max(seconds):.1f}"


if __name__ == "__main__":
    main()
