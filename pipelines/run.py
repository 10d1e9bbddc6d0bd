"""Run pipelines, here or on another runner.

``DirectRunner`` means `FnApiRunner` of this process, pinned: Beam's own ``DirectRunner`` is a
switch that may download another engine. Every other runner gets its options as they are;
`pipelines.submission` sees to it that jobs get there.
"""

from __future__ import annotations

import contextlib
import io
import time
from dataclasses import replace
from functools import lru_cache
from typing import TYPE_CHECKING, Any, cast

import apache_beam as beam
import grpc
from apache_beam.options.pipeline_options import (
    GoogleCloudOptions,
    PipelineOptions,
    StandardOptions,
)
from apache_beam.runners import create_runner

from pipelines import object_stores
from pipelines.errors import ConfigError, JobError
from pipelines.failures import FailureChannel, error_in, is_proxied, job_errors, one_line
from pipelines.interrupts import NAMES, Interrupts, unhurried
from pipelines.local_runner import LOCAL, guarded, is_local, refuse_worker_processes
from pipelines.progress import UNSEEN, StageProgress
from pipelines.submission.checks import check_ready
from pipelines.submission.job import (
    cancelled,
    counters,
    state_of,
    wait,
    where_to_look,
)
from pipelines.submission.log import job_log
from pipelines.submission.workers import workers_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from pipelines.progress import Progress
    from pipelines.settings import Execution

    Build = Callable[[beam.Pipeline, FailureChannel], None]
    from apache_beam.runners.runner import PipelineResult

_OF_BEAM_FILESYSTEMS = ("--s3_", "--hdfs_")


class _Options(PipelineOptions):  # type: ignore[misc]  # Beam has no types
    """Options that keep one view of each class; Beam asks for 89 views a job, each with a parser.

    Views of the same options share their values.
    """

    def view_as(self, cls: type[PipelineOptions]) -> PipelineOptions:
        """Return the view of that class."""
        views = self.__dict__.setdefault("_views", {})  # Beam refuses attributes that are no option
        if cls not in views:
            views[cls] = super().view_as(cls)
        return views[cls]


def options(execution: Execution) -> PipelineOptions:
    """Return Beam's options for ``execution``; the user's own options for Beam come last and win.

    From then on this process reaches stores by the storage options of ``execution``.

    Raises:
        ConfigError: Beam does not take an option, or does not know the runner; or there is no such
            storage option.
    """
    use_storage(execution)
    flags = [f"--runner={execution.runner}"]
    if execution.runner == "DirectRunner":
        workers = execution.worker_count
        mode = "in_memory" if workers == 1 else "multi_threading"
        flags = [
            f"--runner={LOCAL}",
            f"--direct_running_mode={mode}",
            f"--direct_num_workers={workers}",
        ]
    flags += execution.beam_args
    _check_flags(tuple(flags))
    beam_options = _Options(flags)
    runner = beam_options.view_as(StandardOptions).runner
    if runner.rpartition(".")[2] == "DaskRunner":
        raise ConfigError(
            "`runner` DaskRunner: it drops what steps emit at the end of a bundle, and says DONE: "
            "use another runner"
        )
    try:
        create_runner(runner)
    except (ValueError, ImportError, AttributeError, RuntimeError) as error:
        raise ConfigError(f"`runner` {runner}: {one_line(error)}") from error
    refuse_worker_processes(beam_options)
    return beam_options


@lru_cache(maxsize=8)
def _check_flags(flags: tuple[str, ...]) -> None:
    """Check that Beam knows all options; cached, since Beam builds 40 parsers for a check."""
    errors = io.StringIO()
    try:
        with contextlib.redirect_stderr(errors):
            PipelineOptions(list(flags)).get_all_options()
    except SystemExit as error:
        line = errors.getvalue().strip().rpartition("\n")[2]
        raise ConfigError(f"Beam does not take its options: {line or error}") from error


def use_storage(execution: Execution) -> None:
    """Reach stores by the storage options of ``execution`` in this process.

    Raises:
        ConfigError: there is no such option, or it is one of Beam's filesystems.
    """
    for one in execution.beam_args:
        if one.startswith(_OF_BEAM_FILESYSTEMS):
            raise ConfigError(
                f"{one.partition('=')[0]}: files are opened by pyarrow, not by Beam: give "
                "`storage_option` KEY=VALUE, such as endpoint_override=URL (docs/runners.md)"
            )
    object_stores.use_options(object_stores.StorageOptions.parse(execution.storage_options))


def run(
    build: Build,
    *,
    execution: Execution,
    pieces: int = 1,
    stage: StageProgress = StageProgress(),  # noqa: B008 - one that nobody watches has no state
    progress: Progress = UNSEEN,
    name: str = "job",
) -> PipelineResult:
    """Build a pipeline, run it to its end and return Beam's result.

    Args:
        build: adds the transforms, which report errors to the channel, to the pipeline.
        execution: where the job runs.
        pieces: the number of pieces of the work, the limit of the number of local workers.
        stage: the step of the progress that shows the state of a job on another runner.
        progress: the display of messages: the job's URL, and the job's fate after an interrupt.
        name: the verb in the name of the job on its runner.

    Raises:
        JobError: the first error of a worker, without the runner's wrapping.
        KeyboardInterrupt: a signal ended the job.
    """
    workers = max(1, min(execution.worker_count, pieces))
    beam_options = options(replace(execution, workers=workers))
    if workers_of(beam_options).kind == "local":
        return _run_here(build, beam_options, progress=progress)
    cloud = beam_options.view_as(GoogleCloudOptions)
    cloud.job_name = cloud.job_name or f"bpe-{name}-{time.strftime('%Y%m%d-%H%M%S')}"
    with unhurried():  # until the runner has cancelled the job
        return _run_there(build, beam_options, execution=execution, stage=stage, progress=progress)


