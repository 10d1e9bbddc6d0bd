"""Pipelines of the tests, on Beam's local runner in both of its modes."""

from __future__ import annotations

from typing import Any

import apache_beam as beam
import pytest
from apache_beam.options.pipeline_options import PipelineOptions
from apache_beam.testing.test_stream import TestStream
from apache_beam.transforms.window import TimestampedValue

from pipelines.errors import RecordError

MODES = ("in_memory", "multi_threading")
both_modes = pytest.mark.parametrize("mode", MODES)


def pipeline(mode: str = "in_memory") -> beam.Pipeline:
    """A pipeline; two workers where the mode has threads."""
    workers = 1 if mode == "in_memory" else 2
    flags = [f"--direct_running_mode={mode}", f"--direct_num_workers={workers}"]
    return beam.Pipeline(runner="FnApiRunner", options=PipelineOptions(flags))


def streaming_pipeline() -> beam.Pipeline:
    """A pipeline of the one runner in this process that fires windows of a stream."""
    options = PipelineOptions(["--streaming", "--allow_unsafe_triggers"])
    return beam.Pipeline(runner="BundleBasedDirectRunner", options=options)


def at_times(*elements: tuple[Any, float]) -> beam.PTransform:
    """Elements, each at a time in seconds."""
    return beam.Create([TimestampedValue(value, time) for value, time in elements])


def stream(*elements: tuple[Any, float]) -> TestStream:
    """The same as an unbounded PCollection, whose watermark follows each."""
    made = TestStream()
    for value, time in elements:
        made = made.add_elements([TimestampedValue(value, time)]).advance_watermark_to(time)
    return made.advance_watermark_to_infinity()


def windowed(values: Any, *, label: str = "Windows") -> Any:
    """(value, start of its window, its time) of each element, in seconds."""
    return values | label >> beam.Map(
        lambda value, window=beam.DoFn.WindowParam, time=beam.DoFn.TimestampParam: (
            value,
            float(window.start),
            float(time),
        )
    )


def reason_of(bad: Any) -> str:
    """The error of a bad element, as ``with_exception_handling`` gives it, to its colon."""
    kind, shown, trace = bad[1]
    assert kind is RecordError
    assert trace[-1].startswith("pipelines.errors.RecordError: ")
    reason: str = trace[-1].removeprefix("pipelines.errors.RecordError: ").removesuffix("\n")
    assert shown == repr(kind(reason))
    return reason.partition(":")[0]
