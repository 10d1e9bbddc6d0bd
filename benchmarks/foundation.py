"""Memory and speed of the jobs on this machine, written to benchmarks/results/foundation.json.

Speed: ``bpe train`` and ``bpe encode`` as commands, start of Python included, on 100 MB of English
(``corpora/en.parquet`` of the shared data) or, where that is absent, on the sources of Python's
standard library. Memory: the peak of the same jobs on 200 MB and on 2 GB, each one file of JSON
lines made here from the standard library's sources; every document also has words of its own, so
that the number of distinct pre-tokens grows with the corpus, as it does in real text.

    python benchmarks/foundation.py [speed|memory] [--workers 2]
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import shutil
import statistics
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

from pipelines.settings import cores

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).resolve().parent.parent
DATA = ROOT / "benchmarks" / "data"
RESULTS = ROOT / "benchmarks" / "results" / "foundation.json"
SHARED = Path(os.environ.get("BPE_SHARED", ROOT.parent / "shared"))
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
    """Measure what the command line asks for, print a table, merge it into the results."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("what", nargs="?", choices=("speed", "memory"))
    parser.add_argument("--workers", type=int, default=min(2, cores()))
    parser.add_argument("--repeat", type=int, default=3, help="runs of a speed; the median counts")
    options = parser.parse_args()
    results = json.loads(RESULTS.read_text("utf-8")) if RESULTS.is_file() else {}
    DATA.mkdir(parents=True, exist_ok=True)
    if options.what in (None, "speed"):
        results["speed"] = section(speed(options.workers, options.repeat), options.workers)
    if options.what in (None, "memory"):
        results["memory"] = section(memory(options.workers), options.workers)
    RESULTS.parent.mkdir(parents=True, exist_ok=True)
    RESULTS.write_text(json.dumps(results, indent=2) + "\n", encoding="utf-8")
    say(f"written: {RESULTS.relative_to(ROOT)}")


def speed(workers: int, repeat: int) -> list[Measured]:
    """Train 32,000 tokens and encode, each ``repeat`` times; the medians."""
    english = SHARED / "corpora" / "en.parquet"
    corpus = english if english.is_file() else made_corpus(DATA / "stdlib-100MB.jsonl", 100_000_000)
    both: dict[str, list[Measured]] = {}
    for _ in range(repeat):
        for measured in train_and_encode(corpus, workers):
            both.setdefault(measured.job, []).append(measured)
    return [
        Measured(
            job=job,
            corpus=corpus.name,
            text_bytes=runs[0].text_bytes,
            seconds=round(statistics.median(run.seconds for run in runs), 2),
            peak_bytes=max(run.peak_bytes for run in runs),
        )
        for job, runs in both.items()
    ]


def memory(workers: int) -> list[Measured]:
    """The same jobs on a small and on a large file, once each."""
    rows: list[Measured] = []
    for size in (SMALL, LARGE):
        rows += train_and_encode(made_corpus(DATA / f"made-{size // 10**6}MB.jsonl", size), workers)
    for job in ("train", "encode"):
        small, large = (row.peak_bytes for row in rows if row.job == job)
        say(f"{job}: {(large - small) / 1e6:+,.0f} MB from {SMALL:,} to {LARGE:,} bytes")
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
    say(
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


def commit() -> str:
    """The commit that was measured; with ``+`` if the sources differ from it."""
    done = subprocess.run(
        ["git", "describe", "--always", "--dirty=+"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    return done.stdout.strip()


def processor() -> str:
    """The processor's name, where Linux tells it."""
    info = Path("/proc/cpuinfo")
    if info.is_file():
        for line in info.read_text("utf-8").splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor()


def say(text: str) -> None:
    """Print one line at once."""
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
