"""A job as a pipeline: planned, done, finished, each step waiting for the one before.

Elements are descriptors of units and their records. The graph has the same size for any number of
units: nothing but the job and its stages is in it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

import apache_beam as beam

from pipelines.elements import Step, pack, unpack
from pipelines.errors import ConfigError
from pipelines.local_runner import has_one_worker
from pipelines.metrics import counter
from pipelines.progress import SlotWriter
from pipelines.stage.stage import in_order, make_unit

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from pipelines.failures import FailureChannel
    from pipelines.stage.record import Record
    from pipelines.stage.stage import Job, Stage, Unit


class RunJob(beam.PTransform):  # type: ignore[misc]  # Beam has no types
    """A job, for ``p | ...``: plan, make and fold each stage, do its own steps, finish.

    Args:
        job: what is done.
        failures: where its errors are reported.

    Attributes:
        instead: what takes the elements of a PCollection, which this does not.
    """

    instead: ClassVar[str] = "it takes no PCollection"

    def __init__(self, job: Job, failures: FailureChannel) -> None:
        super().__init__()
        self._job = job
        self._failures = failures

    def display_data(self) -> dict[str, Any]:
        """Values that a runner's web UI shows."""
        return dict(self._job.shown)

    def expand(self, begin: beam.pvalue.PBegin) -> beam.PCollection[Any]:
        """Return a PCollection of one: what the job yields."""
        if not isinstance(begin, beam.pvalue.PBegin):
            name = type(self).__name__
            raise ConfigError(
                f"{name} reads its inputs itself: apply it to the pipeline, p | {name}(...); "
                f"{self.instead}"
            )
        job, failures = self._job.started(), self._failures
        start = begin | "Start" >> beam.Create([None], reshuffle=False)
        # So that Beam's own functions alone open a worker's connections: where the worker lacks
        # this package, Flink would wait three minutes for them and not say why.
        planned = dealt("Connect", start) | "Plan" >> beam.ParDo(
            Step(failures, _planned, job)
        ).with_outputs("complete", main="begun")
        ready = planned.begun
        job = job.after_plan()
        for number, stage in enumerate(job.stages):
            last = number == len(job.stages) - 1
            path = job.slots_path if last else None
            run = _RunStage(stage, failures, last=last, slots_path=path)
            ready = ready | f"{stage.name.capitalize()}" >> run
        done = (job.steps(ready, failures), planned.complete) | "Done" >> beam.Flatten()
        # Apart from the last fold: a runner may run that again, and needs what finishing removes.
        return dealt("Folded", done) | "Finish" >> beam.ParDo(Step(failures, _finished, job))


class _RunStage(beam.PTransform):  # type: ignore[misc]  # Beam has no types
    """Yields one None when all units of a stage are made and folded."""

    def __init__(
        self, stage: Stage, failures: FailureChannel, *, last: bool, slots_path: str | None
    ) -> None:
        super().__init__()
        self._stage = stage
        self._failures = failures
        self._last = last
        self._slots_path = slots_path

    def expand(self, ready: beam.PCollection[None]) -> beam.PCollection[None]:
        stage, failures = self._stage, self._failures
        planned = ready | "Units" >> beam.ParDo(Step(failures, _units, stage)).with_outputs(
            "number", main="units"
        )
        made = dealt("Deal", planned.units) | "Make" >> beam.ParDo(
            Step(failures, _make_record, stage, failures, self._last, self._slots_path)
        ).with_output_types(bytes)
        results = (made, planned.number) | "Results" >> beam.Flatten()
        return fold_all(ready, results, failures, _fold, stage)


def fold_all(
    begun: Any,
    results: Any,
    failures: FailureChannel,
    function: Callable[..., object],
    *arguments: Any,
) -> Any:
    """Call a function once with all results, when there are no more; of none, too.

    Args:
        begun: a PCollection of one None.
        results: a PCollection of packed results.
        failures: where the job ends, and where errors are reported.
        function: given an iterator of the results, and the arguments.
        *arguments: small, and picklable.

    Returns:
        A PCollection of one None.
    """
    token = begun | "Begun" >> beam.Map(_no_result).with_output_types(bytes)
    return (
        (token, results)
        | "Together" >> beam.Flatten()
        | "Gather" >> beam.Map(_keyed)
        | "Wait" >> beam.GroupByKey()
        | "Fold" >> beam.ParDo(Step(failures, _folded, function, *arguments))
    )


def _no_result(_: None) -> bytes:
    return b""


def _keyed(result: bytes) -> tuple[None, bytes]:
    return None, result


def dealt(label: str, elements: Any) -> Any:
    """Deal elements to all workers; where there is one, they stay: a shuffle takes 30 ms."""
    if has_one_worker(elements.pipeline.options):
        return elements
    return elements | label >> beam.Reshuffle()


def _planned(_: None, job: Job) -> Iterator[Any]:
    """One None where there is work, as ``complete`` where an earlier run has done all of it."""
    yield None if job.begin() else beam.pvalue.TaggedOutput("complete", None)


def _units(_: None, stage: Stage) -> Iterator[Any]:
    """The units of a stage, and how many they are."""
    number = 0
    for unit in stage.units():
        yield pack(unit)
        number += 1
    yield beam.pvalue.TaggedOutput("number", pack(number))


def _make_record(
    element: bytes, stage: Stage, failures: FailureChannel, last: bool, slots_path: str | None
) -> Iterator[bytes]:
    unit: Unit = unpack(element)
    with SlotWriter(slots_path, unit.number) as slot:
        record, resumed = make_unit(stage, unit, slot=slot, stopped=failures.stopped)
        if resumed:
            slot.keep(documents=record.totals.get("documents", 0), bytes=unit.bytes)
    if last:
        counter("units_resumed" if resumed else "units_made").inc()
    if last and resumed:
        counter("documents_kept").inc(record.totals.get("documents", 0))
        counter("bytes_kept").inc(unit.bytes)
    yield pack((unit.number, record))


def _folded(
    element: tuple[None, Iterable[bytes]], function: Callable[..., object], *arguments: Any
) -> Iterator[None]:
    function(map(unpack, filter(None, element[1])), *arguments)
    yield None


def _fold(results: Iterable[int | tuple[int, Record]], stage: Stage) -> None:
    stage.fold(in_order(stage.name, results))


def _finished(_: None, job: Job) -> Iterator[Any]:
    yield job.finish()
