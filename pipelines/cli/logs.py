"""Logging of a command: warnings on stderr, one line each, also Beam's."""

from __future__ import annotations

import logging
from itertools import pairwise
from typing import TYPE_CHECKING, TextIO

from pipelines.submission.logs import OWN_HANDLER, shown_stderr

if TYPE_CHECKING:
    from collections.abc import Sequence

    _Handler = logging.StreamHandler[TextIO]
else:
    _Handler = logging.StreamHandler  # generic in Python 3.11 and later only


class _CurrentStderr(_Handler):
    """Writes where stderr is at the moment, so that a progress bar is not torn."""

    @property
    def stream(self) -> TextIO:
        return shown_stderr()

    @stream.setter
    def stream(self, _: TextIO) -> None: ...


LOG_FORMATS = ("text", "json")
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
    """Whether log lines are JSON."""
    return _chosen["format"] == "json"


def log_line(level: str, message: str) -> str:
    """A message of the command itself as a line of the log, without its end."""
    if not is_json():
        return f"bpe: {'' if level == 'INFO' else f'{level.lower()}: '}{message}"
    from pipelines.progress.json_lines import json_line

    return json_line(level, message).rstrip("\n")


def _is_news(record: logging.LogRecord) -> bool:
    """Whether a record says more than the error of the command will.

    Where Beam did not reach its own worker, it logs a failure to close what it never opened.
    """
    error = record.exc_info[1] if record.exc_info else None
    while error is not None:
        if type(error).__name__ == "FutureTimeoutError":
            return False
        error = error.__context__
    return True


def set_up_logging() -> None:
    """Show warnings, not what Beam tells at INFO; call it before Beam is imported.

    Importing Beam configures the root logger if nobody has, in its own format.
    """
    handler = _CurrentStderr()
    handler.set_name(OWN_HANDLER)
    formatter = logging.Formatter("bpe: %(levelname)s: %(message)s")
    if is_json():
        from pipelines.progress.json_lines import JsonFormatter

        formatter = JsonFormatter()
        logging.captureWarnings(capture=True)
    handler.setFormatter(formatter)
    handler.addFilter(_is_news)
    logging.basicConfig(level=logging.WARNING, handlers=[handler], force=True)
    # It warns of each job server that it starts and stops.
    logging.getLogger("apache_beam.utils.subprocess_server").setLevel(logging.ERROR)
