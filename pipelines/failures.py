"""Errors of workers, turned into one error of the caller.

Beam wraps an exception of a worker in tracebacks, more than once, and as text where the worker is
another process; and on the local runner the other workers go on to the end of their work. So
there, a failure is left in a file instead: workers look at it between blocks and wind down, and
`pipelines.run.run` raises what it says. On other runners the exception travels, with
the error inside its text.
"""

from __future__ import annotations

import base64
import contextlib
import json
import logging
import os
import re
import traceback
from dataclasses import dataclass
from typing import TYPE_CHECKING

import grpc

from bpe import errors as bpe_errors
from pipelines import errors
from pipelines.causes import first_cause
from pipelines.errors import ConfigError, InputError, JobError, StoppedError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

_LOGGER = logging.getLogger(__name__)
_MARK = "beam-bpe-error:"
_BUILT_HERE: dict[str, type[JobError]] = {
    kind.__name__: kind
    for kind in vars(errors).values()
    if isinstance(kind, type) and issubclass(kind, JobError)
}
# Errors of the library that mean a wrong setting; all others mean a wrong input.
_SETTINGS = (bpe_errors.PretokenizerError, bpe_errors.SpecialTokenError, bpe_errors.TrainingError)


class WorkerError(Exception):
    """A `JobError` on its way out of a worker; its text holds the error twice.

    Once for whoever reads a log, and once encoded, for `error_in`.
    """

    @classmethod
    def of(cls, error: JobError) -> WorkerError:
        """Pack ``error``."""
        return cls(f"{error} [{_MARK}{_packed(error)}]")


def _packed(error: JobError) -> str:
    """``error`` as text: its class, or the nearest one above it that `_unpacked` knows."""
    kind = next(one.__name__ for one in type(error).__mro__ if one.__name__ in _BUILT_HERE)
    value = {"kind": kind, "message": str(error)}
    return base64.urlsafe_b64encode(json.dumps(value).encode()).decode("ascii")


def _unpacked(text: str) -> JobError | None:
    try:
        value = json.loads(base64.urlsafe_b64decode(text))
        return _BUILT_HERE[value["kind"]](value["message"])
    except (ValueError, KeyError, TypeError):
        return None


def as_job_error(error: BaseException) -> JobError:
    """``error`` as the class that callers of jobs know, with a message of one line."""
    if isinstance(error, JobError):
        return error
    if isinstance(error, bpe_errors.BpeError):
        kind = ConfigError if isinstance(error, _SETTINGS) else InputError
        return kind(str(error))
    if isinstance(error, MemoryError):
        return JobError(
            "out of memory: use fewer `workers`, or a smaller `split_size` (a record of "
            f"gigabytes needs several times its size): {one_line(error)}"
        )
    if isinstance(error, grpc.FutureTimeoutError):
        return _unreached()
    if isinstance(error, grpc.RpcError):
        detail = error.details() if isinstance(error, grpc.Call) else error
        return JobError(
            f"the job server does not answer any more ({one_line(detail)}): the job may go on "
            "there; when it has ended, `resume` finishes what is left"
        )
    return JobError(f"the job failed: {type(error).__name__}: {one_line(error)}")


def is_proxied() -> bool:
    """Return whether gRPC may look for this machine through a proxy."""
    return any(os.environ.get(name) for name in ("grpc_proxy", "https_proxy", "http_proxy"))


def _unreached() -> JobError:
    """The error for a worker that Beam started in this process, and waited for in vain."""
    why = "the machine is overloaded: use fewer `workers`, or try again with `resume`"
    if is_proxied():
        why = "a proxy is set (http_proxy): except this machine from it with no_proxy=localhost"
    return JobError(f"Beam did not reach its own worker on this machine within 60 s: {why}")


def error_in(error: BaseException, logged: Iterable[str] = ()) -> JobError:
    """The error that a worker raised, found in what Beam made of it.

    Args:
        error: what Beam raised.
        logged: errors that were logged before.
    """
    if not isinstance(error, JobError):
        said = [*_texts(error), *logged]
        for text in said:
            for packed in re.findall(re.escape(_MARK) + r"([A-Za-z0-9_=-]+)", text):
                if found := _unpacked(packed):
                    return found
        if type(error) is RuntimeError:
            causes = [cause for text in said if (cause := first_cause(text))]
            if any("FutureTimeoutError" in cause for cause in causes):
                return _unreached()
            if causes:
                return JobError(f"the job failed: {causes[0]}")
    return as_job_error(error)


def _texts(error: BaseException) -> Iterator[str]:
    seen: set[int] = set()
    at: BaseException | None = error
    while at is not None and id(at) not in seen:
        seen.add(id(at))
        yield str(at)
        at = at.__cause__ or at.__context__


def one_line(error: object) -> str:
    """Return the text of an error in one line, shortened."""
    return " ".join(str(error).split())[:2000]


@contextlib.contextmanager
def job_errors() -> Iterator[None]:
    """Raise whatever the block raises as a `JobError`."""
    try:
        yield
    except (JobError, BrokenPipeError):
        raise
    except Exception as error:  # the one place where everything is turned into our classes
        raise error_in(error) from error


@dataclass(frozen=True)
class FailureChannel:
    """The channel by which workers report the error that ends the job.

    Attributes:
        path: a file on this machine that appears with the first failure; None to raise it.
        driver: the process that waits for the job; 0 where it may be on another machine.
    """

    path: Path | None = None
    driver: int = 0

    def stopped(self) -> bool:
        """Return whether the job has failed or ended, so that nobody needs to go on."""
        if self.path is None:
            return False
        if self.path.exists() or not self.path.parent.exists():
            return True
        return self.driver > 0 and not _is_running(self.driver)

    @contextlib.contextmanager
    def reported(self) -> Iterator[None]:
        """Report what the block raises; if it is left in a file, go on after the block."""
        try:
            yield
        except Exception as error:  # an error of any kind must reach the caller as one of ours
            failure = as_job_error(error)
            if self.path is None:
                raise WorkerError.of(failure) from error
            if failure is not error:
                _LOGGER.debug("failure in a worker: %s", traceback.format_exc())
            self.leave(failure)

    def stop(self) -> None:
        """Make workers wind down without an error of their own."""
        self.leave(StoppedError())

    def first(self) -> JobError | None:
        """The error that was left, if any."""
        if self.path is None or not self.path.exists():
            return None
        packed = self.path.read_text(encoding="ascii")
        return _unpacked(packed) or JobError("the job failed: its error cannot be read")

    def leave(self, error: JobError) -> None:
        """Leave the error that ends the job; a no-op where another is there, or nobody looks."""
        if self.path is None:
            return
        # The first one stays; the folder is gone where the job has ended already.
        with (
            contextlib.suppress(FileExistsError, FileNotFoundError),
            self.path.open("x", encoding="ascii") as file,
        ):
            file.write(_packed(error))


def _is_running(process: int) -> bool:
    try:
        os.kill(process, 0)  # no signal, only the question
    except ProcessLookupError:
        return False
    except PermissionError:
        pass
    return True
