"""The log of a submitted job: all of it in a file, the errors at hand, little on the terminal."""

from __future__ import annotations

import contextlib
import io
import logging
import os
import sys
import tempfile
import threading
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

from pipelines.errors import Interrupted
from pipelines.progress.stage import JobLog

if TYPE_CHECKING:
    from collections.abc import Iterator

# Of a handler that a command shows its users; what Beam and its runners say stays off it, since
# the error in the end says it in a line.
OWN_HANDLER = "bpe"
_OURS = ("bpe", "pipelines")
_SOURCES = tuple(f"{Path(__file__).resolve().parents[2] / name}{os.sep}" for name in _OURS)
_ERRORS_KEPT = 200


class _Aside(io.TextIOWrapper):
    """Takes what is printed on stderr while a job runs.

    Attributes:
        shown: what was stderr before.
    """

    shown: TextIO


def shown_stderr() -> TextIO:
    """The stderr that users see, also while what is printed there goes to the log of a job."""
    return sys.stderr.shown if isinstance(sys.stderr, _Aside) else sys.stderr


class FileLog(logging.Handler, JobLog):
    """Writes records to a file, and keeps the texts of errors.

    Attributes:
        path: the file; removed by `close` unless `keep` was called.
        stream: the open file, which can stand in for stderr.
        errors: the texts of the first errors.
    """

    def __init__(self) -> None:
        super().__init__(logging.INFO)
        handle, name = tempfile.mkstemp(prefix="bpe-log-", suffix=".log")
        self.path = Path(name)
        self.errors: list[str] = []
        self._kept = False
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
        self._kept = True
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
        if not self._kept:
            self.path.unlink(missing_ok=True)
        super().close()


class _Shown(logging.Filter):
    """What a handler that was there before shows while a job runs: what it showed before."""

    def __init__(self, level: int, *, ours_only: bool) -> None:
        super().__init__()
        self._level = level
        self._ours_only = ours_only

    def filter(self, record: logging.LogRecord) -> bool:
        ours = record.name.partition(".")[0] in _OURS
        return record.levelno >= self._level and (ours or not self._ours_only)


@contextlib.contextmanager
def job_log() -> Iterator[FileLog]:
    """Log to a file of the job's own while the block runs."""
    root = logging.getLogger()
    level = root.level
    log = FileLog()
    filters = [
        (handler, _Shown(level, ours_only=handler.get_name() == OWN_HANDLER))
        for handler in root.handlers
    ]
    for handler, shown in filters:
        handler.addFilter(shown)
    root.addHandler(log)
    root.setLevel(min(level, logging.INFO))
    commanded = any(handler.get_name() == OWN_HANDLER for handler in root.handlers)
    stderr = sys.stderr
    if commanded:  # workers of this process print tracebacks too, beside what they log
        sys.stderr = log.stream
    try:
        with _own_warnings_logged():
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
        for handler, shown in filters:
            handler.removeFilter(shown)
        log.close()


@contextlib.contextmanager
def _own_warnings_logged() -> Iterator[None]:
    """Log the warnings of this package: what is printed on stderr would be put aside."""
    before = warnings.showwarning

    def show(
        message: Warning | str,
        category: type[Warning],
        filename: str,
        lineno: int,
        file: TextIO | None = None,
        line: str | None = None,
    ) -> None:
        if file is None and filename.startswith(_SOURCES):
            logging.getLogger(_OURS[0]).warning("%s", message)
        else:
            before(message, category, filename, lineno, file, line)

    warnings.showwarning = show
    try:
        yield
    finally:
        if warnings.showwarning is show:
            warnings.showwarning = before
