"""Waiting for a job on its runner: how far it is, where to look at it, and taking it back."""

from __future__ import annotations

import contextlib
import signal
import socket
import threading
import time
from typing import TYPE_CHECKING, Any, TypeVar

import grpc
from apache_beam.metrics import MetricsFilter
from apache_beam.options.pipeline_options import (
    FlinkRunnerOptions,
    GoogleCloudOptions,
    PortableOptions,
)
from apache_beam.portability.api import beam_job_api_pb2 as api

from pipelines.errors import Interrupted, JobError
from pipelines.submission.workers import FLINK_HERE

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from apache_beam.options.pipeline_options import PipelineOptions

    from pipelines.submission.workers import Workers

Result = TypeVar("Result")
POLL_SECONDS = 1.0
_CANCEL_SECONDS = 60.0
_REACH_SECONDS = 15
# Beam ends the streams that tell it of a job after as long as it waits for the job server to
# answer, five minutes by default, and takes the job for failed.
_STREAM_SECONDS = 365 * 24 * 3600
_OVER = frozenset({"DONE", "FAILED", "CANCELLED", "UPDATED", "DRAINED"})
_PAGES = {
    "FlinkRunner": "Flink's page, port 8081 of its JobManager",
    "SparkRunner": "Spark's page, port 8080 of its master",
    "PrismRunner": "Prism's page, port 8074 of its machine",
}
_WORDS: dict[int, str] = {signal.SIGINT: "interrupted", signal.SIGTERM: "terminated"}


def reach_job_server(made: PipelineOptions, workers: Workers) -> None:
    """See that the job server answers, and let Beam's streams last as long as the job.

    Raises:
        JobError: nothing answers there.
    """
    portable = made.view_as(PortableOptions)
    endpoint = portable.job_endpoint
    given = int(portable.job_server_timeout or 0)
    portable.job_server_timeout = max(given, _STREAM_SECONDS)
    if not endpoint or endpoint == "embed":
        return
    host, _, port = str(endpoint).rpartition(":")
    if not host or not port.isdigit():
        raise JobError(f"--job_endpoint={endpoint} is not HOST:PORT")
    patience = min(given or _REACH_SECONDS, _REACH_SECONDS)
    until = time.monotonic() + patience
    while (error := _refusal(host.strip("[]"), int(port), patience)) is not None:
        if time.monotonic() > until:
            raise JobError(
                f"no job server answers at {endpoint} ({error.strerror or error}): start it, or "
                f"correct --job_endpoint (docs/running.md says how for {workers.runner})"
            ) from error
        time.sleep(0.5)


def _refusal(host: str, port: int, seconds: float) -> OSError | None:
    try:
        socket.create_connection((host, port), timeout=seconds).close()
    except OSError as error:
        return error
    return None


def where_to_look(result: Any, made: PipelineOptions, workers: Workers) -> str:
    """How to watch a job that was submitted, as one line."""
    job = job_id(result)
    if workers.kind == "dataflow":
        cloud = made.view_as(GoogleCloudOptions)
        return (
            f"job {job}: https://console.cloud.google.com/dataflow/jobs/{cloud.region}/{job}"
            f"?project={cloud.project}"
        )
    place = f"job {job} on {workers.runner}"
    endpoint = made.view_as(PortableOptions).job_endpoint
    flink = made.view_as(FlinkRunnerOptions).flink_master
    if workers.runner == "FlinkRunner" and flink not in FLINK_HERE:
        page = flink if flink.startswith("http") else f"http://{flink}"  # as Beam completes it
        return f"{place}: watch it at {page}"
    if endpoint and endpoint != "embed":
        page = _PAGES.get(workers.runner, f"the cluster's own page ({', '.join(_PAGES.values())})")
        return f"{place}, job server {endpoint}: watch it on {page}"
    if workers.address:
        return f"{place}, master {workers.address}: watch it on {_PAGES[workers.runner]}"
    return f"{place}, which Beam started here for this job, without a page"


def job_id(result: Any) -> str:
    """What the runner calls a job; empty where it does not say."""
    found = getattr(result, "job_id", None) or getattr(result, "_job_id", None)
    with contextlib.suppress(Exception):  # a method of Dataflow's result, which asks the service
        found = found() if callable(found) else found
    return str(found or "")


