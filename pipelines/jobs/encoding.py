"""The job of encoding a corpus."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import TYPE_CHECKING

from pipelines import storage
from pipelines.encode.manifest import read_encoded
from pipelines.encode.steps import EncodeRequest, plan_encoding
from pipelines.encode.tokenizer_files import load_tokenizer
from pipelines.encode.transform import EncodeRequested
from pipelines.failures import job_errors
from pipelines.jobs.execution import check_job, run_over_splits, see_arrived
from pipelines.output.directory import check_output
from pipelines.output.lock import locked
from pipelines.output.names import MANIFEST, SPLITS
from pipelines.output.timings import save_timing
from pipelines.progress import NoProgress, many
from pipelines.run import metric, options
from pipelines.settings import EncodeSettings, Execution
from pipelines.storage import join
from pipelines.submission.workers import workers_of
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
        beam_options = options(execution)
        loaded = load_tokenizer(tokenizer)
        # Fails early, and knows totals; what is encoded is decided in the pipeline.
        planned = plan_encoding(
            inputs=inputs, tokenizer=loaded, name=tokenizer, output=output, encoding=encoding
        )
        for what in planned.not_applied:
            progress.log(f"encode: {tokenizer}: not applied: {what}")
        directory = planned.job.directory
        elsewhere = not workers_of(beam_options).here and storage.is_local(tokenizer)
        request = EncodeRequest.of(
            inputs=inputs,
            tokenizer=loaded if elsewhere else tokenizer,
            output=output,
            encoding=encoding,
        ).started()
        check_job(
            execution,
            progress,
            reads=[file.path for file in planned.files],
            writes=directory,
        )
        with locked(directory):
            reads = [*(file.path for file in planned.files), tokenizer]
            check_output(output, planned.plan, reads=reads)
            resumed = output.resume and storage.exists(join(directory, SPLITS))
            if resumed and (changed := planned.changed()):
                progress.log(
                    f"encode: {many(len(changed), 'input')} changed since the run that is resumed "
                    f"({changed[0].path}): what was made of {'it' if len(changed) == 1 else 'them'}"
                    " is made again"
                )
            result = run_over_splits(
                "encode",
                planned,
                lambda p, failures, slots: (
                    p | EncodeRequested(replace(request, counters_path=slots), failures)
                ),
                execution=execution,
                progress=progress,
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
