"""Write and read the time that a job took, in a hidden file of its output directory.

Times differ from run to run, so files whose bytes must be reproducible cannot hold them.
"""

from __future__ import annotations

import contextlib
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from bpe._codec import FieldError, from_jsonable
from pipelines import storage
from pipelines.errors import OutputError
from pipelines.output.names import PROGRAM, TIMINGS, json_bytes, read_json_object
from pipelines.storage import join

if TYPE_CHECKING:
    from pipelines.settings import Execution
    from pipelines.summaries import CountSummary, EncodeSummary, TrainSummary


@dataclass(frozen=True, kw_only=True)
class Timing:
    """The time of one step, with the amount of its work.

    Attributes:
        stage: ``count``, ``train`` or ``encode``.
        seconds: the time of the step.
        documents: the number of documents read.
        bytes: the bytes of text of the documents.
        items: the number of items made, in ``unit``.
        unit: pre-tokens, merges or tokens.
        runner: the name of the Beam runner.
        workers: the number of workers of the local runner; 0 for one on each core.
        cache_hits: the number of pre-tokens in the encoder's cache of words.
        cache_misses: the number of pre-tokens not in the cache.
    """

    stage: str
    seconds: float
    documents: int
    bytes: int
    items: int
    unit: str
    runner: str
    workers: int
    cache_hits: int = 0
    cache_misses: int = 0


def save_timing(
    summary: CountSummary | TrainSummary | EncodeSummary, execution: Execution, **numbers: Any
) -> None:
    """Write the timing of a job to its directory; ignore a directory that cannot be written to.

    Args:
        summary: the summary of the job.
        execution: the runner and the number of workers.
        **numbers: the fields of `Timing` that the summary and the execution do not have.
    """
    timing = Timing(
        seconds=round(summary.seconds, 3),
        documents=summary.documents,
        bytes=summary.bytes,
        runner=execution.runner,
        workers=execution.workers,
        **numbers,
    )
    path = join(summary.output, TIMINGS)
    with contextlib.suppress(OutputError):
        storage.write(path, json_bytes({"program": PROGRAM, **asdict(timing)}))


def read_timing(directory: str) -> Timing | None:
    """Return the timing in the directory of a job; None if there is no valid one."""
    try:
        return from_jsonable(Timing, read_json_object(join(directory, TIMINGS)))
    except FieldError:
        return None