def state_of(result: Any) -> str:
    """The state that the runner gives a job; empty where it does not say."""
    with contextlib.suppress(Exception):  # whatever a runner's client raises: ask again later
        return str(result.state or "")
    return ""


def counters(result: Any, namespace: str) -> dict[str, int]:
    """The counters of a job by name, as they are now; empty where the runner has none."""
    found: dict[str, int] = {}
    with contextlib.suppress(Exception):  # no metrics, or none now: a job does not fail by it
        if hasattr(result, "_metrics"):
            result._metrics = None  # noqa: SLF001 - Beam keeps the first answer for ever
        for one in result.metrics().query(MetricsFilter().with_namespace(namespace))["counters"]:
            value = one.committed if one.committed is not None else one.attempted
            name = one.key.metric.name
            found[name] = found.get(name, 0) + int(value or 0)
    return found


def taken_back(result: Any) -> str:
    """Have the runner end a job, and let go of what serves the job here.

    Beam's own ``cancel`` ends the workers inside this process at once. Prism breaks down, with all
    its jobs, where it is about to start such a worker and finds nobody: they wait for its word.

    Returns:
        The state that the runner gives the job, after a minute at most.

    Raises:
        Exception: whatever the runner's client raises.
    """
    service = getattr(result, "_job_service", None)
    if service is None:  # not a runner behind a job server
        result.cancel()
        return _end_of(result)
    try:
        service.Cancel(api.CancelJobRequest(job_id=job_id(result)))
        return _end_of(result)
    finally:
        with contextlib.suppress(Exception):  # what goes wrong here takes nothing back
            result._cleanup()  # noqa: SLF001 - the second half of Beam's cancel


def _end_of(result: Any) -> str:
    until = time.monotonic() + _CANCEL_SECONDS
    while (state := state_of(result)) not in _OVER and time.monotonic() < until:
        time.sleep(0.2)
    return state


class Waiter:
    """Waits for a job in a thread of its own, so that signals and polls have their turn.

    Args:
        result: what Beam returned.
        poll: called about once a second, and once in the end.
    """

    def __init__(self, result: Any, poll: Callable[[], None]) -> None:
        self._result = result
        self._poll = poll
        self._over = threading.Event()
        self._error: Exception | None = None
        self._state: str | None = None

    def wait(self) -> str | None:
        """The state in which the job ended.

        Raises:
            Exception: whatever Beam raises for a job that failed.
        """
        threading.Thread(target=self._finish, name="bpe-wait", daemon=True).start()
        while not self._over.wait(POLL_SECONDS):
            self._poll()
        if isinstance(self._error, grpc.RpcError):
            self._go_on_by_asking(self._error)
        elif self._error is not None:
            raise self._error
        self._poll()
        return self._state

    def join(self, seconds: float) -> None:
        """Let a job that was taken back end, where it does so within this time."""
        self._over.wait(seconds)

    def _finish(self) -> None:
        try:
            self._state = self._result.wait_until_finish()
        except Exception as error:  # noqa: BLE001 - raised again where the caller waits
            self._error = error
        finally:
            self._over.set()

    def _go_on_by_asking(self, error: grpc.RpcError) -> None:
        """The stream of states broke off: that says nothing about the job."""
        silent = 0
        while (state := state_of(self._result)) not in _OVER:
            silent = 0 if state else silent + 1
            if silent > 5:
                raise error
            time.sleep(POLL_SECONDS)
            self._poll()
        self._state = state
        if state == "FAILED":
            raise RuntimeError("the job failed")


@contextlib.contextmanager
def cancelled_by_signals(name: str, *, say: Callable[[str], None]) -> Iterator[Cancelling]:
    """Let Ctrl-C (SIGINT) and SIGTERM take a submitted job back from its runner.

    The block submits the job through what is yielded, and waits.

    Args:
        name: of the runner.
        say: told what goes on.

    Raises:
        Interrupted: a signal came; the message says what became of the job.
    """
    cancelling = Cancelling(name, say)
    if threading.current_thread() is not threading.main_thread():
        yield cancelling
        return
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    if before[signal.SIGTERM] is signal.SIG_DFL:
        signal.signal(signal.SIGTERM, cancelling.terminated)
    cancelling.interrupt = before[signal.SIGINT]
    try:
        try:
            yield cancelling
        except KeyboardInterrupt as error:
            raise cancelling.cancel(error) from None
    finally:
        for number, handler in before.items():
            if handler is not None:
                signal.signal(number, handler)


