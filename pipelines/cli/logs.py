"""Logging of a command: warnings on stderr, one line each; of a submitted job, all in a file."""

from __future__ import annotations

import contextlib
import io
import logging
import os
import sys
import tempfile
import threading
import warnings
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

from pipelines.errors import Interrupted
from pipelines.progress import JobLog

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    _StreamHandler = logging.StreamHandler[TextIO]
else:
    _StreamHandler = logging.StreamHandler  # generic in Python 3.11 and later only

# Of the handler that a command shows its users; what Beam and its runners say stays off it, since
# the error in the end says it in a line.
OWN_HANDLER = "bpe"
_OURS = ("bpe", "pipelines")
_SERVERS = "apache_beam.utils.subprocess_server"
_OLD_NEWS = "apitools not found"  # on import, without Beam's Google Cloud extra
_ERRORS_KEPT = 200
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
    if isinstance(sys.stderr, _Aside) and record.name.partition(".")[0] not in _OURS:
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
    handler.addFilter(_is_news)
    logging.basicConfig(level=logging.WARNING, handlers=[handler], force=True)
    # It warns of each job server that it starts and stops.
    logging.getLogger(_SERVERS).setLevel(logging.ERROR)


class _CurrentStderr(_StreamHandler):
    """Writes where stderr is at the moment, so that a progress bar is not torn."""

    @property
    def stream(self) -> TextIO:
        return shown_stderr()

    @stream.setter
    def stream(self, _: TextIO) -> None: ...


class _Aside(io.TextIOWrapper):
    """A stream that replaces stderr while a job runs.

    Attributes:
        shown: what was stderr before.
    """

    shown: TextIO


def shown_stderr() -> TextIO:
    """Return the stderr that users see, even if prints go to the log of a job."""
    return sys.stderr.shown if isinstance(sys.stderr, _Aside) else sys.stderr


class FileLog(logging.Handler, JobLog):
    """Writes records to a file, and keeps the texts of errors.

    Attributes:
        path: the file; removed by `close` unless `keep` was called.
        stream: the open file, which can replace stderr.
        errors: the texts of the first errors.
    """

    def __init__(self) -> None:
        super().__init__(logging.INFO)
        handle, name = tempfile.mkstemp(prefix="bpe-log-", suffix=".log")
        self.path = Path(name)
        self.errors: list[str] = []
        self._stays = False
        self.stream = _Aside(os.fdopen(handle, "wb"), "utf-8", "backslashreplace")
        self.stream.shown = shown_stderr()
        self.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(name)s: %(message)s"))

    def emit(self, record: logging.LogRecord) -> None:
        """Write a record; a full disk is no reason for a job to fail."""
        with contextlib.suppress(OSError, ValueError):
            text = self.format(record)
            self.stream.write(f"{text}\n")
            if record.levelno >= logging.ERROR and len(self.errors) < _ERRORS_KEPT:
                self.errors.append(text)

    def keep(self) -> str:
        """Let the file stay; returns its path."""
        self._stays = True
        self.flush()
        return str(self.path)

    def flush(self) -> None:
        """Write what waits in memory."""
        with contextlib.suppress(OSError, ValueError):
            self.stream.flush()

    def close(self) -> None:
        """Close the file, and remove it unless it is to stay."""
        with contextlib.suppress(OSError):
            self.stream.close()
        if not self._stays:
            self.path.unlink(missing_ok=True)
        super().close()


@contextlib.contextmanager
def job_log() -> Iterator[FileLog]:
    """Log to a file of the job's own while the block runs."""
    root = logging.getLogger()
    level, levels = root.level, [(handler, handler.level) for handler in root.handlers]
    log = FileLog()
    for handler, own in levels:  # they show the same records as before
        handler.setLevel(max(own, level))
    root.addHandler(log)
    root.setLevel(min(level, logging.INFO))
    commanded = any(handler.get_name() == OWN_HANDLER for handler in root.handlers)
    stderr = sys.stderr
    if commanded:  # workers of this process print the tracebacks that they log, too
        sys.stderr = log.stream
    try:
        yield log
    except BaseException as error:
        # Beam's threads lose their connections one after the other, and say so until the process
        # ends; where a signal ended the job, they may still work on what was taken from them.
        if commanded:
            threading.excepthook = lambda _: None
        if commanded and isinstance(error, Interrupted):
            sys.stderr = Path(os.devnull).open("w", encoding="utf-8")  # noqa: SIM115 - until then
        raise
    finally:
        if sys.stderr is log.stream:
            sys.stderr = stderr
        root.setLevel(level)
        root.removeHandler(log)
        for handler, own in levels:
            handler.setLevel(own)
        log.close()
