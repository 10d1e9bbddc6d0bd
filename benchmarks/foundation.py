"""Memory of ``bpe train`` and ``bpe encode`` as the corpus grows, for docs/scale.md.

The peak on 200 MB and on 2 GB, each one file of JSON lines made here from the sources of Python's
standard library; every document also has words of its own, so that the number of distinct
pre-tokens grows with the corpus, as it does in real text. `benchmarks/results/foundation.json` also
has the seconds.

    python -m benchmarks.foundation [--workers 2]
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import shutil
import subprocess
import sys
import sysconfig
import tempfile
import time
from dataclasses import asdict, dataclass
from datetime import datetime, timezone
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING

import click

from benchmarks.corpora import DATA, ROOT
from benchmarks.results import commit, processor
from pipelines.settings import cores

if TYPE_CHECKING:
    from collections.abc import Iterator

RESULTS = ROOT / "benchmarks" / "results" / "foundation.json"
SMALL, LARGE = 200_000_000, 2_000_000_000
DOCUMENT = 8_000  # bytes, about


@dataclass(frozen=True)
class Measured:
    """One command.

    Attributes:
        job: its name.
        corpus: the file it read.
        text_bytes: the text in it, in UTF-8.
        seconds: wall clock, from the start of the process to its end.
        peak_bytes: of resident memory.
    """

    job: str
    corpus: str
    text_bytes: int
    seconds: float
    peak_bytes: int


def main() -> None:
    """Measure both jobs, print a table, write the results."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--workers", type=int, default=min(2, cores()))
    options = parser.parse_args()
    DATA.mkdir(parents=True, exist_ok=True)
    results = {"memory": section(memory(options.workers), options.workers)}
    RESULTS.write_text(json.dumps(results, indent=2) + "\n", encoding="utf-8")
    click.echo(f"written: {RESULTS.relative_to(ROOT)}")


def memory(workers: int) -> list[Measured]:
    """Both jobs on a small and on a large file, once each."""
    rows: list[Measured] = []
    for size in (SMALL, LARGE):
        rows += train_and_encode(made_corpus(DATA / f"made-{size // 10**6}MB.jsonl", size), workers)
    for job in ("train", "encode"):
        small, large = (row.peak_bytes for row in rows if row.job == job)
        click.echo(f"{job}: {(large - small) / 1e6:+,.0f} MB from {SMALL:,} to {LARGE:,} bytes")
    return rows


def train_and_encode(corpus: Path, workers: int) -> Iterator[Measured]:
    """Both jobs from nothing, on ``corpus``."""
    out = DATA / "out"
    shutil.rmtree(out, ignore_errors=True)
    common = ["--input", str(corpus), "--workers", str(workers), "--quiet"]
    yield measured(
        "train", corpus, ["train", *common, "--output", f"{out}/model", "--vocab-size", "32000"]
    )
    tokenizer = f"{out}/model/tokenizer.json"
    yield measured(
        "encode", corpus, ["encode", *common, "--output", f"{out}/ids", "--tokenizer", tokenizer]
    )
    shutil.rmtree(out)


def measured(job: str, corpus: Path, arguments: list[str]) -> Measured:
    """Run one command; its peak is that of its one process (workers are threads)."""
    began = time.perf_counter()
    with tempfile.TemporaryFile() as summary:
        process = subprocess.Popen(
            [sys.executable, "-m", "pipelines.cli", *arguments, "--json"], cwd=ROOT, stdout=summary
        )
        _, status, usage = os.wait4(process.pid, 0)
        seconds = time.perf_counter() - began
        if status:
            sys.exit(f"bpe {' '.join(arguments)} failed")
        summary.seek(0)
        text_bytes = json.load(summary)["bytes"]
    result = Measured(
        job=job,
        corpus=corpus.name,
        text_bytes=text_bytes,
        seconds=round(seconds, 2),
        peak_bytes=usage.ru_maxrss * (1 if sys.platform == "darwin" else 1024),
    )
    click.echo(
        f"{job:8}{corpus.name:22}{text_bytes / 1e6:7,.0f} MB of text {seconds:8.2f} s"
        f"{text_bytes / 1e6 / seconds:8.1f} MB/s{result.peak_bytes / 1e6:8,.0f} MB of memory"
    )
    return result


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


def section(rows: list[Measured], workers: int) -> dict[str, object]:
    """Rows with what is needed to read them."""
    return {
        "when": datetime.now(timezone.utc).isoformat(timespec="seconds"),
        "machine": {
            "processor": processor(),
            "cores": cores(),
            "system": f"{platform.system()} {platform.machine()}",
            "python": platform.python_version(),
        },
        "commit": commit(),
        "versions": {name: version(name) for name in ("apache-beam", "pyarrow")},
        "workers": workers,
        "rows": [asdict(row) for row in rows],
    }


if __name__ == "__main__":
    main()
