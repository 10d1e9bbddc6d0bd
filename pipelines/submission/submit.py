"""What is settled before a job is handed to a runner."""

from __future__ import annotations

import shutil
import socket
import time
from typing import TYPE_CHECKING

from apache_beam.options.pipeline_options import (
    FlinkRunnerOptions,
    PortableOptions,
    PrismRunnerOptions,
    SparkRunnerOptions,
)

from pipelines.errors import ConfigError, JobError
from pipelines.submission.package import check_package
from pipelines.submission.paths import check_paths
from pipelines.submission.workers import workers_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from apache_beam.options.pipeline_options import PipelineOptions

    from pipelines.settings import Execution
    from pipelines.submission.workers import Workers

_REACH_SECONDS = 15
# Beam ends the streams that tell it of a job after as long as it waits for the job server to
# answer, five minutes by default, and takes the job for failed.
_STREAM_SECONDS = 365 * 24 * 3600


def check_submission(
    made: PipelineOptions,
    execution: Execution,
    *,
    reads: Iterable[str],
    writes: str,
    say: Callable[[str], None],
) -> None:
    """Refuse a job that cannot work where it is sent, before anything is written.

    Args:
        made: Beam's options of the job; not to be used for it afterwards.
        execution: where the work is to be done.
        reads: what workers read: files or directories.
        writes: the output directory.
        say: told what the user may want to know.

    Raises:
        ConfigError: workers cannot see a file, or an option is wrong.
        JobError: no job server answers.
    """
    workers = workers_of(made)
    note = check_paths(workers, reads=reads, writes=writes, shared=execution.shared_paths)
    if note:
        say(note)
    ready(made, execution, workers, say=say)


def ready(
    made: PipelineOptions,
    execution: Execution,
    workers: Workers,
    *,
    say: Callable[[str], None] = lambda _: None,
) -> None:
    """Complete Beam's options with what the runner needs to have.

    Raises:
        ConfigError, JobError: it cannot be had; the message says how to get it.
    """
    if workers.kind == "local":
        return
    _find_engine(made, workers, say)
    reach_job_server(made, workers)
    check_package(made, workers, how=execution.stage)


def _find_engine(made: PipelineOptions, workers: Workers, say: Callable[[str], None]) -> None:
    """Where Beam would start a runner of its own on this machine: from what?"""
    if made.view_as(PortableOptions).job_endpoint:
        return
    if workers.runner == "PortableRunner":
        raise ConfigError(
            "`runner` PortableRunner needs the address of a job server: "
            "`beam_args` --job_endpoint=HOST:PORT (docs/running.md)"
        )
    prism = made.view_as(PrismRunnerOptions)
    if workers.runner == "PrismRunner" and not prism.prism_location:
        found = shutil.which("prism")
        if found is None:
            raise ConfigError(
                "`runner` PrismRunner: no program prism on the PATH, and none is downloaded "
                "unasked: build it (docs/running.md), and name it with `beam_args` "
                "--prism_location=FILE or a running one with `beam_args` --job_endpoint=HOST:PORT"
            )
        prism.prism_location = found
    flink, spark = made.view_as(FlinkRunnerOptions), made.view_as(SparkRunnerOptions)
    for name, option, jar in (
        ("FlinkRunner", "--flink_job_server_jar", flink.flink_job_server_jar),
        ("SparkRunner", "--spark_job_server_jar", spark.spark_job_server_jar),
    ):
        if workers.runner == name and not jar:
            say(
                f"Beam takes the job server of {name} from Maven Central, unless it has it in its "
                f"cache: name one with -- {option}=FILE, or a running one with "
                "--job_endpoint=HOST:PORT"
            )


def reach_job_server(made: PipelineOptions, workers: Workers) -> None:
    """See that the job server answers, and let Beam's streams last as long as the job.

    Raises:
        JobError: nothing answers there.
    """
    portable = made.view_as(PortableOptions)
    endpoint = portable.job_endpoint
    given = int(portable.job_server_timeout or 0)
    portable.job_server_timeout = max(given, _STREAM_SECONDS)
    if not endpoint or endpoint == "embed":
        return
    host, _, port = str(endpoint).rpartition(":")
    if not host or not port.isdigit():
        raise JobError(f"--job_endpoint={endpoint} is not HOST:PORT")
    patience = min(given or _REACH_SECONDS, _REACH_SECONDS)
    until = time.monotonic() + patience
    while (error := _refusal(host.strip("[]"), int(port), patience)) is not None:
        if time.monotonic() > until:
            raise JobError(
                f"no job server answers at {endpoint} ({error.strerror or error}): start it, or "
                f"correct --job_endpoint (docs/running.md says how for {workers.runner})"
            ) from error
        time.sleep(0.5)


def _refusal(host: str, port: int, seconds: float) -> OSError | None:
    try:
        socket.create_connection((host, port), timeout=seconds).close()
    except OSError as error:
        return error
    return None
