"""A job and its stages, without Beam: its units, making one, folding what was made.

`make` is the only step that a worker does; `fold` runs once, when all units of the stage are made,
and leaves in the work directory what later stages must know. Stages are small and picklable: what
grows with the corpus is read from files.
"""

from __future__ import annotations

import uuid
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

from pipelines.errors import JobError, OutputError
from pipelines.output.names import MANIFEST
from pipelines.stage.record import Record, finished, write_record

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from typing_extensions import Self

    from pipelines.failures import FailureChannel
    from pipelines.progress import SlotWriter
    from pipelines.settings import OutputSettings
    from pipelines.stage.record import StoredFile


@dataclass(frozen=True, kw_only=True)
class Unit:
    """A piece of work.

    Attributes:
        name: unique in its stage, and the same in every run of the job.
        fingerprint: SHA-256 (hex) of everything that what is made of it depends on.
        number: in the order of its stage.
        bytes: of input, for progress.
        work: what it is, for `Stage.make`; small, and picklable. None where the number says it.
    """

    name: str
    fingerprint: str
    number: int
    bytes: int = 0
    work: Any = None


@dataclass(frozen=True, kw_only=True)
class Made:
    """The result of `Stage.make`: files, and numbers for `Stage.fold`."""

    files: tuple[StoredFile, ...]
    totals: dict[str, Any]


class Stage(Protocol):
    """A stage of a job."""

    @property
    def name(self) -> str:
        """A verb, such as ``measure``: the label of its step."""
        ...

    @property
    def directory(self) -> str:
        """Directory of the files and records of its units; empty if none are written."""
        ...

    def units(self) -> Iterable[Unit]:
        """The units, numbered from 0; asked once, in a worker, when earlier stages are folded."""
        ...

    def make(self, unit: Unit, *, slot: SlotWriter, stopped: Callable[[], bool]) -> Made:
        """Make the files of a unit; a pure function but for these.

        Args:
            unit: one of `units`.
            slot: takes the progress.
            stopped: asked between blocks, whether nobody needs the result any more.

        Raises:
            JobError: it cannot be made; the class says why.
            StoppedError: nobody needs the result any more.
        """
        ...

    def fold(self, records: Sequence[Record]) -> None:
        """Take in the records of all units, in order.

        Raises:
            JobError: they contradict each other; the class says how.
        """
        ...


def make_unit(
    stage: Stage, unit: Unit, *, slot: SlotWriter, stopped: Callable[[], bool]
) -> tuple[Record, bool]:
    """The record of a unit, and whether an earlier run had made it.

    Raises:
        JobError: as `Stage.make`.
    """

    def earlier() -> Record | None:
        named = {"unit": unit.name, "fingerprint": unit.fingerprint}
        return finished(stage.directory, **named) if stage.directory else None

    if (record := earlier()) is not None:
        return record, True
    try:
        made = stage.make(unit, slot=slot, stopped=stopped)
    except OutputError:
        # A job that was abandoned on a cluster may have made this unit meanwhile, ended, and
        # taken our temporary file for one of a writer that was killed.
        if (record := earlier()) is None:
            raise
        return record, True
    record = Record(
        unit=unit.name, fingerprint=unit.fingerprint, files=made.files, totals=made.totals
    )
    if stage.directory:
        write_record(stage.directory, record)
    return record, False


def in_order(name: str, results: Iterable[int | tuple[int, Record]]) -> list[Record]:
    """One record for each unit of a stage, in the order of its units.

    Args:
        name: of the stage.
        results: how many units there are; of each, its number and record. A runner may make a unit
            more than once: it makes the same.

    Raises:
        JobError: a unit has no record.
    """
    units, made = 0, dict[int, Record]()
    for result in results:
        if isinstance(result, int):
            units = result
        else:
            made[result[0]] = result[1]
    if sorted(made) != list(range(units)):
        raise JobError(
            f"{name}: the runner returned the records of {len(made):,} units of {units:,}: run the "
            "job again with `resume`"
        )
    return [made[number] for number in range(units)]


@dataclass(frozen=True, kw_only=True)
class Job:
    """A job: begun, done in stages or by steps of its own, and finished; small, and picklable.

    Attributes:
        output: the directory, and what may be done with what is in it.
        run: the id of this run of the job, once it has one (`started`).
        slots: of the progress, in this process; None where nobody watches.
        name: of the kind of job.
        last_file: the file that makes the output complete; empty where a job writes none.
    """

    output: OutputSettings
    run: str = ""
    slots: str | None = None
    name: ClassVar[str]
    last_file: ClassVar[str] = MANIFEST

    @property
    def directory(self) -> str:
        """The output directory."""
        return self.output.directory

    @property
    def shown(self) -> dict[str, str]:
        """Values that a runner's web UI shows of the job."""
        return {"output": self.directory}

    @property
    def stages(self) -> tuple[Stage, ...]:
        """In order."""
        return ()

    def begin(self) -> bool:
        """Plan the job and prepare its directory, in a worker; False where all is done already.

        Where the directory is of this run, the runner has started the job anew: the plan that is
        there stays, and nothing is listed, refused or removed.

        Raises:
            JobError: the job cannot be done; the class says why.
        """
        return True

    def steps(self, begun: Any, failures: FailureChannel) -> Any:  # noqa: ARG002 - of those that have any
        """Add Beam's own transforms after all stages.

        Args:
            begun: a PCollection of one bool, whether there is work.
            failures: where the job ends, and where errors are reported.

        Returns:
            A PCollection of that bool, when all is done.
        """
        return begun

    def finish(self) -> Any:
        """Remove what only the work needed, when all is done; return what the job yields.

        Raises:
            JobError: something cannot be removed or read.
        """

    def why_ended(self) -> str:
        """Return the reason why the work ended before its total; empty if it did not."""
        return ""

    def started(self) -> Self:
        """The job of one run, with an id."""
        return self if self.run else replace(self, run=uuid.uuid4().hex)

    def after_plan(self) -> Self:
        """The job for the steps after the first, without what only that one needs."""
        return self
