"""Beam's local runner, kept from sending half elements."""

from __future__ import annotations

import threading
from contextlib import contextmanager
from importlib import import_module
from typing import TYPE_CHECKING, Any

from apache_beam.options.pipeline_options import DirectOptions, StandardOptions

from pipelines.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from apache_beam.options.pipeline_options import PipelineOptions

LOCAL = "FnApiRunner"
_HANDLERS = "apache_beam.runners.portability.fn_api_runner.worker_handlers"
_LIMIT = "DATA_BUFFER_TIME_LIMIT_MS"
_lock = threading.Lock()
_jobs = 0  # that run now
_default: Any = None  # the limit, while jobs run


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


@contextmanager
def whole_elements() -> Iterator[None]:
    """Keep Beam's local runner from sending half an element while the block runs a job.

    Once a second a timer sends what has been written so far, also while an element is being
    written: `TimeBasedBufferingClosableOutputStream` does not lock the writer out. What arrives is
    decoded beyond its end: errors, other values, or memory without bound. With no time limit data
    is sent by size, between elements, as on all other runners. Beam has an option for its worker
    threads alone, none for its own side; so its default is replaced while jobs run.
    """
    global _jobs, _default  # noqa: PLW0603 - jobs may run at once; the last one puts it back
    try:
        handlers: Any = import_module(_HANDLERS)
        limit = getattr(handlers, _LIMIT)
    except (ImportError, AttributeError):  # a release of Beam without it
        yield
        return
    with _lock:
        if not _jobs:
            _default = limit
        _jobs += 1
        setattr(handlers, _LIMIT, 0)
    try:
        yield
    finally:
        with _lock:
            _jobs -= 1
            if not _jobs:
                setattr(handlers, _LIMIT, _default)
