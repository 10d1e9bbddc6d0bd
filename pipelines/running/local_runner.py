"""Beam's local runner, with worker threads that send whole elements only."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from apache_beam.options.pipeline_options import DirectOptions, StandardOptions
from apache_beam.runners import create_runner
from apache_beam.transforms.environments import EmbeddedPythonGrpcEnvironment

from pipelines.errors import ConfigError

if TYPE_CHECKING:
    from apache_beam.options.pipeline_options import PipelineOptions

LOCAL = "FnApiRunner"
_BY_SIZE = -1  # milliseconds: no time limit


def is_local(made: PipelineOptions) -> bool:
    """Whether these options mean the local runner, whose workers share this machine's files."""
    return bool(made.view_as(StandardOptions).runner == LOCAL)


def refuse_worker_processes(made: PipelineOptions) -> None:
    """Refuse the mode of the local runner that waits for ever when a worker process dies.

    Raises:
        ConfigError: the options ask for it.
    """
    mode = made.view_as(DirectOptions).direct_running_mode
    if is_local(made) and mode == "multi_processing":
        raise ConfigError(
            "`beam_args` --direct_running_mode=multi_processing: Beam's local runner hangs when "
            "one of its worker processes dies. Leave the option out: threads encode and count on "
            "all cores (`workers`), but with a `pattern` of your own on one"
        )


def local_runner(made: PipelineOptions) -> Any:
    """A local runner for one job with these options, which must not be used for another.

    Once a second a timer of Beam's worker threads sends what has been written so far, also while an
    element is being written (`TimeBasedBufferingClosableOutputStream` locks nothing there). What
    arrives is decoded beyond its end: errors, other values, or memory without bound. Without a time
    limit workers send by size, between elements, as they do on all other runners. A limit can be
    given to a worker's environment, and an environment to the runner, but not by an option.
    """
    runner = create_runner(LOCAL)
    direct = made.view_as(DirectOptions)
    if direct.direct_running_mode != "multi_threading":
        return runner
    environment = EmbeddedPythonGrpcEnvironment.default()
    environment.data_buffer_time_limit_ms = _BY_SIZE
    direct.direct_running_mode = None  # else the runner takes an environment of its own
    return type(runner)(default_environment=environment)
