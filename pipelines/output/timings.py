"""The times of the steps of a job: a hidden file with its output, no part of it.

Times differ from run to run, so no file that must be the same bytes can hold them.
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


@dataclass(frozen=True, kw_only=True)
class Timing:
    """One step.

    Attributes:
        stage: ``count``, ``train`` or ``encode``.
        seconds: it took.
        documents: that went through it.
        bytes: of their text.
        items: what came out, in ``unit``.
        unit: pre-tokens, merges or tokens.
        runner: of Beam.
        workers: of the local runner; 0 for one a core.
        cache_hits: pre-tokens that the encoder's cache of words knew.
        cache_misses: those that it did not.
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


def save_timing(directory: str, execution: Execution, **numbers: Any) -> None:
    """Leave in the directory of a job how long it took; where it cannot be written, it is not kept.

    Args:
        directory: of the job.
        execution: who did the work.
        **numbers: the other fields of `Timing`.
    """
    timing = Timing(runner=execution.runner, workers=execution.workers, **numbers)
    with contextlib.suppress(OutputError):
        storage.write(join(directory, TIMINGS), json_bytes({"program": PROGRAM, **asdict(timing)}))


def read_timing(directory: str) -> Timing | None:
    """That of the job whose directory it is; None where it is not known."""
    try:
        return from_jsonable(Timing, read_json_object(join(directory, TIMINGS)))
    except FieldError:
        return None
