"""Jobs, stages and units, and the making of one unit; without Beam.

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
    from collections.abc import Callable, Iterable, Mapping, Sequence

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
        fingerprint: SHA-256 (hex) of everything that the files of the unit depend on.
        number: its index in the order of the stage.
        bytes: the bytes of its input, for progress.
        work: the description of the work for `Stage.make`, small and picklable; None if the number
            suffices.
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
    totals: Mapping[str, Any]


class Stage(Protocol):
    """A stage of a job."""

    @property
    def name(self) -> str:
        """Return a verb, such as ``measure``: the label of its step."""
        ...

    @property
    def directory(self) -> str:
        """Directory of the files and records of its units; empty if none are written."""
        ...

    def units(self) -> Iterable[Unit]:
        """Return the units, numbered from 0; called once, in a worker, after earlier stages."""
        ...

    def make(self, unit: Unit, *, slot: SlotWriter, stopped: Callable[[], bool]) -> Made:
        """Make the files of a unit, with no other effect.

        Args:
            unit: one of `units`.
            slot: receives the progress.
            stopped: called between blocks; returns whether the result is needed no more.

        Raises:
            JobError: the unit cannot be made; the class says why.
            StoppedError: the result is needed no more.
        """
        ...

    def fold(self, records: Sequence[Record]) -> None:
        """Process the records of all units, in order.

        Raises:
            JobError: the records contradict each other; the class says how.
        """
        ...


def make_unit(
    stage: Stage, unit: Unit, *, slot: SlotWriter, stopped: Callable[[], bool]
) -> tuple[Record, bool]:
    """Make a unit unless it is finished; return its record, and whether an earlier run made it.

    Raises:
        JobError: as for `Stage.make`.
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
    record = Record(unit=unit.name, fingerprint=unit.fingerprint, **vars(made))
    if stage.directory:
        write_record(stage.directory, record)
    return record, False


def in_order(name: str, results: Iterable[int | tuple[int, Record]]) -> list[Record]:
    """Return one record for each unit of a stage, in the order of the units.

    Args:
        name: the name of the stage.
        results: the number of units, and the number and record of each. A runner may make a unit
            more than once; the records are equal then.

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
    """A job: `begin`, its stages, its own `steps`, `finish`; small and picklable.

    Attributes:
        output: the directory, and whether to overwrite, resume or append.
        run: the id of this run of the job, once it has one (`started`).
        slots: the slots of the progress in this process; None if nobody watches.
        name: the name of the kind of job.
        last_file: the file that makes the output complete; empty if a job writes none.
    """

    output: OutputSettings
    run: str = ""
    slots: str | None = None
    name: ClassVar[str]
    last_file: ClassVar[str] = MANIFEST

    @property
    def directory(self) -> str:
        """Return the output directory."""
        return self.output.directory

    @property
    def shown(self) -> dict[str, str]:
        """Return the values that a runner's web UI shows for the job."""
        return {"output": self.directory}

    @property
    def stages(self) -> tuple[Stage, ...]:
        """Return the stages, in order."""
        return ()

    def begin(self) -> bool:
        """Plan the job and prepare its directory, in a worker; return False if all is done already.

        If the directory has the plan of this run, the runner has started the job anew: the plan
        stays, and nothing is listed, refused or removed.

        Raises:
            JobError: the job cannot be done; the class says why.
        """
        return True

    def steps(self, begun: Any, failures: FailureChannel) -> Any:  # noqa: ARG002 - of those that have any
        """Add Beam's own transforms after all stages.

        Args:
            begun: a PCollection of one bool, whether there is work.
            failures: the channel for errors, which ends the job.

        Returns:
            A PCollection of the same bool, when all steps are done.
        """
        return begun

    def finish(self) -> Any:
        """Remove temporary files after the last step; return the result of the job.

        Raises:
            JobError: a file cannot be removed or read.
        """

    def started(self) -> Self:
        """Return the job with the id of a run."""
        return self if self.run else replace(self, run=uuid.uuid4().hex)

    def after_plan(self) -> Self:
        """Return the job for the steps after the first, without the first one's data."""
        return self
