"""The command that verifies counts, an encoded corpus or an export, on any runner.

Every part is checked, also after one that is wrong: the error names the first one in the order of
the manifest, whatever worker comes to it first.
"""

from __future__ import annotations

import contextlib
import time
from typing import TYPE_CHECKING

from pipelines import storage
from pipelines.failures import job_errors
from pipelines.output.names import WORK
from pipelines.output.state import complete
from pipelines.progress import UNSEEN
from pipelines.run import options
from pipelines.settings import Execution
from pipelines.stage.job import are_here, temporary_work
from pipelines.storage import join
from pipelines.summaries import VerifySummary
from pipelines.verify.base import Verification
from pipelines.verify.counts import verify_counts
from pipelines.verify.encoded import verify_encoded
from pipelines.verify.export import verify_export

if TYPE_CHECKING:
    from bpe import Tokenizer
    from pipelines.output.names import Kind
    from pipelines.progress import Progress
    from pipelines.settings import InputSettings


_KINDS: tuple[Kind, ...] = ("counts", "encoded", "export")


def verify(
    *,
    directory: str,
    inputs: InputSettings | None = None,
    execution: Execution = Execution(),  # noqa: B008  # immutable
    progress: Progress = UNSEEN,
    tokenizer: Tokenizer | None = None,
) -> VerifySummary:
    """Check an output against its manifest and, if inputs are given, against its inputs.

    Args:
        directory: the directory that holds the manifest.
        inputs: the corpus, given as when the output was made; of an export, the directories of
            its sources.
        execution: where the work is done.
        progress: the display of the progress.
        tokenizer: the tokenizer that must have encoded a corpus; None: any.

    Raises:
        VerificationError: the output is wrong; the message names the file and the error.
        JobError: the output cannot be checked.
    """
    began = time.monotonic()
    with job_errors():
        options(execution)
        root, kind = storage.located(directory), complete(directory, *_KINDS).kind
        again = inputs is not None and kind != "encoded"
        place = "" if are_here(execution) else join(root, WORK)
        with temporary_work("verify", place) if again else contextlib.nullcontext("") as work:
            job = Verification(
                directory=root,
                inputs=inputs,
                work=work,
                execution=execution,
                progress=progress,
            )
            if kind == "export":
                holds = verify_export(job)
            elif kind == "encoded":
                holds = verify_encoded(job, tokenizer)
            else:
                holds = verify_counts(job)
    return VerifySummary(
        directory=job.directory,
        kind=str(kind),
        compared=inputs is not None,
        seconds=time.monotonic() - began,
        **holds,
    )
