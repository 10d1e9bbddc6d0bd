"""Watch a submitted job, wait for its end, and cancel the job."""

from __future__ import annotations

import contextlib
import threading
import time
from concurrent import futures
from concurrent.futures import Future
from copy import copy
from typing import TYPE_CHECKING, Any

import grpc
from apache_beam.metrics import MetricsFilter
from apache_beam.options.pipeline_options import (
    FlinkRunnerOptions,
    GoogleCloudOptions,
    PortableOptions,
)
from apache_beam.runners.runner import PipelineState

from pipelines.errors import JobError
from pipelines.metrics import NAMESPACE
from pipelines.submission.workers import FLINK_HERE

if TYPE_CHECKING:
    from collections.abc import Callable

    from apache_beam.options.pipeline_options import PipelineOptions

    from pipelines.errors import Interrupted
    from pipelines.interrupts import Interrupts
    from pipelines.submission.workers import Workers

POLL_SECONDS = 1.0
_PAGES = {
    "FlinkRunner": "Flink's web UI, port 8081 of its JobManager",
    "SparkRunner": "Spark's web UI, port 8080 of its master",
    "PrismRunner": "Prism's web UI, port 8074 of its machine",
}
_CANCEL_SECONDS = 60.0
_STARTING_SECONDS = 20.0  # in which a worker reports what it has counted


def job_id(result: Any) -> str:
    """Return the runner's id of the job; empty if the job has no id."""
    id_ = getattr(result, "job_id", None) or getattr(result, "_job_id", None)
    with contextlib.suppress(Exception):  # a method of Dataflow's result, which asks the service
        id_ = id_() if callable(id_) else id_
    return str(id_ or "")


def state_of(result: Any) -> str:
    """Return the state that the runner gives a job; empty if unknown."""
    # A copy is asked: the answer is kept, and where the job has ended meanwhile, an older one would
    # make Beam, which waits for the job in another thread, take it for failed.
    with contextlib.suppress(Exception):  # whatever a runner's client raises: ask again later
        return str(copy(result).state or "")
    return ""


def counters(result: Any) -> dict[str, int]:
    """Return the present values of our counters of a job, by name; empty if unknown."""
    totals: dict[str, int] = {}
    with contextlib.suppress(Exception):  # no metrics, or none now: a job does not fail by it
        metrics = copy(result).metrics()  # a result keeps its first answer for ever
        for one in metrics.query(MetricsFilter().with_namespace(NAMESPACE))["counters"]:
            value = one.committed if one.committed is not None else one.attempted
            name = one.key.metric.name
            totals[name] = totals.get(name, 0) + int(value or 0)
    return totals


def cancel(result: Any, workers: Workers) -> str:
    """Cancel a job on its runner.

    Beam stops serving workers inside this process at the same time. Prism breaks down, with all its
    jobs, where it is about to start such a worker and finds nobody: a job that has counted anything
    has started it.

    Returns:
        The state that the runner gives the job, after a minute at most.

    Raises:
        Exception: whatever the runner's client raises.
    """
    if workers.kind == "loopback":
        _await(lambda: bool(counters(result)) or _is_over(result), _STARTING_SECONDS)
    result.cancel()
    _await(lambda: _is_over(result), _CANCEL_SECONDS)
    return state_of(result)


def _is_over(result: Any) -> bool:
    return bool(PipelineState.is_terminal(state_of(result)))


def _await(condition: Callable[[], bool], seconds: float) -> None:
    until = time.monotonic() + seconds
    while not condition() and time.monotonic() < until:
        time.sleep(0.2)


def where_to_look(result: Any, beam_options: PipelineOptions, workers: Workers) -> str:
    """Return one line on how to watch a submitted job."""
    job = job_id(result)
    if workers.kind == "dataflow":
        cloud = beam_options.view_as(GoogleCloudOptions)
        return (
            f"job {job}: https://console.cloud.google.com/dataflow/jobs/{cloud.region}/{job}"
            f"?project={cloud.project}"
        )
    place = f"job {job} on {workers.runner}"
    endpoint = beam_options.view_as(PortableOptions).job_endpoint
    flink = beam_options.view_as(FlinkRunnerOptions).flink_master
    if workers.runner == "FlinkRunner" and flink not in FLINK_HERE:
        page = flink if flink.startswith("http") else f"http://{flink}"  # as Beam completes it
        return f"{place}: watch it at {page}"
    if endpoint and endpoint != "embed":
        page = _PAGES.get(workers.runner, f"the cluster's web UI ({', '.join(_PAGES.values())})")
        return f"{place}, job server {endpoint}: watch it on {page}"
    if workers.address:
        return f"{place}, master {workers.address}: watch it on {_PAGES[workers.runner]}"
    return f"{place}, which Beam started here for this job, without a web UI"


def wait(result: Any, poll: Callable[[], bool]) -> str | None:
    """Wait for a job in a thread of its own, so that signals and polls have their turn.

    Args:
        result: the result that Beam returned.
        poll: called about once a second, and once at the end; False ends the waiting.

    Returns:
        The last state of the job; None if ``poll`` ended the waiting, or if unknown.

    Raises:
        Exception: whatever Beam raises for a job that failed.
    """
    ended: Future[Any] = Future()

    def finish() -> None:
        try:
            ended.set_result(result.wait_until_finish())
        except Exception as error:  # noqa: BLE001 - raised again where the caller waits
            ended.set_exception(error)
        except BaseException as error:  # noqa: BLE001 - it would end the caller, which waits
            ended.set_exception(JobError(f"the runner ended while it waited: {error!r}"))

    threading.Thread(target=finish, name="bpe-wait", daemon=True).start()
    while not futures.wait([ended], POLL_SECONDS).done:
        if not poll():
            return None
    try:
        end = ended.result()
    except grpc.RpcError as error:
        return _asked_for(result, error, poll)
    poll()
    return None if end is None else str(end)


def _asked_for(result: Any, error: grpc.RpcError, poll: Callable[[], bool]) -> str | None:
    """Ask for the state of a job until the job ends, after the stream of its states broke off."""
    silent = 0
    while not PipelineState.is_terminal(state := state_of(result)):
        silent = 0 if state else silent + 1
        if silent > 5:
            raise error
        time.sleep(POLL_SECONDS)
        if not poll():
            return None
    if state == "FAILED":
        raise RuntimeError("the job failed")
    return state


def cancelled(
    result: Any, interrupted: Interrupts, *, workers: Workers, say: Callable[[str], None]
) -> Interrupted:
    """Cancel a job after a signal, wait for the runner, and return the error with the outcome."""
    job = f"job {job_id(result)} on {workers.runner}"
    say(f"{interrupted.error()}: cancelling {job}")
    try:
        state = cancel(result, workers)
    except KeyboardInterrupt:
        return interrupted.error(f" twice: {job} may go on: cancel it there")
    except Exception as failure:  # noqa: BLE001 - whatever the runner's client raises
        reason = " ".join(str(failure).split())[:300]
        return interrupted.error(f", but {job} could not be cancelled ({reason}): cancel it there")
    fate = {"CANCELLED": "was cancelled", "DONE": "had ended already"}.get(state, "was stopped")
    return interrupted.error(
        f": {job} {fate}: the runner says {state or 'nothing yet'}; start again with `resume`"
    )
