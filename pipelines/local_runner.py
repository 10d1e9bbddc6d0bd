"""Replace values of Beam's local runner while a job runs, and check its options.

For local jobs, private names of Beam are used only here, and not at import.
"""

from __future__ import annotations

import threading
from contextlib import ExitStack, contextmanager, suppress
from functools import partial
from importlib import import_module
from typing import TYPE_CHECKING, Any

from apache_beam.options.pipeline_options import DirectOptions, StandardOptions

from pipelines.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from apache_beam.options.pipeline_options import PipelineOptions

LOCAL = "FnApiRunner"


def is_local(made: PipelineOptions) -> bool:
    """Return whether these options mean the local runner, whose workers see local files."""
    return bool(made.view_as(StandardOptions).runner == LOCAL)


def has_one_worker(made: PipelineOptions) -> bool:
    """Return whether these options mean the local runner with one worker."""
    return is_local(made) and made.view_as(DirectOptions).direct_running_mode == "in_memory"


def refuse_worker_processes(made: PipelineOptions) -> None:
    """Refuse the mode of the local runner that hangs when a worker process dies.

    Raises:
        ConfigError: the options ask for this mode.
    """
    mode = made.view_as(DirectOptions).direct_running_mode
    if is_local(made) and mode == "multi_processing":
        raise ConfigError(
            "`beam_args` --direct_running_mode=multi_processing: Beam's local runner hangs when "
            "one of its worker processes dies. Leave the option out: threads encode and count on "
            "all cores (`workers`), but with a `pattern` that the core cannot run on one"
        )


def _sampled_often(sampler: Callable[..., Any]) -> Callable[..., Any]:
    return partial(sampler, sampling_period_ms=10)


_RUNNER = "apache_beam.runners.portability.fn_api_runner"
# Values of Beam: module, name, and the function that returns the other value.
_REPLACED = (
    # Once a second a timer sends what has been written so far, also while an element is being
    # written: `TimeBasedBufferingClosableOutputStream` does not lock the writer. What arrives is
    # decoded beyond its end: errors, other values, or memory without bound. With no time limit data
    # is sent by size, between elements, as on all other runners. Beam has an option for its worker
    # threads alone, none for its own side.
    (f"{_RUNNER}.worker_handlers", "DATA_BUFFER_TIME_LIMIT_MS", lambda _: 0),
    # At the end of a bundle Beam waits for a thread that looks where time is spent, and that sleeps
    # for up to 0.2 s: a tenth of a job on 400 MB. Only its constructor takes a shorter pause.
    ("apache_beam.runners.worker.statesampler", "StateSampler", _sampled_often),
)
_lock, _restored = threading.Lock(), ExitStack()
_jobs = 0


@contextmanager
def guarded() -> Iterator[None]:
    """Keep Beam's local runner from sending half elements, and from waiting.

    A value that this release of Beam does not have is not replaced. The last of several jobs at
    once restores all.
    """
    global _jobs  # noqa: PLW0603 - Beam's values are those of the process
    with _lock:
        for path, name, by in _REPLACED if not _jobs else ():
            with suppress(ImportError, AttributeError):
                module = import_module(path)
                found = getattr(module, name)
                _restored.callback(setattr, module, name, found)
                setattr(module, name, by(found))
        _jobs += 1
    try:
        yield
    finally:
        with _lock:
            _jobs -= 1
            if not _jobs:
                _restored.close()
