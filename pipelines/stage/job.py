"""Run a job for a command."""

from __future__ import annotations

import contextlib
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from pipelines import storage
from pipelines.elements import forget_once
from pipelines.errors import OutputError
from pipelines.output.lock import locked
from pipelines.run import check_job, run
from pipelines.stage.beam import RunJob
from pipelines.storage import join

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from pipelines.progress import Progress
    from pipelines.settings import Execution
    from pipelines.stage.stage import Job


@contextlib.contextmanager
def run_job(
    job: Job,
    *,
    execution: Execution,
    progress: Progress,
    reads: Iterable[str],
    pieces: int,
    size: int | None,
    lock: bool = True,
    ready: Callable[[], object] = lambda: None,
) -> Iterator[Any]:
    """Run a job and show its progress; yield Beam's result while the directory is still locked.

    Args:
        job: the job.
        execution: the runner and its options.
        progress: shows the progress.
        reads: files or directories that workers read.
        pieces: the approximate number of units of the last stage.
        size: the approximate number of bytes that the job reads; None if unknown.
        lock: whether to keep other jobs out of the directory.
        ready: called once the directory is locked, before anything changes; may refuse the job.

    Raises:
        JobError: something is wrong; the class says what.
    """
    check_job(execution, progress, reads=reads, writes=job.directory)
    forget_once()  # what the job before this one in a chain needed
    pa.default_memory_pool().release_unused()
    with locked(job.directory) if lock else contextlib.nullcontext():
        ready()
        with progress.stage(job.name, size) as stage:
            watched = replace(job, slots=stage.slots)
            result = run(
                lambda p, failures: p | job.name >> RunJob(watched, failures),
                execution=execution,
                pieces=pieces,
                stage=stage,
                progress=progress,
                name=job.name,
            )
            if job.last_file:
                _see_arrived(job.directory, job.last_file)
        yield result


def _see_arrived(directory: str, name: str) -> None:
    """Check that this process finds the files that the workers wrote.

    Raises:
        OutputError: a file is missing, because workers wrote to disks of their own.
    """
    path = join(directory, name)
    if not storage.exists(path):
        raise OutputError(
            f"{path} is not there, though the runner says the job is done: its workers wrote to "
            "files of their own. Use a filesystem that both see (gs://, s3://, abfs://, a mounted "
            "directory)"
        )
