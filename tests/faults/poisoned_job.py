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
from pipelines.settings import Execution, InputSettings
from tests.faults.poison import Poisoned, write_poisoned
from tests.pipelines.corpora import encode, patterns, train

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests import jobs


@contextlib.contextmanager
def struck(corpus: Poisoned) -> Iterator[None]:
    """Change the corpus when a job has stored its plan, before anything of it is read."""
    write = planned.write_splits  # type: ignore[attr-defined]
    left = [corpus.strike]

    def write_and_strike(*arguments: Any, **named: Any) -> None:
        write(*arguments, **named)
        if left:
            left.pop()()

    planned.write_splits = write_and_strike  # type: ignore[attr-defined]  # workers run here
    try:
        yield
    finally:
        planned.write_splits = write  # type: ignore[attr-defined]


def run(
    folder: Path, execution: Execution, *, lines: bool, documents: int, limit: int, long_line: int
) -> dict[str, Any]:
    """Both commands that read a corpus, on one without poison, and each on a poisoned one."""
    clean = Poisoned.clean(folder / "clean", lines=lines, documents=documents)
    for name in ("count", "encode"):
        job(folder / "clean-out", name, clean, limit, execution)
    found: dict[str, Any] = {"clean_kib": peak_kib()}
    shutil.rmtree(folder / "clean-out")
    sizes = {"documents": documents, "limit": limit, "long_line": long_line}
    for name in ("count", "encode"):
        corpus = write_poisoned(folder / name, lines=lines, **sizes)
        done = job(folder, name, corpus, limit, execution)
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
    folder: Path, name: str, corpus: Poisoned, limit: int, execution: Execution
) -> jobs.TrainSummary | jobs.EncodeSummary:
    """Train on a corpus or encode it, and strike it once the job is planned."""
    inputs = InputSettings(
        patterns=patterns(corpus.folder),
        format="lines" if corpus.lines else "auto",
        max_failures=corpus.failures,
        max_record_size=limit,
        split_size=100_000,
    )
    output, model = folder / f"{name}-out", folder / "count-out"
    with struck(corpus):
        if name == "count":
            return train(output, inputs=inputs, execution=execution)
        return encode(inputs, model / "tokenizer.json", output, execution=execution)


def peak_kib() -> int:
    """The most memory that this process, or one that it started, has held so far."""
    # Not ru_maxrss of this process: that includes what started it, which may be larger.
    own = Path("/proc/self/status").read_text("utf-8").partition("VmHWM:")[2].split()[0]
    return max(int(own), resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)


if __name__ == "__main__":
    _, place, settings, *beam_args = sys.argv
    execution = Execution(workers=2, beam_args=tuple(beam_args))
    print(json.dumps(run(Path(place), execution, **json.loads(settings))))
