"""What the jobs have in common: checked before, run with progress, looked at afterwards."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

from pipelines import storage
from pipelines.corpus.splits import straggler
from pipelines.errors import OutputError
from pipelines.progress import NoProgress, many, size_text
from pipelines.run import options, run
from pipelines.storage import join
from pipelines.submission.submit import check_submission

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from pipelines.compare.plan import Comparing
    from pipelines.count.planning import Counting
    from pipelines.encode.steps import Encoding
    from pipelines.failures import Failures
    from pipelines.progress import Progress
    from pipelines.settings import Execution

_Planned = TypeVar("_Planned", "Counting", "Encoding", "Comparing")


def run_over_splits(
    name: str,
    planned: _Planned,
    build: Callable[[Any, Failures, str | None], Any],
    *,
    execution: Execution,
    progress: Progress,
) -> Any:
    """Run the pipeline of a job, and show how far it is; returns what Beam does.

    Args:
        name: of the job.
        planned: what there seems to be to do, for totals.
        build: adds the transforms to a pipeline: where they report errors, and the file of slots.
        execution: where the work is done.
        progress: told how far it is.
    """
    size, splits = sum(file.size for file in planned.files), len(planned.splits)
    files = many(len(planned.files), "file")
    progress.log(f"{name}: {files}, {size_text(size)} as stored, {many(splits, 'split')}")
    if (file := straggler(planned.files, planned.splits)) is not None:
        why = "compressed" if file.compression != "none" else "one document (`format` text)"
        progress.log(
            f"{name}: {file.path}, {size_text(file.size)}, is {why} and cannot be cut: it is one "
            f"of {many(splits, 'split')} and keeps one worker busy: store it in pieces, or "
            "uncompressed as lines, jsonl or Parquet"
        )
    with progress.stage(name, size) as stage:
        stage.set_slots(splits)
        return run(
            lambda p, failures: build(p, failures, stage.counters_path),
            execution=execution,
            pieces=splits,
            stage=stage,
            progress=progress,
            name=name,
        )


def see_arrived(directory: str, name: str) -> None:
    """See that what workers wrote is where this process looks for it.

    Raises:
        OutputError: it is not: they wrote to files of their own.
    """
    path = join(directory, name)
    if not storage.exists(path):
        raise OutputError(
            f"{path} is not there, though the runner says the job is done: its workers wrote to "
            "files of their own. Use a filesystem that both see (gs://, s3://, abfs://, a mounted "
            "directory)"
        )


def check_job(
    execution: Execution, progress: Progress | None, *, reads: Iterable[str], writes: str
) -> None:
    """Refuse a job that cannot work where it is sent, before anything is written."""
    say = (progress or NoProgress()).log
    check_submission(options(execution), execution, reads=reads, writes=writes, say=say)
