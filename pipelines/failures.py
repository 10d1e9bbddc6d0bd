"""Turn errors of workers into one error of the caller.

Beam wraps an exception of a worker in tracebacks, more than once, and as text if the worker is
another process. On the local runner, the other workers would also go on to the end of their work.
So on the local runner, whose workers are threads, a worker adds its error to a list: the other
workers look at the list between blocks and wind down, and `pipelines.run.run` raises the error. On
other runners the exception itself reaches the caller, with the error encoded in its text.
"""

from __future__ import annotations

import base64
import contextlib
import logging
import os
import re
import traceback
import uuid
from dataclasses import dataclass
from typing import TYPE_CHECKING

import grpc

from bpe import errors as bpe_errors
from pipelines import errors
from pipelines.causes import first_cause
from pipelines.errors import ConfigError, InputError, JobError, StoppedError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from typing_extensions import Self

_LOGGER = logging.getLogger(__name__)
_MARK = "beam-bpe-error:"
_PACKED = re.compile(rf"{_MARK}(\w+):([A-Za-z0-9_=-]+)")
_KINDS: dict[str, type[JobError]] = {
    kind.__name__: kind
    for kind in vars(errors).values()
    if isinstance(kind, type) and issubclass(kind, JobError)
}
# Errors of the library that mean a wrong setting; all others mean a wrong input.
_SETTINGS = (bpe_errors.PretokenizerError, bpe_errors.SpecialTokenError, bpe_errors.TrainingError)


class WorkerError(Exception):
    """A `JobError` that leaves a worker; the text holds the error twice.

    The first copy is for readers of logs; the second is encoded, for `error_in`.
    """

    @classmethod
    def of(cls, error: JobError) -> WorkerError:
        """Return a `WorkerError` for ``error``, with its class or the nearest base in `_KINDS`."""
        kind = next(one.__name__ for one in type(error).__mro__ if one.__name__ in _KINDS)
        message = base64.urlsafe_b64encode(str(error).encode("utf-8", "surrogatepass"))
        return cls(f"{error} [{_MARK}{kind}:{message.decode()}]")


def _unpacked(text: str) -> JobError | None:
    """Return the error of the first `WorkerError` in a text; None if there is none."""
    for kind, message in _PACKED.findall(text):
        with contextlib.suppress(KeyError, ValueError):
            return _KINDS[kind](base64.urlsafe_b64decode(message).decode("utf-8", "surrogatepass"))
    return None


def as_job_error(error: BaseException) -> JobError:
    """Return ``error`` as a `JobError`, the class of error that callers of jobs know."""
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
    """Return the error for a worker of this process that Beam started but could not reach."""
    why = "the machine is overloaded: use fewer `workers`, or try again with `resume`"
    if is_proxied():
        why = "a proxy is set (http_proxy): except this machine from it with no_proxy=localhost"
    return JobError(f"Beam did not reach its own worker on this machine within 60 s: {why}")


def error_in(error: BaseException, logged: Iterable[str] = ()) -> JobError:
    """Return the error that a worker raised, found inside the exception that Beam raised.

    Args:
        error: the exception that Beam raised.
        logged: texts of errors that were logged before.
    """
    if not isinstance(error, JobError):
        said = [*_texts(error), *logged]
        for text in said:
            if found := _unpacked(text):
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
    """Raise an exception of the block as a `JobError`; a BrokenPipeError stays as it is."""
    try:
        yield
    except (JobError, BrokenPipeError):
        raise
    except Exception as error:  # the one place where everything is turned into our classes
        raise error_in(error) from error


# Of the jobs that run in this process, by their channels: the errors of their workers.
_ERRORS: dict[str, list[JobError]] = {}


@dataclass(frozen=True)
class FailureChannel:
    """The channel by which workers report the error that ends the job.

    Attributes:
        job: the name of the job in its process; empty if workers raise their errors.
        process: the id of the process of the job and its workers.
    """

    job: str = ""
    process: int = 0

    @classmethod
    @contextlib.contextmanager
    def here(cls) -> Iterator[Self]:
        """Open the channel of a job whose workers are threads of this process."""
        channel = cls(uuid.uuid4().hex, os.getpid())
        _ERRORS[channel.job] = []
        try:
            yield channel
        finally:
            del _ERRORS[channel.job]

    def stopped(self) -> bool:
        """Return whether the job has failed or ended, so that workers need not go on."""
        return self.process == os.getpid() and _ERRORS.get(self.job) != []

    @contextlib.contextmanager
    def reported(self) -> Iterator[None]:
        """Report an error of the block; if the job is in this process, go on after the block."""
        try:
            yield
        except Exception as error:  # an error of any kind must reach the caller as one of ours
            failure = as_job_error(error)
            if self.process != os.getpid():
                raise WorkerError.of(failure) from error
            if failure is not error:
                _LOGGER.debug("failure in a worker: %s", traceback.format_exc())
            self._report(failure)

    def stop(self) -> None:
        """Make workers wind down, by reporting a `StoppedError`."""
        self._report(StoppedError())

    def first(self) -> JobError | None:
        """Return the first reported error; None if there is no error."""
        return next(iter(_ERRORS.get(self.job, [])), None)

    def _report(self, error: JobError) -> None:
        if self.job in _ERRORS:  # the job may have ended
            _ERRORS[self.job].append(error)
