"""What is settled before a job is handed to a runner."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

from apache_beam.options.pipeline_options import (
    FlinkRunnerOptions,
    PortableOptions,
    PrismRunnerOptions,
    SparkRunnerOptions,
)

from pipelines.errors import ConfigError
from pipelines.submission.paths import check_paths
from pipelines.submission.staging import stage
from pipelines.submission.watching import reach_job_server
from pipelines.submission.workers import workers_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from apache_beam.options.pipeline_options import PipelineOptions

    from pipelines.settings import Execution
    from pipelines.submission.workers import Workers


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
        JobError: no job server answers, or the package for the workers cannot be built.
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
    stage(made, workers, how=execution.stage, file=execution.package, say=say)


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
