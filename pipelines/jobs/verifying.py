"""The job of verifying counts or an encoded corpus."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from pipelines import storage
from pipelines.count.directory import read_counts_manifest
from pipelines.encode.manifest import read_encoded, read_kind, watched_files
from pipelines.errors import JobError, VerificationError
from pipelines.failures import job_errors
from pipelines.jobs.execution import check_job
from pipelines.output.state import complete, complete_outputs
from pipelines.progress import NoProgress
from pipelines.run import metric, options, run
from pipelines.settings import Execution
from pipelines.summaries import VerifySummary
from pipelines.verify.counts import verify_counts
from pipelines.verify.encoded import check_totals, plan_verifying
from pipelines.verify.transform import CHECKED, add_verifying
from pipelines.watch.reading import read_steadily

if TYPE_CHECKING:
    from bpe import Tokenizer
    from pipelines.encode.manifest import EncodedManifest
    from pipelines.output.state import Output
    from pipelines.progress import Progress
    from pipelines.settings import InputSettings


def outputs(
    *,
    directory: str,
    execution: Execution = Execution(),  # noqa: B008  # immutable
) -> tuple[Output, ...]:
    """All that a job has made in a directory: counts, tokenizer, encoded corpus, as far as begun.

    Args:
        directory: that a job has written to.
        execution: says how stores are reached.

    Raises:
        JobError: there is nothing, or something of it is not complete.
    """
    with job_errors():
        options(execution)
        return complete_outputs(directory)


def verify(
    *,
    directory: str,
    inputs: InputSettings | None = None,
    execution: Execution = Execution(),  # noqa: B008  # immutable
    progress: Progress | None = None,
    tokenizer: Tokenizer | None = None,
) -> VerifySummary:
    """Check counts or an encoded corpus against the manifest, and against its inputs if given.

    Args:
        directory: that holds the manifest.
        inputs: the corpus, given as when the output was made.
        execution: where the work is done.
        progress: told how far it is.
        tokenizer: that a corpus must have been encoded with; None: any.

    Raises:
        VerificationError: something is not as it must be; the message names what and where.
        JobError: it cannot be checked.
    """
    began = time.monotonic()
    progress = progress or NoProgress()
    with job_errors():
        options(execution)
        complete(directory, "counts", "encoded")
        kind, checksum = read_kind(directory)
        if kind == "encoded":
            totals, parts = _verify_encoded(directory, inputs, execution, progress)
            sha256 = totals.pop("tokenizer_sha256")
            if tokenizer is not None and tokenizer.sha256 != sha256:
                raise VerificationError(
                    f"{directory} was encoded with another tokenizer than the one beside it: "
                    "encode it again"
                )
        else:
            totals, parts = _verify_counts(directory, inputs, progress)
    return VerifySummary(
        directory=storage.located(directory),
        parts=parts,
        compared=inputs is not None,
        manifest_checksum=checksum,
        seconds=time.monotonic() - began,
        **totals,
    )


def _verify_encoded(
    directory: str, inputs: InputSettings | None, execution: Execution, progress: Progress
) -> tuple[dict[str, Any], int]:
    def verified(manifest: EncodedManifest) -> tuple[EncodedManifest, Tokenizer]:
        planned = plan_verifying(directory, manifest, inputs=inputs)
        parts = len(planned.parts)
        root = planned.job.directory
        reads = [piece.path for check in planned.parts for piece in check.split.pieces]
        check_job(execution, progress, reads=reads if inputs else [root], writes=root)
        size = sum(check.size(compare=inputs is not None) for check in planned.parts)
        if not parts:  # a watch that has taken nothing yet
            check_totals(manifest)
            return manifest, planned.tokenizer
        with progress.stage("verify", size) as stage:
            stage.set_slots(parts)
            watched = planned.watched(stage.counters_path)
            result = run(
                lambda p, failures: add_verifying(p, watched, failures),
                execution=execution,
                pieces=parts,
                stage=stage,
                progress=progress,
                name="verify",
            )
        if (checked := metric(result, CHECKED)) < parts:
            raise JobError(
                f"the runner says that it checked {checked} parts of {parts}: use another runner"
            )
        check_totals(manifest)
        return manifest, planned.tokenizer

    manifest, tokenizer = read_steadily(lambda: read_encoded(directory), watched_files, verified)
    totals = manifest.totals
    facts = {
        "kind": "encoded",
        "tokenizer_sha256": manifest.tokenizer_sha256,
        "lossless": tokenizer.lossless,
        "documents": totals.documents,
        "bytes": totals.text_bytes,
        "tokens": totals.tokens,
        "unknown_tokens": totals.unknown,
        "failures": totals.failures,
        "formats": manifest.formats,
    }
    return facts, len(manifest.parts)


def _verify_counts(
    directory: str, inputs: InputSettings | None, progress: Progress
) -> tuple[dict[str, Any], int]:
    manifest = read_counts_manifest(directory)
    size = sum(source.size for source in manifest.inputs) if inputs else None
    with progress.stage("verify", size) as stage:
        stage.set_slots(1)
        counts = verify_counts(directory, inputs=inputs, counters_path=stage.counters_path)
    facts = {
        "kind": "counts",
        "lossless": None,
        "documents": counts.totals.documents,
        "bytes": counts.totals.bytes,
        "tokens": counts.totals.pretokens,
        "unknown_tokens": 0,
        "failures": counts.totals.failures,
        "formats": manifest.totals.formats,
    }
    return facts, len(manifest.parts)
