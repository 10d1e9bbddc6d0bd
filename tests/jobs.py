"""The jobs of the commands, under one name; by default on one worker, which is quickest here."""

from functools import partial
from typing import Any

from pipelines.compare.job import compare
from pipelines.count import job as counting
from pipelines.decode import decode
from pipelines.encode import job as encoding
from pipelines.export.job import export
from pipelines.progress import UNSEEN, Progress
from pipelines.recipes import train
from pipelines.settings import Execution
from pipelines.summaries import CountSummary, EncodeSummary
from pipelines.verify.job import verify as verify_on_all_cores

verify = partial(verify_on_all_cores, execution=Execution(workers=1))


def count(*, execution: Execution, progress: Progress = UNSEEN, **request: Any) -> CountSummary:
    asked = partial(counting.CountRequest.of, **request)
    return counting.count(asked, execution=execution, progress=progress)


def encode(*, execution: Execution, progress: Progress = UNSEEN, **request: Any) -> EncodeSummary:
    asked = partial(encoding.EncodeRequest.of, **request)
    return encoding.encode(asked, execution=execution, progress=progress)


__all__ = ["compare", "count", "decode", "encode", "export", "train", "verify"]
