"""Pipelines of the tests, on Beam's local runner in both of its modes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import apache_beam as beam
import pytest
from apache_beam.options.pipeline_options import PipelineOptions, StandardOptions
from apache_beam.testing import util
from apache_beam.transforms.window import TimestampedValue

from pipelines.errors import RecordError

if TYPE_CHECKING:
    from collections.abc import Callable

# In the short form some tests have a variant with threads, the others have none.
MODES = ("in_memory", pytest.param("multi_threading", marks=pytest.mark.long))
both_modes = pytest.mark.parametrize("mode", MODES)

# What `assert_that` collects: workers run in this process.
_collected: list[list[Any]] = []


class CheckedPipeline(beam.Pipeline):  # type: ignore[misc]  # Beam has no types
    """A pipeline whose workers run in this process; `assert_that` checks when it has run."""

    def __init__(self, runner: str, *flags: str) -> None:
        super().__init__(runner=runner, options=PipelineOptions(flags))
        self.checks: list[Callable[[], None]] = []

    def run(self, *arguments: Any) -> Any:
        """Run it to its end, then check."""
        result = super().run(*arguments)
        result.wait_until_finish()
        for check in self.checks:
            check()
        return result


def pipeline(mode: str = "in_memory") -> beam.Pipeline:
    """A pipeline; two workers where the mode has threads."""
    workers = 1 if mode == "in_memory" else 2
    flags = (f"--direct_running_mode={mode}", f"--direct_num_workers={workers}")
    return CheckedPipeline("FnApiRunner", *flags)


def streaming_pipeline() -> beam.Pipeline:
    """A pipeline of the one runner in this process that fires windows of a stream."""
    return CheckedPipeline("BundleBasedDirectRunner", "--streaming", "--allow_unsafe_triggers")


def assert_that(values: Any, matcher: Callable[[list[Any]], Any], label: str = "assert") -> None:
    """Beam's ``assert_that``, which takes longer than most pipelines that it checks.

    In a pipeline of this process it only collects the elements, once a coder has written and read
    them.
    """
    if not isinstance(values.pipeline, CheckedPipeline):
        util.assert_that(values, matcher, label)
        return
    number = len(_collected)
    _collected.append([])
    # Of a stream, grouping would drop what is late.
    if not values.pipeline.options.view_as(StandardOptions).streaming:
        values |= f"Code {label}" >> beam.Reshuffle()
    _ = values | f"Collect {label}" >> beam.Map(_collect, number)
    values.pipeline.checks.append(lambda: matcher(_collected[number]))


def _collect(value: Any, number: int) -> None:
    _collected[number].append(value)


def at_times(*elements: tuple[Any, float]) -> beam.PTransform:
    """Elements, each at a time in seconds."""
    return beam.Create([TimestampedValue(value, time) for value, time in elements])


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
