"""What Beam's client of a job server does not offer: counters as they are now, a gentle cancel.

The only use of private names of Beam for submitted jobs. Each is looked for before it is used; a
release without them has Beam's own behaviour: the first answer for ever, the abrupt end.
"""

from __future__ import annotations

import contextlib
import time
from typing import Any

from apache_beam.metrics import MetricsFilter
from apache_beam.runners.runner import PipelineState

_CANCEL_SECONDS = 60.0
OVER = frozenset(
    str(state)
    for state in (
        PipelineState.DONE,
        PipelineState.FAILED,
        PipelineState.CANCELLED,
        PipelineState.UPDATED,
        PipelineState.DRAINED,
    )
)


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
        if hasattr(result, "_metrics"):  # Beam keeps the first answer for ever
            result._metrics = None  # noqa: SLF001 - see above
        for one in result.metrics().query(MetricsFilter().with_namespace(namespace))["counters"]:
            value = one.committed if one.committed is not None else one.attempted
            name = one.key.metric.name
            found[name] = found.get(name, 0) + int(value or 0)
    return found


def cancel(result: Any) -> str:
    """Have the runner end a job, then let go of what serves the job here.

    Beam's own ``cancel`` does both at once, so that workers inside this process are gone when the
    runner wants to tell them. Prism breaks down, with all its jobs, where it is about to start such
    a worker and finds nobody.

    Returns:
        The state that the runner gives the job, after a minute at most.

    Raises:
        Exception: whatever the runner's client raises.
    """
    let_go = getattr(result, "_cleanup", None)
    if let_go is None or not hasattr(result, "_job_service"):  # not a runner behind a job server
        result.cancel()
        return _end_of(result)
    result._cleanup = lambda *_, **__: None  # noqa: SLF001 - see above
    try:
        result.cancel()
        return _end_of(result)
    finally:
        result._cleanup = let_go  # noqa: SLF001 - see above
        with contextlib.suppress(Exception):  # what goes wrong here takes nothing back
            let_go()


def _end_of(result: Any) -> str:
    until = time.monotonic() + _CANCEL_SECONDS
    while (state := state_of(result)) not in OVER and time.monotonic() < until:
        time.sleep(0.2)
    return state
