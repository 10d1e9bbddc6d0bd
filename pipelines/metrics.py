"""Counters of Beam's metrics, in the namespace of this package."""

from __future__ import annotations

import contextlib
import threading
from collections import Counter
from typing import TYPE_CHECKING, Any

from apache_beam.metrics import Metrics

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

NAMESPACE = "bpe"
_kept = threading.local()


class _KeptCounter:
    def __init__(self, name: str, numbers: Counter[str]) -> None:
        self._name = name
        self._numbers = numbers

    def inc(self, number: int = 1) -> None:
        self._numbers[self._name] += number


def counter(name: str) -> Any:
    """A counter of Beam's metrics, under the namespace of this package."""
    numbers: Counter[str] | None = getattr(_kept, "numbers", None)
    return Metrics.counter(NAMESPACE, name) if numbers is None else _KeptCounter(name, numbers)


@contextlib.contextmanager
def counters_kept() -> Iterator[Counter[str]]:
    """What this thread adds to counters meanwhile is gathered, and not told to Beam.

    Beam drops what is counted in threads that are not its own: there it is gathered, and counted
    afterwards in one of Beam's (`count_all`).
    """
    _kept.numbers = numbers = Counter[str]()
    try:
        yield numbers
    finally:
        _kept.numbers = None


def count_all(numbers: Mapping[str, int]) -> None:
    """Add to each of these counters."""
    for name, number in numbers.items():
        counter(name).inc(number)
