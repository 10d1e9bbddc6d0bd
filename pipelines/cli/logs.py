"""Logging of a command: warnings on stderr, one line each."""

from __future__ import annotations

import contextlib
import logging
import threading
import warnings
from itertools import pairwise
from typing import TYPE_CHECKING, TextIO

from pipelines.submission.log import OWN_HANDLER, is_aside, shown_stderr

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

_OURS = ("bpe", "pipelines")
_SERVERS = "apache_beam.utils.subprocess_server"
_OLD_NEWS = "apitools not found"  # on import, without Beam's Google Cloud extra
_chosen = {"format": "text"}  # of this process; `main` begins with text


def choose_format(arguments: Sequence[str]) -> None:
    """Take the format of log lines from a command line, also from one that is wrong."""
    asked = "text"
    for one, after in pairwise([*arguments, ""]):
        if one == "--log-format":
            asked = after
        elif one.startswith("--log-format="):
            asked = one.partition("=")[2]
    use_format(asked)


def use_format(name: str) -> None:
    """Write log lines in this format from now on."""
    _chosen["format"] = name


def is_json() -> bool:
    """Return whether log lines are JSON."""
    return _chosen["format"] == "json"


def log_line(level: str, message: str) -> str:
    """Return a message of the command as a line of the log, without the line break."""
    if not is_json():
        return f"bpe: {'' if level == 'INFO' else f'{level.lower()}: '}{message}"
    from pipelines.progress.shown import json_line

    return json_line(level, message).rstrip("\n")


def _is_news(record: logging.LogRecord) -> bool:
    """Return whether a record says more than the command, or its error, does.

    While a job has a log of its own, what others say is there. Where Beam did not reach its own
    worker, it logs a failure to close what it never opened.
    """
    if is_aside() and record.name.partition(".")[0] not in _OURS:
        return False
    error = record.exc_info[1] if record.exc_info else None
    while error is not None:
        if type(error).__name__ == "FutureTimeoutError":
            return False
        error = error.__context__
    return _OLD_NEWS not in record.getMessage()


@contextlib.contextmanager
def put_back() -> Iterator[None]:
    """Leave logging, warnings and uncaught exceptions of threads as they were before the block.

    Of a block that fails, threads of Beam may say more than its error until the process ends: what
    `job_log` did about that stays.
    """
    root, served = logging.getLogger(), logging.getLogger(_SERVERS)
    handlers, levels = root.handlers[:], (root.level, served.level)
    shown, hook = warnings.showwarning, threading.excepthook
    try:
        yield
        threading.excepthook = hook
    finally:
        logging.captureWarnings(capture=False)
        warnings.showwarning = shown
        root.handlers[:] = handlers
        root.setLevel(levels[0])
        served.setLevel(levels[1])


def set_up_logging() -> None:
    """Show warnings, not Beam's messages of INFO; call it before Beam is imported.

    Importing Beam configures the root logger if nobody has, in its own format.
    """
    handler = _CurrentStderr()
    handler.set_name(OWN_HANDLER)
    formatter = logging.Formatter("bpe: %(levelname)s: %(message)s")
    if is_json():
        from pipelines.progress.shown import JsonFormatter

        formatter = JsonFormatter()
        logging.captureWarnings(capture=True)
    handler.setFormatter(formatter)
    handler.setLevel(logging.WARNING)
    handler.addFilter(_is_news)
    logging.basicConfig(level=logging.INFO, handlers=[handler], force=True)  # for logs of jobs
    # It warns of each job server that it starts and stops.
    logging.getLogger(_SERVERS).setLevel(logging.ERROR)


class _CurrentStderr(logging.StreamHandler):  # type: ignore[type-arg]  # only since Python 3.11
    """Writes where stderr is at the moment, so that a progress bar is not torn."""

    @property
    def stream(self) -> TextIO:
        return shown_stderr()

    @stream.setter
    def stream(self, _: TextIO) -> None: ...