class Cancelling:
    """Takes a job back from its runner.

    Attributes:
        interrupt: what SIGINT did before the job was submitted.
    """

    def __init__(self, name: str, say: Callable[[str], None]) -> None:
        self._name = name
        self._say = say
        self._sent = ""
        self._result: Any = None
        self.interrupt: Any = None

    def submit(self, hand_over: Callable[[], Result], *, name: str) -> Result:
        """Call what hands a job over to its runner, and return the result.

        Until it returns, the runner may have the job, and nobody here knows what it calls it. So a
        signal is kept for the moment when the job can be cancelled; a second one is not.

        Beam's job servers that run as children take SIGINT for themselves, and would be gone
        before the job could be cancelled: what was there before them gets it again afterwards.

        Args:
            hand_over: submits the job.
            name: of the job, by which it can be found on its runner.
        """
        self._sent = name
        with self._signals_kept():
            result = hand_over()
            self._result = result
        return result

    @contextlib.contextmanager
    def _signals_kept(self) -> Iterator[None]:
        effects: dict[int, Any] = {}
        if self.interrupt is not None:
            effects[signal.SIGINT] = self.interrupt
        if signal.getsignal(signal.SIGTERM) == self.terminated:
            effects[signal.SIGTERM] = self.terminated
        kept: list[int] = []

        def give_back() -> None:
            for number, effect in effects.items():
                signal.signal(number, effect)

        def keep(number: int, _: object) -> None:
            kept.append(number)
            if len(kept) > 1:
                give_back()
                effects[number](number, None)
            self._say(
                f"{_WORDS[number]} while the job is submitted: it is cancelled once the runner has "
                "it (a second time: this command ends at once, and the job may go on)"
            )

        for number, effect in effects.items():
            if callable(effect):  # a shell may have us ignore it
                signal.signal(number, keep)
        try:
            yield
        finally:
            give_back()
            if len(kept) == 1:
                effects[kept[0]](kept[0], None)

    def terminated(self, *_: object) -> None:
        """SIGTERM arrived."""
        signal.signal(signal.SIGTERM, signal.SIG_DFL)  # a second one ends the process
        raise Interrupted(_WORDS[signal.SIGTERM], exit_status=143)

    def cancel(self, error: KeyboardInterrupt) -> Interrupted:
        """Cancel the job, wait until the runner says so, and say what became of it."""
        word = str(error) or _WORDS[signal.SIGINT]
        status = error.exit_status if isinstance(error, Interrupted) else 130
        if self._result is None:
            if not self._sent:
                return Interrupted(f"{word} before the job was submitted", exit_status=status)
            return Interrupted(
                f"{word} while the job was submitted to {self._name}: it may run there, under the "
                f"name {self._sent}: look for it on the runner's page, and cancel it there",
                exit_status=status,
            )
        job = f"job {job_id(self._result)} on {self._name}"
        self._say(f"{word}: cancelling {job}")
        try:
            state = taken_back(self._result)
        except KeyboardInterrupt:
            return Interrupted(
                f"{word} twice: {job} may go on: cancel it there", exit_status=status
            )
        except Exception as failure:  # noqa: BLE001 - whatever the runner's client raises
            reason = " ".join(str(failure).split())[:300]
            return Interrupted(
                f"{word}, but {job} could not be cancelled ({reason}): cancel it there",
                exit_status=status,
            )
        what = {
            "CANCELLED": f"{job} was cancelled: the runner says CANCELLED",
            "DONE": f"{job} had ended already: the runner says DONE",
        }.get(state, f"{job} was told to stop: the runner says {state or 'nothing yet'}")
        return Interrupted(f"{word}: {what}; start again with `resume`", exit_status=status)
