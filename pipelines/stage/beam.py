"""Run a job as a Beam pipeline: plan, stages, finish, one after the other.

Elements are descriptors of units and their records. The graph holds only the job and its stages, so
that its size does not depend on the number of units.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

import apache_beam as beam

from pipelines.elements import Step, pack, unpack
from pipelines.errors import ConfigError
from pipelines.local_runner import has_one_worker
from pipelines.metrics import add_to_metrics
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
        job: the job.
        failures: the channel for its errors.

    Attributes:
        instead: what takes the elements of a PCollection, which this does not.
    """

    instead: ClassVar[str] = "it takes no PCollection"

    def __init__(self, job: Job, failures: FailureChannel) -> None:
        super().__init__()
        self._job = job
        self._failures = failures

    def display_data(self) -> dict[str, Any]:
        """Return the values that a runner's web UI shows."""
        return dict(self._job.shown)

    def expand(self, begin: beam.pvalue.PBegin) -> beam.PCollection[Any]:
        """Return a PCollection of one element, the result of the job."""
        if not isinstance(begin, beam.pvalue.PBegin):
            name = type(self).__name__
            raise ConfigError(
                f"{name} reads its inputs itself: apply it to the pipeline, p | {name}(...); "
                f"{self.instead}"
            )
        job, failures = self._job.started(), self._failures
        # So that functions of Beam alone open a worker's connections, those of Create: where the
        # worker lacks this package, Flink would wait three minutes for them and not say why.
        start = begin | "Start" >> beam.Create([b""], reshuffle=False)
        started = reshuffled("Connect", start)
        done = started | "Plan" >> beam.ParDo(Step(failures, _begun, job))
        job = job.after_plan()
        for number, stage in enumerate(job.stages):
            last = number == len(job.stages) - 1
            slots = job.slots if last else None
            done = done | stage.name.capitalize() >> _run_stage(stage, failures, last, slots)
        done = job.steps(done, failures)
        # Apart from the last fold: a runner may run that again, and needs what finishing removes.
        return reshuffled("Folded", done) | "Finish" >> beam.ParDo(Step(failures, _finished, job))


@beam.ptransform_fn  # type: ignore[untyped-decorator]  # Beam has no types
def _run_stage(
    begun: Any, stage: Stage, failures: FailureChannel, last: bool, slots: str | None
) -> Any:
    """Make and fold the units of a stage. Input and output are one bool: is there work?"""
    listing = beam.ParDo(Step(failures, _units, stage)).with_output_types(bytes)
    making = beam.ParDo(Step(failures, _make_record, stage, failures, last, slots))
    made = reshuffled("Reshuffle units", begun | "Units" >> listing) | "Make" >> making
    return fold_all(made, failures, _fold, stage)


def fold_all(
    results: Any, failures: FailureChannel, function: Callable[..., object], *arguments: Any
) -> Any:
    """Call a function once, with the complete list of results.

    Args:
        results: a PCollection of at least one packed result (`keyed`). If one is None, there is no
            work, and the function is not called.
        failures: the channel for errors, which ends the job.
        function: called with the list of results and the arguments.
        *arguments: small and picklable values.

    Returns:
        A PCollection of one bool, whether there was work.
    """
    folding = beam.ParDo(Step(failures, _folded, function, *arguments))
    return results | "Wait" >> beam.GroupByKey() | "Fold" >> folding


def keyed(result: bytes) -> tuple[None, bytes]:
    """Return a packed result with the key that `fold_all` expects."""
    return None, result


def reshuffled(label: str, elements: Any) -> Any:
    """Reshuffle elements to all workers; skip the shuffle (30 ms) if there is only one."""
    if has_one_worker(elements.pipeline.options):
        return elements
    return elements | label >> beam.Reshuffle()


def _begun(_: bytes, job: Job) -> list[bool]:
    """Return whether there is work: an earlier run may have done all of it."""
    return [job.begin()]


def _units(work: bool, stage: Stage) -> Iterator[bytes]:
    """Yield the units of a stage and their number, packed; None if there is no work."""
    if not work:
        yield pack(None)
        return
    number = 0
    for unit in stage.units():
        yield pack(unit)
        number += 1
    yield pack(number)


def _make_record(
    element: bytes, stage: Stage, failures: FailureChannel, last: bool, slots: str | None
) -> list[tuple[None, bytes]]:
    unit: Unit | int | None = unpack(element)
    if unit is None or isinstance(unit, int):
        return [keyed(element)]
    slot = SlotWriter(slots, unit.number)
    record, resumed = make_unit(stage, unit, slot=slot, stopped=failures.stopped)
    documents = record.totals.get("documents", 0)
    if resumed:
        slot.keep(documents=documents, bytes=unit.bytes)
    if last and resumed:
        add_to_metrics(units_resumed=1, documents_kept=documents, bytes_kept=unit.bytes)
    elif last:
        add_to_metrics(units_made=1)
    return [keyed(pack((unit.number, record)))]


def _folded(
    element: tuple[None, Iterable[bytes]], function: Callable[..., object], *arguments: Any
) -> list[bool]:
    results = list(map(unpack, element[1]))
    work = all(result is not None for result in results)
    if work:
        function(results, *arguments)
    return [work]


def _fold(results: Iterable[int | tuple[int, Record]], stage: Stage) -> None:
    stage.fold(in_order(stage.name, results))


def _finished(_: bool, job: Job) -> Iterator[Any]:
    yield job.finish()
