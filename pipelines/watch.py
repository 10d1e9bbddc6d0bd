"""Repeat an appending job in this process, until a signal or a setting ends the loop."""

from __future__ import annotations

import threading
import time
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from pipelines.errors import ConfigError, Interrupted
from pipelines.failures import job_errors
from pipelines.interrupts import Interrupts, unhurried
from pipelines.output.directory import locked
from pipelines.planned import NothingArrivedError, run_once
from pipelines.progress import UNSEEN
from pipelines.run import options
from pipelines.submission.workers import workers_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from pipelines.planned import CorpusRequest
    from pipelines.progress import Progress
    from pipelines.settings import Execution


@job_errors()
def run_or_watch(
    make: Callable[[], CorpusRequest], *, execution: Execution, progress: Progress = UNSEEN
) -> Any:
    """Run a job; to watch, append the files that have arrived every few seconds.

    Args:
        make: returns the job: `CountRequest.of` or `EncodeRequest.of`, with its arguments.
        execution: the options of the runner, which must be this process to watch.
        progress: the display of the progress.

    Returns:
        The last summary.

    Raises:
        JobError: the error that ended the job or the loop.
    """
    workers = workers_of(options(execution))
    request = make() if workers.here else make().elsewhere()
    settings, every = request.appending, request.appending.watch
    if every is None:
        return run_once(request, execution=execution, progress=progress)
    if workers.kind != "local":
        raise ConfigError(
            f"`runner` {execution.runner}: `watch` is a loop in this process: leave it out and "
            "append by a scheduler, or stream in a pipeline of your own (docs/beam.md, Streams)"
        )
    ends = None if settings.stop_after is None else time.monotonic() + settings.stop_after
    signalled = threading.Event()
    progress.log(f"looks for files every {every:g} s; Ctrl-C ends it")
    summary = None
    nothing = NothingArrivedError("the job was stopped before it had taken a file")
    done: dict[str, Any] = {"execution": execution, "progress": progress, "held": True}
    with unhurried(), locked(request.directory), Interrupts(lambda _: signalled.set()):
        while not signalled.is_set() and (ends is None or time.monotonic() < ends):
            try:
                summary = run_once(request, **done)
                request = replace(request, output=replace(request.output, overwrite=False))
            except NothingArrivedError as error:
                nothing = error
            except Interrupted:
                # What was made of units is kept; the summary is of what is complete.
                planned = request.plan()
                if planned.earlier is not None:
                    summary = request.summarize(replace(planned, files=(), splits=()), None)
                break
            left = every if ends is None else ends - time.monotonic()
            signalled.wait(max(min(every, left), 0.0))
    if summary is None:
        raise nothing
    return summary
