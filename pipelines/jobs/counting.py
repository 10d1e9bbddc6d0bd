"""The job of counting a corpus."""

from __future__ import annotations

import contextlib
import time
from dataclasses import replace
from typing import TYPE_CHECKING

from pipelines.checks import folder_of, over_what_failed
from pipelines.count.directory import read_counts_manifest
from pipelines.count.planning import CountRequest, plan_counting
from pipelines.count.transform import CountRequested
from pipelines.failures import job_errors
from pipelines.jobs.execution import check_job, run_over_splits, see_arrived
from pipelines.output.directory import check_output
from pipelines.output.lock import locked
from pipelines.output.names import MANIFEST
from pipelines.output.timings import save_timing
from pipelines.progress import NoProgress
from pipelines.run import options
from pipelines.settings import CountSettings
from pipelines.storage import file_version, join
from pipelines.summaries import CountSummary

if TYPE_CHECKING:
    from pipelines.count.planning import Counting
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
        request = CountRequest.of(
            inputs=inputs, pretokens=pretokens, output=output, settings=settings
        )
        # Fails early, and knows totals; what is counted is decided in the pipeline.
        counting = plan_counting(replace(request, inputs=inputs))
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
            resumed = count_planned(
                counting, replace(request, output=over), execution, progress or NoProgress()
            )
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
    counting: Counting, request: CountRequest, execution: Execution, progress: Progress
) -> bool:
    """Run a count that was looked at; returns whether an earlier run had finished it."""
    directory, request = request.job.directory, request.started()
    with locked(directory):
        check_output(request.output, counting.plan, reads=[file.path for file in counting.files])
        manifest = join(directory, MANIFEST)
        before, began = file_version(manifest), time.monotonic()
        run_over_splits(
            "count",
            counting,
            lambda p, failures, slots: (
                p | CountRequested(replace(request, counters_path=slots), failures)
            ),
            execution=execution,
            progress=progress,
        )
        see_arrived(directory, MANIFEST)
        if before is not None and file_version(manifest) == before:
            progress.log(f"count: {directory} is complete")
            return True
        seconds, totals = time.monotonic() - began, read_counts_manifest(directory).totals
        read, made = (totals.documents, totals.bytes), (totals.pretokens, "pre-tokens")
        save_timing(directory, "count", seconds, read=read, made=made, execution=execution)
    return False