def _run_there(
    build: Build,
    beam_options: PipelineOptions,
    *,
    execution: Execution,
    stage: StageProgress,
    progress: Progress,
) -> PipelineResult:
    """Submit a pipeline to another runner, and wait for the end of the job."""
    workers, name = workers_of(beam_options), beam_options.view_as(GoogleCloudOptions).job_name
    runner, preparing, submitting = workers.runner, True, False

    def on_signal(number: int) -> None:
        if preparing:
            raise interrupted.error(" before the job was submitted")
        if submitting:
            progress.log(
                f"{NAMES[number]} while the job is submitted: it is cancelled once the runner has "
                "it (a second time: this command ends at once, and the job may go on)"
            )

    interrupted = Interrupts(on_signal)
    with job_errors(), job_log() as log, interrupted:
        check_ready(beam_options, execution, workers)
        stage.observe(state="being submitted")
        pipeline = beam.Pipeline(options=beam_options)
        build(pipeline, FailureChannel())

        def poll() -> bool:
            observe(result, stage)
            return interrupted.first is None

        preparing, submitting = False, True
        try:
            result: Any = pipeline.run()
            submitting = False
            interrupted.take()  # a job server that Beam starts here takes SIGINT for itself
            progress.log(where_to_look(result, beam_options, workers))
            state = wait(result, poll)
        except KeyboardInterrupt:
            if submitting and interrupted.first is not None:
                raise interrupted.error(
                    f" while the job was submitted to {runner}: it may run there, under the name "
                    f"{name}: find it in the runner's web UI, and cancel it there"
                ) from None
            raise
        except Exception as error:
            failure = error_in(error, log.texts)
            raise type(failure)(f"{failure}{log.keep()}") from error
        if interrupted.first is not None:
            raise cancelled(result, interrupted, workers=workers, say=progress.log)
        if state not in (None, "DONE"):
            raise JobError(f"the job ended as {state} on {runner}{log.keep()}")
    return result


def observe(result: Any, stage: StageProgress) -> None:
    """Report the present state and counters of a job to its step."""
    totals = counters(result)
    kept_bytes = totals.get("bytes_kept", 0)
    stage.observe(
        state=state_of(result),
        documents=totals.get("documents_read", 0) + totals.get("documents_kept", 0),
        bytes=totals.get("bytes_read", 0) + kept_bytes,
        kept_bytes=kept_bytes,
    )


def _run_here(build: Build, beam_options: PipelineOptions, *, progress: Progress) -> PipelineResult:
    """Run a pipeline in this process.

    A signal lets the workers wind down; the local runner itself is not interrupted, since it can
    hang forever if it is interrupted while it waits for workers.
    """
    here = is_local(beam_options)
    with FailureChannel.here() if here else contextlib.nullcontext(FailureChannel()) as failures:
        taken = Interrupts(lambda _: failures.stop()) if here else contextlib.nullcontext()
        with job_errors(), taken as interrupted, guarded():
            try:
                result = _started(build, beam_options, failures=failures, say=progress.log)
                state = _finished(result)
            except Exception as error:
                raise failures.first() or error_in(error) from error
            finally:
                if interrupted is not None:
                    interrupted.raise_first()
            if (failure := failures.first()) is not None:
                raise failure
    if state not in (None, "DONE"):
        raise JobError(f"the job ended as {state}: see its logs")
    return result


def _started(
    build: Build,
    beam_options: PipelineOptions,
    *,
    failures: FailureChannel,
    say: Callable[[str], None],
) -> PipelineResult:
    """Start a pipeline; try again once if Beam does not reach its worker in this process in time.

    Workers are started before the first step, so nothing is done twice.
    """
    for last in (is_proxied(), True):
        pipeline = beam.Pipeline(options=beam_options)
        build(pipeline, failures)
        try:
            return pipeline.run()
        except grpc.FutureTimeoutError:
            if last or failures.stopped():
                raise
            say("Beam's local runner did not reach its worker within 60 s: starting it again")
    raise AssertionError  # the last turn returns or raises


def _finished(result: PipelineResult) -> str | None:
    """Wait for the end of a pipeline; cancel it on its runner when interrupted."""
    try:
        return cast("str | None", result.wait_until_finish())
    except KeyboardInterrupt:
        with contextlib.suppress(Exception):  # it may be over by now, or not know how
            result.cancel()
        raise


def metric(result: Any, name: str) -> int:
    """Return the sum of a counter over all workers; 0 if the runner has none."""
    return counters(result).get(name, 0)
