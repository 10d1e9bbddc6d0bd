"""Counters of Beam's metrics, in the namespace of this package."""

from __future__ import annotations

from apache_beam.metrics import Metrics

NAMESPACE = "bpe"


def add_to_metrics(**numbers: int) -> None:
    """Add numbers to the counters of their names, in this package's namespace of Beam's metrics."""
    for name, number in numbers.items():
        Metrics.counter(NAMESPACE, name).inc(number)
