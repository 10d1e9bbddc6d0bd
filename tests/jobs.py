"""The jobs of the commands, under one name; by default on one worker, which is quickest here."""

from functools import partial
from typing import Any

from pipelines.compare.job import compare
from pipelines.count.job import CountRequest
from pipelines.decode import decode
from pipelines.encode.job import EncodeRequest
from pipelines.export.job import export
from pipelines.progress import UNSEEN, Progress
from pipelines.recipes import train
from pipelines.settings import Execution
from pipelines.summaries import CountSummary, EncodeSummary
from pipelines.verify.job import verify as verify_on_all_cores
from pipelines.watch import run_or_watch

verify = partial(verify_on_all_cores, execution=Execution(workers=1))


def count(*, execution: Execution, progress: Progress = UNSEEN, **request: Any) -> CountSummary:
    asked = partial(CountRequest.of, **request)
    summary: CountSummary = run_or_watch(asked, execution=execution, progress=progress)
    return summary


def encode(*, execution: Execution, progress: Progress = UNSEEN, **request: Any) -> EncodeSummary:
    asked = partial(EncodeRequest.of, **request)
    summary: EncodeSummary = run_or_watch(asked, execution=execution, progress=progress)
    return summary


__all__ = ["compare", "count", "decode", "encode", "export", "train", "verify"]
