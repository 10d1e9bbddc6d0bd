"""Counters of Beam's metrics, in the namespace of this package."""

from __future__ import annotations

from typing import Any

from apache_beam.metrics import Metrics

NAMESPACE = "bpe"


def counter(name: str) -> Any:
    """Return a counter of Beam's metrics, in the namespace of this package."""
    return Metrics.counter(NAMESPACE, name)
