"""Where pipelines run, and running them there.

``DirectRunner`` means `FnApiRunner` of this process, pinned: Beam's own ``DirectRunner`` is a
switch that may download another engine. Every other runner gets its options as they are;
`pipelines.submission` sees to it that jobs get there, and watches.
"""

from __future__ import annotations

import contextlib
import io
import os
import shutil
import signal
import tempfile
import threading
import time
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import apache_beam as beam
import grpc
from apache_beam.io.filesystems import FileSystems
from apache_beam.options.pipeline_options import (
    GoogleCloudOptions,
    PipelineOptions,
    StandardOptions,
)
from apache_beam.runners import create_runner

from pipelines.errors import ConfigError, Interrupted, JobError
from pipelines.failures import Failures, error_in, is_proxied, job_errors, one_line
from pipelines.local_runner import (
    LOCAL,
    is_local,
    refuse_worker_processes,
    whole_elements,
)
from pipelines.metrics import NAMESPACE
from pipelines.progress import Stage
from pipelines.submission.logs import job_log
from pipelines.submission.submit import ready
from pipelines.submission.watching import (
    Waiter,
    cancelled_by_signals,
    counters,
    state_of,
    where_to_look,
)
from pipelines.submission.workers import workers_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from pipelines.settings import Execution


def options(execution: Execution) -> PipelineOptions:
    """Beam's options for ``execution``; what the user gave for Beam comes last and wins.

    Beam's filesystems get them too: most cannot be used, not even to plan a job, before they do.

    Raises:
        ConfigError: Beam does not take an option, or does not know the runner.
    """
    flags = [f"--runner={execution.runner}"]
    if execution.runner == "DirectRunner":
        workers = execution.worker_count
        mode = "in_memory" if workers == 1 else "multi_threading"
        flags = [
            f"--runner={LOCAL}",
            f"--direct_running_mode={mode}",
            f"--direct_num_workers={workers}",
        ]
    said = io.StringIO()
    try:
        with contextlib.redirect_stderr(said):
            made = PipelineOptions([*flags, *execution.beam_args])
            made.get_all_options()
    except SystemExit as error:
        line = said.getvalue().strip().rpartition("\n")[2]
        raise ConfigError(f"Beam does not take its options: {line or error}") from error
    runner = made.view_as(StandardOptions).runner
    if runner.rpartition(".")[2] == "DaskRunner":
        raise ConfigError(
            "`runner` DaskRunner: it drops what steps emit at the end of a bundle, and says DONE: "
            "use another runner"
        )
    try:
        create_runner(runner)
    except (ValueError, ImportError, AttributeError, RuntimeError) as error:
        raise ConfigError(f"`runner` {runner}: {one_line(error)}") from error
    refuse_worker_processes(made)
    FileSystems.set_options(made)
    return made


def use_filesystems(execution: Execution) -> None:
    """Give Beam's filesystems their options, for work that is done in this process.

    Raises:
        ConfigError: Beam does not take an option, or one asks for a runner.
    """
    if any(one.partition("=")[0] == "--runner" for one in execution.beam_args):
        raise ConfigError(
            "`runner`: this work is done in this process, and Beam only opens the files: leave it "
            "out (options of its filesystems may stay)"
        )
    options(execution)


def _silent(_: str) -> None:
    """Say nothing."""


def run(
    build: Callable[[beam.Pipeline, Failures], None],
    *,
    execution: Execution,
    pieces: int,
    stage: Stage = Stage(),  # noqa: B008 - one that nobody watches has no state
    say: Callable[[str], None] = _silent,
    name: str = "job",
) -> beam.runners.runner.PipelineResult:
    """Build a pipeline, run it to its end and return Beam's result.

    Args:
        build: adds the transforms to the pipeline; they report errors to what it is given.
        execution: where to run.
        pieces: in how many the work can be done; more local workers are not started.
        stage: told what a runner elsewhere says of the job.
        say: told where the job can be looked at, and what becomes of it when it is interrupted.
        name: what is done, for the name of the job on its runner.

    Raises:
        JobError: the error that ended the job, whatever the runner made of it.
        Interrupted: a signal ended it on its runner.
    """
    made = options(replace(execution, workers=max(1, min(execution.worker_count, pieces))))
    if workers_of(made).kind == "local":
        return _run_here(build, made, say=say)
    cloud = made.view_as(GoogleCloudOptions)
    cloud.job_name = cloud.job_name or f"bpe-{name}-{time.strftime('%Y%m%d-%H%M%S')}"
    return _run_there(build, made, execution=execution, stage=stage, say=say)


