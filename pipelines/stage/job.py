"""Running a job of stages for a command."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pipelines.output.lock import locked
from pipelines.planned import see_arrived
from pipelines.run import check_job, run
from pipelines.stage.beam import RunStages

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from pipelines.progress import Progress
    from pipelines.settings import Execution
    from pipelines.stage.stage import StagedJob


def run_stages(
    job: StagedJob,
    *,
    execution: Execution,
    progress: Progress,
    reads: Iterable[str],
    pieces: int,
    size: int,
    writes: str = "",
    lock: bool = True,
    ready: Callable[[], object] = lambda: None,
) -> Any:
    """Run a job, and show how far its last stage is; returns what Beam returns.

    Args:
        job: the job.
        execution: where the work is done.
        progress: told how far it is.
        reads: files or directories that workers read.
        pieces: in how many units the last stage does its work, about.
        size: bytes that it reads, about.
        writes: where workers write; empty for the directory of the job.
        lock: whether to keep other jobs out of the directory.
        ready: called when they are, before anything changes; it may refuse the job.

    Raises:
        JobError: something is wrong; the class says what.
    """
    check_job(execution, progress, reads=reads, writes=writes or job.directory)

    def work() -> Any:
        ready()
        with progress.stage(job.name, size) as stage:
            stage.set_slots(pieces)
            watched = job.watched(stage.counters_path)
            result = run(
                lambda p, failures: p | job.name >> RunStages(watched, failures),
                execution=execution,
                pieces=pieces,
                stage=stage,
                progress=progress,
                name=job.name,
            )
            if job.last_file:
                see_arrived(job.directory, job.last_file)
        return result

    if not lock:
        return work()
    with locked(job.directory):
        return work()
