"""Counts, trains on and encodes a poisoned corpus in a process of its own, and says what it took.

python -m tests.faults.poisoned_job FOLDER '{"documents": ..., "limit": ..., ...}' [BEAM OPTION...]
"""

from __future__ import annotations

import contextlib
import json
import resource
import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pipelines import planned
from pipelines.settings import (
    Execution,
    InputSettings,
    OutputSettings,
    PretokenSettings,
    TrainSettings,
)
from tests import jobs
from tests.faults.poison import Poisoned, write_clean, write_poisoned, write_poisoned_lines
from tests.pipelines.corpora import patterns

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from pipelines.corpus.splits import Split


@contextlib.contextmanager
def struck(corpus: Poisoned) -> Iterator[None]:
    """Change the corpus when a job has stored its plan, before anything of it is read."""
    write = planned.write_splits  # type: ignore[attr-defined]
    left = [corpus.strike]

    def write_and_strike(
        directory: str, run: str, splits: Sequence[Split], *, earlier: Any = None
    ) -> None:
        write(directory, run, splits, earlier=earlier)
        if left:
            left.pop()()

    planned.write_splits = write_and_strike  # type: ignore[attr-defined]  # workers run here
    try:
        yield
    finally:
        planned.write_splits = write  # type: ignore[attr-defined]


def run(folder: Path, given: dict[str, Any], execution: Execution) -> dict[str, Any]:
    """Both commands that read a corpus, on one without poison, and each on a poisoned one."""
    lines = given.pop("lines")
    write = write_poisoned_lines if lines else write_poisoned
    clean = write_clean(folder / "clean", documents=given["documents"], lines=lines)
    for name in ("count", "encode"):
        job(folder / "clean-out", name, clean, lines=lines, limit=given["limit"], on=execution)
    found: dict[str, Any] = {"clean_kib": peak_kib()}
    shutil.rmtree(folder / "clean-out")
    for name in ("count", "encode"):
        corpus = write(folder / name, **given)
        done = job(folder, name, corpus, lines=lines, limit=given["limit"], on=execution)
        found[name] = {
            "documents": done.documents,
            "failures": done.failures,
            "expected": corpus.bad,
            "texts": corpus.texts,
            "lost_bytes": corpus.lost_bytes,
        }
        shutil.rmtree(corpus.folder)  # the long form has 500 MB in it
    return {**found, "peak_kib": peak_kib()}


def job(
    folder: Path, name: str, corpus: Poisoned, *, lines: bool, limit: int, on: Execution
) -> jobs.TrainSummary | jobs.EncodeSummary:
    """Train on a corpus or encode it, and strike it once the job is planned."""
    inputs = InputSettings(
        patterns=patterns(corpus.folder),
        format="lines" if lines else "auto",
        max_failures=corpus.failures,
        max_record_size=limit,
        split_size=100_000,
    )
    output = OutputSettings(directory=str(folder / f"{name}-out"))
    with struck(corpus):
        if name == "count":
            return jobs.train(
                inputs=inputs,
                pretokens=PretokenSettings(),
                training=TrainSettings(vocab_size=300),
                output=output,
                execution=on,
            )
        return jobs.encode(
            inputs=inputs,
            tokenizer=str(folder / "count-out" / "tokenizer.json"),
            output=output,
            execution=on,
        )


def peak_kib() -> int:
    """The most memory that this process, or one that it started, has held so far."""
    # Not ru_maxrss of this process: that includes what started it, which may be larger.
    own = Path("/proc/self/status").read_text("utf-8").partition("VmHWM:")[2].split()[0]
    return max(int(own), resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)


if __name__ == "__main__":
    _, place, settings, *beam_args = sys.argv
    execution = Execution(workers=2, beam_args=tuple(beam_args))
    print(json.dumps(run(Path(place), json.loads(settings), execution)))