def _run_there(
    build: Callable[[beam.Pipeline, Failures], None],
    made: PipelineOptions,
    *,
    execution: Execution,
    stage: Stage,
    say: Callable[[str], None],
) -> beam.runners.runner.PipelineResult:
    """Submit a pipeline, and watch it to its end."""
    workers = workers_of(made)
    with (
        job_errors(),
        job_log() as log,
        cancelled_by_signals(workers.runner, say=say) as cancelling,
    ):
        ready(made, execution, workers)
        stage.observe(state="being submitted")
        pipeline = beam.Pipeline(options=made)
        build(pipeline, Failures())
        try:
            name = made.view_as(GoogleCloudOptions).job_name
            result = cancelling.submit(pipeline.run, name=name)
            say(where_to_look(result, made, workers))
            state = Waiter(result, lambda: observe(result, stage)).wait()
        except Exception as error:
            failure = error_in(error, log.errors)
            raise type(failure)(f"{failure} (full log: {log.keep()})") from error
        if state not in (None, "DONE"):
            raise JobError(f"the job ended as {state} on {workers.runner} (full log: {log.keep()})")
    return result


def observe(result: Any, stage: Stage) -> None:
    """Tell a step what the runner says of its job now."""
    found = counters(result, NAMESPACE)
    kept = found.get("bytes_kept", 0)
    stage.observe(
        state=state_of(result),
        documents=found.get("documents_read", 0) + found.get("documents_kept", 0),
        bytes=found.get("bytes_read", 0) + kept,
        kept_bytes=kept,
    )


def _run_here(
    build: Callable[[beam.Pipeline, Failures], None],
    made: PipelineOptions,
    *,
    say: Callable[[str], None],
) -> beam.runners.runner.PipelineResult:
    """Run a pipeline in this process."""
    folder = tempfile.mkdtemp(prefix="bpe-job-") if is_local(made) else None
    failures = Failures(Path(folder, "failure"), os.getpid()) if folder else Failures()
    try:
        with job_errors(), _interrupts(failures) as interrupted, whole_elements():
            try:
                result = _started(build, made, failures=failures, say=say)
                state = _finished(result)
            except Exception as error:
                raise failures.first() or error_in(error) from error
            finally:
                for again in interrupted:
                    again(signal.SIGINT, None)
            if (failure := failures.first()) is not None:
                raise failure
        if state not in (None, "DONE"):
            raise JobError(f"the job ended as {state}: see its logs")
        return result
    finally:
        if folder:
            shutil.rmtree(folder, ignore_errors=True)


def _started(
    build: Callable[[beam.Pipeline, Failures], None],
    made: PipelineOptions,
    *,
    failures: Failures,
    say: Callable[[str], None],
) -> beam.runners.runner.PipelineResult:
    """Start a pipeline; once more where Beam did not reach its own worker in this process in time.

    Nothing has been done then: workers are started before the first step.
    """
    for last in (is_proxied(), True):
        pipeline = beam.Pipeline(options=made)
        build(pipeline, failures)
        try:
            return pipeline.run()
        except grpc.FutureTimeoutError:
            if last or failures.stopped():
                raise
            say("Beam's local runner did not reach its worker within 60 s: starting it again")
    raise AssertionError  # the last turn returns or raises


def _finished(result: beam.runners.runner.PipelineResult) -> str | None:
    """Wait for the end of a pipeline; take it back from its runner when interrupted."""
    try:
        return cast("str | None", result.wait_until_finish())
    except KeyboardInterrupt:
        with contextlib.suppress(Exception):  # it may be over by now, or not know how
            result.cancel()
        raise


def _terminated(*_: object) -> None:
    raise Interrupted("terminated", exit_status=128 + signal.SIGTERM)


@contextlib.contextmanager
def _interrupts(failures: Failures) -> Iterator[list[Callable[[int, Any], object]]]:
    """Let a first Ctrl-C (or SIGTERM, where nobody else handles it) wind the local workers down.

    Beam's local runner can hang for good when it is interrupted while it waits for its workers.
    What is yielded does what the signal would have done, to be called when they are; a second
    signal does so at once.
    """
    interrupted: list[Callable[[int, Any], object]] = []
    before: dict[int, Any] = {}
    if failures.path is not None and threading.current_thread() is threading.main_thread():
        interrupt, terminate = signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGTERM)
        if callable(interrupt):
            before[signal.SIGINT] = interrupt
        if terminate is signal.SIG_DFL:
            before[signal.SIGTERM] = terminate

    def stop(number: int, _: object) -> None:
        give_back()
        interrupted.append(_terminated if number == signal.SIGTERM else before[number])
        failures.stop()

    def give_back() -> None:
        for one, handler in before.items():
            signal.signal(one, handler)

    for each in before:
        signal.signal(each, stop)
    try:
        yield interrupted
    finally:
        give_back()


def metric(result: Any, name: str) -> int:
    """What a counter came to, over all workers; 0 where the runner does not say."""
    return counters(result, NAMESPACE).get(name, 0)
