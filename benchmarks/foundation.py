"""Memory of ``bpe train`` and ``bpe encode`` as the corpus grows, for docs/scale.md.

The peak on 200 MB and on 2 GB, each one file of JSON lines made here from the sources of Python's
standard library; every document also has words of its own, so that the number of distinct
pre-tokens grows with the corpus, as it does in real text. `benchmarks/results/foundation.json` also
has the seconds.

    python -m benchmarks.foundation [--workers 2]
"""

from __future__ import annotations

import json
import shutil
import sys
import sysconfig
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from benchmarks.corpora import DATA, ROOT
from benchmarks.processes import run_measured
from benchmarks.results import provenance
from pipelines.settings import cores

if TYPE_CHECKING:
    from collections.abc import Iterator

RESULTS = ROOT / "benchmarks" / "results" / "foundation.json"
SMALL, LARGE = 200_000_000, 2_000_000_000
DOCUMENT = 8_000  # bytes, about

Row = dict[str, Any]
"""A command, the text that it read, its seconds and its peak."""


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.option("--workers", type=click.IntRange(1), default=min(2, cores()), show_default=True)
def main(*, workers: int) -> None:
    """Measure both jobs, print a table, write the results."""
    DATA.mkdir(parents=True, exist_ok=True)
    results = {"memory": {**provenance(), "workers": workers, "rows": memory(workers)}}
    RESULTS.write_text(json.dumps(results, indent=2) + "\n", encoding="utf-8")
    click.echo(f"written: {RESULTS.relative_to(ROOT)}")


def memory(workers: int) -> list[Row]:
    """Both jobs on a small and on a large file, once each."""
    rows: list[Row] = []
    for size in (SMALL, LARGE):
        rows += train_and_encode(made_corpus(DATA / f"made-{size // 10**6}MB.jsonl", size), workers)
    for job in ("train", "encode"):
        small, large = (row["peak_bytes"] for row in rows if row["job"] == job)
        click.echo(f"{job}: {(large - small) / 1e6:+,.0f} MB from {SMALL:,} to {LARGE:,} bytes")
    return rows


def train_and_encode(corpus: Path, workers: int) -> Iterator[Row]:
    """Both jobs from nothing, on ``corpus``."""
    out = DATA / "out"
    shutil.rmtree(out, ignore_errors=True)
    common = ["--input", str(corpus), "--workers", str(workers), "--quiet"]
    model, ids = f"{out}/model", f"{out}/ids"
    yield measured("train", corpus, *common, "--output", model, "--vocab-size", "32000")
    yield measured("encode", corpus, *common, "--output", ids, "--tokenizer", model)
    shutil.rmtree(out)


def measured(job: str, corpus: Path, *arguments: str) -> Row:
    """Run one command; its peak is that of its one process (workers are threads)."""
    command = (sys.executable, "-m", "pipelines.cli", job, *arguments, "--json")
    with tempfile.TemporaryFile() as summary:
        figures = run_measured(*command, stdout=summary)
        summary.seek(0)
        size = json.load(summary)["bytes"]
    seconds, peak = figures["seconds"], figures["peak_bytes"]
    click.echo(
        f"{job:8}{corpus.name:22}{size / 1e6:7,.0f} MB of text {seconds:8.2f} s"
        f"{size / 1e6 / seconds:8.1f} MB/s{peak / 1e6:8,.0f} MB of memory"
    )
    return {"job": job, "corpus": corpus.name, "text_bytes": size, **figures}


def made_corpus(path: Path, size: int) -> Path:
    """JSON lines of about ``size`` bytes, the same on every run with the same Python."""
    if path.is_file() and path.stat().st_size >= size:
        return path
    library = Path(sysconfig.get_paths()["stdlib"])
    text = "".join(
        source.read_text("utf-8", errors="replace")
        for source in sorted(library.glob("*.py"))  # the top modules: 8 MB, all of them text
    )
    written = number = 0
    partial = path.with_suffix(".partial")
    with partial.open("w", encoding="utf-8") as file:
        while written < size:
            start = number * DOCUMENT % (len(text) - DOCUMENT)
            own = " ".join(f"w{number:x}x{i}" for i in range(4))
            line = json.dumps(
                {"id": str(number), "text": f"{own}\n{text[start : start + DOCUMENT]}"}
            )
            written += file.write(line + "\n")
            number += 1
    return partial.rename(path)


if __name__ == "__main__":
    main()
