"""Errors of jobs; the command line turns each into one sentence and an exit status."""

from __future__ import annotations

from typing import ClassVar


class JobError(Exception):
    """Base of the errors of ``pipelines``: the job failed (exit status 1).

    A setting to change is between backticks, by the name of its argument: `` `overwrite` ``.
    The command line shows it as the option ``--overwrite``.
    """

    exit_status: ClassVar[int] = 1


class ConfigError(JobError, ValueError):
    """The command line or the configuration is wrong (exit status 2)."""

    exit_status: ClassVar[int] = 2


class InputError(JobError):
    """An input that is missing, empty, truncated or not of the stated format."""


class RecordError(InputError):
    """One bad record; names the file, the place in it, the reason and the remedy."""


class OutputError(JobError):
    """An output directory that cannot be used or written."""


class VerificationError(JobError):
    """An output that does not agree with its manifest or its input."""


class StoppedError(JobError):
    """The job winds down: it was stopped, or another worker has failed."""

    def __init__(self, message: str = "the job was stopped") -> None:
        super().__init__(message)


class Interrupted(KeyboardInterrupt):
    """A signal ended the job; the message says what became of it on its runner.

    Attributes:
        exit_status: as shells report the signal: 128 and its number.
    """

    def __init__(self, message: str, *, exit_status: int = 130) -> None:
        super().__init__(message)
        self.exit_status = exit_status
