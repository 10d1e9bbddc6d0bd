"""The job of encoding a corpus."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from pipelines.encode.manifest import read_encoded
from pipelines.encode.steps import (
    plan_encoding,
    prepare_encoding,
)
from pipelines.encode.transform import add_encoding
from pipelines.failures import job_errors
from pipelines.jobs.execution import check_job, run_over_splits, see_arrived
from pipelines.output.lock import locked
from pipelines.output.names import MANIFEST
from pipelines.output.timings import save_timing
from pipelines.progress import NoProgress, many
from pipelines.run import metric, options
from pipelines.settings import EncodeSettings, Execution
from pipelines.summaries import EncodeSummary

if TYPE_CHECKING:
    from pipelines.progress import Progress
    from pipelines.settings import (
        InputSettings,
        OutputSettings,
    )


def encode(
    *,
    inputs: InputSettings,
    tokenizer: str,
    output: OutputSettings,
    execution: Execution,
    encoding: EncodeSettings = EncodeSettings(),  # noqa: B008  # immutable
    progress: Progress | None = None,
) -> EncodeSummary:
    """Encode a corpus into a directory of Parquet parts.

    Args:
        inputs: the corpus.
        tokenizer: a tokenizer file, as `bpe.Tokenizer.load` takes it; of any filesystem.
        output: the directory.
        execution: where the work is done.
        encoding: what the rows hold.
        progress: told how far it is.

    Raises:
        JobError: something is wrong; the class says what.
    """
    began = time.monotonic()
    progress = progress or NoProgress()
    with job_errors():
        options(execution)
        planned = plan_encoding(
            inputs=inputs, tokenizer=tokenizer, output=output, encoding=encoding
        )
        for what in planned.not_applied:
            progress.log(f"encode: {tokenizer}: not applied: {what}")
        directory = planned.job.directory
        check_job(
            execution,
            progress,
            reads=[file.path for file in planned.files],
            writes=directory,
        )
        with locked(directory):
            if changed := prepare_encoding(planned, output):
                progress.log(
                    f"encode: {many(len(changed), 'input')} changed since the run that is resumed "
                    f"({changed[0]}): what was made of {'it' if len(changed) == 1 else 'them'} is "
                    "made again"
                )
            result = run_over_splits(
                "encode", planned, add_encoding, execution=execution, progress=progress
            )
            see_arrived(directory, MANIFEST)
            manifest = read_encoded(directory)
            totals = manifest.totals
            if not metric(result, "parts_resumed"):  # else an earlier run did some of the work
                seconds, made = time.monotonic() - began, (totals.tokens, "tokens")
                read = (totals.documents, totals.text_bytes)
                save_timing(
                    directory,
                    "encode",
                    seconds,
                    read=read,
                    made=made,
                    execution=execution,
                    cache=(metric(result, "cache_hits"), metric(result, "cache_misses")),
                )
    return EncodeSummary(
        output=directory,
        documents=manifest.totals.documents,
        bytes=manifest.totals.text_bytes,
        rows=manifest.totals.rows,
        tokens=manifest.totals.tokens,
        unknown_tokens=manifest.totals.unknown,
        dropped_tokens=manifest.totals.dropped.tokens,
        dropped_documents=manifest.totals.dropped.documents,
        failures=manifest.totals.failures,
        formats=manifest.formats,
        passed_over=planned.passed_over,
        parts=len(manifest.parts),
        # A runner that starts a job again finds the parts of its own first try, too.
        resumed_parts=metric(result, "parts_resumed") if output.resume else 0,
        output_bytes=manifest.totals.bytes,
        id_type=manifest.id_type,
        not_applied=planned.not_applied,
        seconds=time.monotonic() - began,
    )
