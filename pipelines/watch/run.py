"""Running a pipeline that has no end until it is told to stop."""

from __future__ import annotations

import contextlib
import logging
import os
import shutil
import signal
import tempfile
import threading
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import apache_beam as beam
from apache_beam.metrics import monitoring_infos
from apache_beam.options.pipeline_options import DirectOptions, StandardOptions
from apache_beam.runners.portability.fn_api_runner import fn_runner

from pipelines.errors import JobError, StoppedError
from pipelines.failures import Failures, error_in
from pipelines.local_runner import is_local
from pipelines.run import options
from pipelines.submission.submit import ready
from pipelines.submission.watching import Waiter, taken_back, where_to_look
from pipelines.submission.workers import workers_of
from pipelines.watch.transform import STOPPED

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from pipelines.settings import Execution
    from pipelines.watch.keeper import Keeper

_GRACE = 30.0  # seconds in which a runner takes a job back


def run_until_stopped(
    build: Callable[[beam.Pipeline, Failures], None], *, execution: Execution, keeper: Keeper
) -> str:
    """Build a pipeline and run it until it fails, ends, or is told to stop.

    SIGINT and SIGTERM tell it; a second one is as ever.

    Args:
        build: adds the transforms to the pipeline.
        execution: where to run.
        keeper: looks after the output meanwhile, and may end the job.

    Returns:
        Why it ended: ``signal``, or what the keeper was asked for.

    Raises:
        JobError: the error that ended the job.
    """
    _add_up_metrics_at_once()
    made = options(replace(execution, workers=1))
    local, workers = is_local(made), workers_of(made)
    if local:
        made.view_as(DirectOptions).direct_num_workers = 1
        made.view_as(DirectOptions).direct_running_mode = "in_memory"
    else:
        made.view_as(StandardOptions).streaming = True
        ready(made, execution, workers)
    folder = tempfile.mkdtemp(prefix="bpe-watch-") if local else None
    failures = Failures(Path(folder, "failure"), os.getpid()) if folder else Failures()
    stopping, signalled = threading.Event(), threading.Event()

    def stop() -> None:
        stopping.set()
        failures.stop()

    watcher = threading.Thread(target=keeper.run, args=(stopping, stop), daemon=True)
    try:
        with _signals(stop, signalled), _quiet_end():
            pipeline = beam.Pipeline(options=made)
            build(pipeline, failures)
            watcher.start()
            try:
                if local:
                    pipeline.run().wait_until_finish()
                else:
                    _run_elsewhere(
                        pipeline,
                        stopping,
                        lambda result: keeper.say(where_to_look(result, made, workers)),
                    )
            except Exception as error:
                failure = failures.first()
                if not stopping.is_set() or (failure is None and STOPPED not in str(error)):
                    raise failure or error_in(error) from error
            ended_itself = not stopping.is_set()
    finally:
        # Nobody else may write to the directory before the keeper has ended.
        stopping.set()
        if watcher.ident is not None:
            watcher.join()
        left = failures.first()
        if folder:
            shutil.rmtree(folder, ignore_errors=True)
    if left is not None and (ended_itself or not isinstance(left, StoppedError)):
        raise left
    if keeper.error is not None:
        raise error_in(keeper.error) from keeper.error
    if signalled.is_set():
        return "signal"
    return "end" if ended_itself else "asked"


def _add_up_metrics_at_once() -> None:
    """Keep Beam's local runner from holding the metrics of every bundle.

    `consolidate` is a generator, which the runner puts around that of the bundle before, and nobody
    asks for the sum before the job ends (Beam 2.77): half a megabyte for each look at 50 files.
    """
    fn_runner.consolidate_monitoring_infos = _consolidated


def _consolidated(infos: Iterable[Any]) -> list[Any]:
    return list(monitoring_infos.consolidate(infos))


class _Asked(Exception):  # noqa: N818 - no error
    """The job is to be taken back."""


def _run_elsewhere(
    pipeline: beam.Pipeline,
    stopping: threading.Event,
    started: Callable[[Any], object] = lambda _: None,
) -> None:
    """Run on a runner that has its own processes; take the job back when asked to, or on errors."""
    result = pipeline.run()
    started(result)

    def poll() -> None:
        if stopping.is_set():
            raise _Asked

    waiter = Waiter(result, poll)
    try:
        state = waiter.wait()
    except BaseException as error:
        with contextlib.suppress(Exception):  # it may be over by now
            taken_back(result)
        if not isinstance(error, _Asked):
            raise
        waiter.join(_GRACE)
        return
    if state not in (None, "DONE"):
        raise JobError(f"the job ended as {state}: see the logs of the runner")


@contextlib.contextmanager
def _signals(stop: Callable[[], None], signalled: threading.Event) -> Iterator[None]:
    """Let a first SIGINT or SIGTERM wind the job down."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {which: signal.getsignal(which) for which in (signal.SIGINT, signal.SIGTERM)}

    def handle(which: int, _: object) -> None:
        signal.signal(which, before[signal.Signals(which)])
        signalled.set()
        stop()

    for which, handler in before.items():
        if handler is not signal.SIG_IGN:  # a shell may have us ignore it
            signal.signal(which, handle)
    try:
        yield
    finally:
        for which, handler in before.items():
            signal.signal(which, handler)


@contextlib.contextmanager
def _quiet_end() -> Iterator[None]:
    """Keep what Beam says of the exception that ends a watch out of the log."""

    def wanted(record: logging.LogRecord) -> bool:
        return STOPPED not in record.getMessage()

    loggers = [
        logging.getLogger(name)
        for name in (
            "apache_beam.runners.common",
            "apache_beam.runners.worker.sdk_worker",
            "apache_beam.runners.worker.bundle_processor",
        )
    ]
    for logger in loggers:
        logger.addFilter(wanted)
    try:
        yield
    finally:
        for logger in loggers:
            logger.removeFilter(wanted)
