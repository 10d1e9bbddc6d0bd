"""The job of counting a corpus."""

from __future__ import annotations

import contextlib
import time
from typing import TYPE_CHECKING

from bpe.errors import CountsError
from pipelines.checks import folder_of, over_what_failed
from pipelines.count.directory import read_counts_manifest
from pipelines.count.steps import plan_counting
from pipelines.count.transform import add_counting
from pipelines.errors import JobError
from pipelines.failures import job_errors
from pipelines.jobs.execution import check_job, run_over_splits, see_arrived
from pipelines.output.directory import prepare
from pipelines.output.lock import locked
from pipelines.output.names import MANIFEST, PLAN, read_json_object
from pipelines.output.timings import save_timing
from pipelines.progress import NoProgress
from pipelines.run import options
from pipelines.settings import CountSettings
from pipelines.storage import join
from pipelines.summaries import CountSummary
from pipelines.verify.counts import verify_counts

if TYPE_CHECKING:
    from pipelines.count.steps import Counting
    from pipelines.progress import Progress
    from pipelines.settings import (
        Execution,
        InputSettings,
        OutputSettings,
        PretokenSettings,
    )


def count(
    *,
    inputs: InputSettings,
    pretokens: PretokenSettings,
    output: OutputSettings,
    execution: Execution,
    settings: CountSettings = CountSettings(),  # noqa: B008  # immutable
    progress: Progress | None = None,
) -> CountSummary:
    """Count the pre-tokens of a corpus into a directory of Parquet shards.

    Args:
        inputs: the corpus.
        pretokens: how text is cut.
        output: the directory.
        execution: where the work is done.
        settings: what the counts hold.
        progress: told how far it is.

    Raises:
        JobError: something is wrong; the class says what.
    """
    began = time.monotonic()
    with job_errors():
        options(execution)
        counting = plan_counting(
            inputs=inputs,
            pretokens=pretokens,
            output=output,
            settings=settings,
        )
        check_job(
            execution,
            progress,
            reads=[file.path for file in counting.files],
            writes=counting.job.directory,
        )
        over = over_what_failed(counting, output)
        # What looks failed may be at work; a lock tells.
        training = contextlib.nullcontext() if over is output else locked(folder_of(counting))
        with training:
            resumed = count_planned(counting, over, execution, progress or NoProgress())
        manifest = read_counts_manifest(counting.job.directory)
    return CountSummary(
        output=counting.job.directory,
        documents=manifest.totals.documents,
        bytes=manifest.totals.bytes,
        pretokens=manifest.totals.pretokens,
        distinct_pretokens=sum(part.rows for part in manifest.parts),
        failures=manifest.totals.failures,
        formats=manifest.totals.formats,
        passed_over=counting.passed_over,
        parts=len(manifest.parts),
        output_bytes=sum(part.bytes for part in manifest.parts),
        seconds=time.monotonic() - began,
        resumed=resumed,
    )


def count_planned(
    counting: Counting, output: OutputSettings, execution: Execution, progress: Progress
) -> bool:
    """Run a planned count; returns whether an earlier run had finished it."""
    directory = counting.job.directory
    with locked(directory):
        if output.resume and _has_counts(counting):
            progress.log(f"count: {directory} is complete")
            return True
        prepare(output, counting.plan, reads=[file.path for file in counting.files])
        began = time.monotonic()
        run_over_splits("count", counting, add_counting, execution=execution, progress=progress)
        see_arrived(directory, MANIFEST)
        seconds, totals = time.monotonic() - began, read_counts_manifest(directory).totals
        read, made = (totals.documents, totals.bytes), (totals.pretokens, "pre-tokens")
        save_timing(directory, "count", seconds, read=read, made=made, execution=execution)
    return False


def _has_counts(counting: Counting) -> bool:
    """Whether an earlier run of this job finished, and left every file as it should be."""
    directory = counting.job.directory
    then = read_json_object(join(directory, PLAN)) or {}
    if counting.plan.differences(then) or counting.plan.changed(then):
        return False
    try:
        verify_counts(directory)
    except (JobError, CountsError):
        return False
    return True
