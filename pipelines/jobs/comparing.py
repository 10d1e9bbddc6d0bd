"""The job of comparing tokenizers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pipelines import storage
from pipelines.compare.plan import EXAMPLES, plan_comparing, prepare_comparing
from pipelines.compare.result import read_comparison
from pipelines.compare.transform import RESULT, add_comparing
from pipelines.failures import job_errors
from pipelines.jobs.execution import check_job, run_over_splits, see_arrived
from pipelines.output.names import json_bytes
from pipelines.output.workspace import workspace
from pipelines.progress import NoProgress
from pipelines.storage import join

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pipelines.compare.plan import TokenizerFile
    from pipelines.progress import Progress
    from pipelines.settings import Execution, InputSettings


def compare(
    *,
    inputs: InputSettings,
    tokenizers: Sequence[TokenizerFile],
    execution: Execution,
    by: str | None = None,
    examples: int = EXAMPLES,
    output: str | None = None,
    progress: Progress | None = None,
) -> dict[str, Any]:
    """Compare what tokenizers make of a corpus; return the result, as JSON values.

    Args:
        inputs: the corpus.
        tokenizers: two or more.
        execution: where the work is done.
        by: ``file``, or a field (jsonl) or column (parquet) whose values are groups.
        examples: how many pieces to show on which two tokenizers differ most; 0: do not look.
        output: a file to write the result to; needed where workers do not share this machine.
        progress: told how far it is.

    Raises:
        JobError: something is wrong; the class says what.
    """
    progress = progress or NoProgress()
    with job_errors(), workspace(execution, output) as directory:
        comparing = plan_comparing(
            inputs=inputs,
            tokenizers=tokenizers,
            directory=directory,
            by=by,
            examples=examples,
        )
        check_job(
            execution,
            progress,
            reads=[file.path for file in comparing.files],
            writes=directory,
        )
        prepare_comparing(comparing)
        run_over_splits(
            "compare",
            comparing,
            lambda p, failures, slots: add_comparing(p, comparing.watched(slots), failures),
            execution=execution,
            progress=progress,
        )
        see_arrived(directory, RESULT)
        result = read_comparison(join(directory, RESULT))
        if output is not None:
            storage.write(storage.located(output), json_bytes(result))
    return result
