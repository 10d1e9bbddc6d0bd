"""Run a job for a command."""

from __future__ import annotations

import contextlib
import logging
import tempfile
import uuid
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from pipelines import storage
from pipelines.elements import forget_once
from pipelines.errors import JobError, OutputError
from pipelines.run import options, run
from pipelines.stage.beam import RunJob
from pipelines.storage import join
from pipelines.submission.checks import check_paths, check_ready
from pipelines.submission.workers import workers_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from pipelines.progress import Progress
    from pipelines.settings import Execution
    from pipelines.stage.stage import Job

_LOGGER = logging.getLogger(__name__)


def run_job(
    job: Job,
    *,
    execution: Execution,
    progress: Progress,
    reads: Iterable[str],
    pieces: int,
    size: int | None,
    ready: Callable[[], object] = lambda: None,
) -> Any:
    """Run a job and show its progress; return Beam's result.

    Args:
        job: the job.
        execution: the runner and its options.
        progress: shows the progress.
        reads: files or directories that workers read.
        pieces: the number of pieces of the work, the limit of the number of local workers.
        size: the approximate number of bytes that the job reads; None if unknown.
        ready: called after all checks, before anything changes; locks the directory, unless that
            is done, and may refuse the job.

    Raises:
        ConfigError: workers cannot see a file, or an option is wrong.
        JobError: something else is wrong; the class says what.
    """
    beam_options = options(execution)
    workers, shared = workers_of(beam_options), execution.shared_paths
    if note := check_paths(workers, reads=reads, writes=job.directory, shared=shared):
        progress.log(note)
    check_ready(beam_options, execution, workers)
    forget_once()  # what the job before this one in a chain needed
    pa.default_memory_pool().release_unused()
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
    return result


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


@contextlib.contextmanager
def temporary_work(name: str, place: str) -> Iterator[str]:
    """Yield a directory for temporary files; remove it and its contents at the end.

    Args:
        name: the name of the kind of job.
        place: the parent directory; empty for the temporary directory of this machine.
    """
    with tempfile.TemporaryDirectory(prefix=f"bpe-{name}-") as system:
        work = join(storage.located(place or system), f"{name}-{uuid.uuid4().hex}")
        try:
            yield work
        finally:
            try:
                storage.remove_tree(work)
            except JobError as error:
                _LOGGER.warning("%s: cannot remove temporary files: %s", work, error)


def are_here(execution: Execution) -> bool:
    """Return whether the workers see the files of this machine."""
    return workers_of(options(execution)).here
