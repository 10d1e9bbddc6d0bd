"""Settings of hypothesis: no limits of time, since a busy machine is no fault of the code.

``make test-long`` tries eight times as many inputs where a test names no number, and ten times
where it does (`tests.examples`).

``pytest --hypothesis-profile=brief`` is for instrumented builds, which are several times slower.
"""

from __future__ import annotations

import signal

import pytest
from hypothesis import HealthCheck, settings

from tests.shared_data import LONG, shared_test

_LONG_SECONDS = 3600
# Their tests take and wait longest: first, so that no process is left with one in the end.
_FIRST = ("cluster", "append", "faults", "cli", "pipelines")

# A shell that starts the tests in the background lets them ignore Ctrl-C, and what they start too.
signal.signal(signal.SIGINT, signal.default_int_handler)

patient = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("patient", patient, max_examples=200 if LONG else 25)
settings.register_profile("brief", patient, max_examples=10)
settings.load_profile("patient")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Order the folders; give long tests, all of ``make test-long``, more time than the others."""
    items.sort(key=_turn)
    for item in items:
        if (LONG or item.get_closest_marker("long")) and not item.get_closest_marker("timeout"):
            item.add_marker(pytest.mark.timeout(_LONG_SECONDS))


def _turn(item: pytest.Item) -> int:
    folder = item.path.parent.name
    return _FIRST.index(folder) if folder in _FIRST else len(_FIRST)


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """Tell `shared_file` whether the test may use it, before its fixtures are set up."""
    shared_test.set(item.get_closest_marker("shared") is not None)
