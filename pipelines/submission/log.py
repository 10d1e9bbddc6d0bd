"""The log of a job that runs elsewhere, in a file of its own."""

from __future__ import annotations

import contextlib
import logging
import os
import sys
import tempfile
import threading
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

from pipelines.errors import Interrupted

if TYPE_CHECKING:
    from collections.abc import Iterator

# Of the handler that a command shows its users; what Beam and its runners say stays off it, since
# the error in the end says it in a line.
OWN_HANDLER = "bpe"
_ERRORS_KEPT = 200


class FileLog(logging.FileHandler):
    """Writes records to a temporary file, and keeps the texts of errors.

    Attributes:
        path: the file; removed by `close` unless `keep` was called.
        texts: the first errors, which may say more than Beam's exception.
    """

    def __init__(self) -> None:
        handle, self.path = tempfile.mkstemp(prefix="bpe-log-", suffix=".log")
        os.close(handle)
        super().__init__(self.path, "w", encoding="utf-8", errors="backslashreplace")
        self.texts: list[str] = []
        self._stays = False
        self.setLevel(logging.INFO)
        self.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(name)s: %(message)s"))

    def emit(self, record: logging.LogRecord) -> None:
        """Write a record."""
        if record.levelno >= logging.ERROR and len(self.texts) < _ERRORS_KEPT:
            self.texts.append(self.format(record))
        super().emit(record)

    def handleError(self, record: logging.LogRecord) -> None:  # noqa: N802 - of logging
        """Do nothing: a full disk is no reason for a job to fail."""

    def keep(self) -> str:
        """Let the file stay; return where it is, in parentheses, for the end of a message."""
        self._stays = True
        return f" (full log: {self.path})"

    def close(self) -> None:
        """Close the file, and remove it unless it is to stay."""
        with contextlib.suppress(OSError):
            super().close()
        if not self._stays:
            Path(self.path).unlink(missing_ok=True)


_shown: list[TextIO] = []  # the stderr of users, while prints go to the log of a job


def shown_stderr() -> TextIO:
    """Return the stderr that users see, even if prints go to the log of a job."""
    return _shown[0] if _shown else sys.stderr


def is_aside() -> bool:
    """Return whether prints go to the log of a job."""
    return bool(_shown)


@contextlib.contextmanager
def job_log() -> Iterator[FileLog]:
    """Log to a file of the job's own while the block runs."""
    root, log = logging.getLogger(), FileLog()
    root.addHandler(log)
    commanded = any(handler.get_name() == OWN_HANDLER for handler in root.handlers)
    if commanded:  # workers of this process print the tracebacks that they log, too
        _shown.append(sys.stderr)
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
            sys.stderr = _shown[0]
        _shown.clear()
        root.removeHandler(log)
        log.close()
