"""Checks as stages of a job: every piece is checked, and the first error is raised.

Verdicts are the records of units. They travel to the fold and are stored nowhere, so that an output
that cannot be written can be verified wherever workers are. Only what makes something again has
temporary files.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from pipelines.errors import InputError, JobError, VerificationError
from pipelines.metrics import add_to_metrics
from pipelines.output.names import MANIFEST
from pipelines.run import metric
from pipelines.settings import OutputSettings
from pipelines.stage.job import run_job
from pipelines.stage.stage import Job, Made, Unit
from pipelines.storage import join

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from pipelines.progress import Progress, SlotWriter
    from pipelines.settings import Execution, InputSettings
    from pipelines.stage.record import Record
    from pipelines.stage.stage import Stage


def attempt(make: Callable[[], Made]) -> Made:
    """Return the result, or a result with the error, so that other units are checked, too."""
    try:
        return make()
    except (VerificationError, InputError) as error:
        return Made(files=(), totals={"error": str(error)})


def raise_first(records: Sequence[Record], pieces: str) -> None:
    """Raise the error of the first unit that has one.

    Args:
        records: the records of all units, in order.
        pieces: the plural noun for the units.

    Raises:
        VerificationError: a unit has an error; the message says how many units have one.
    """
    errors = [record.totals["error"] for record in records if "error" in record.totals]
    if errors:
        more = f" (the first of {len(errors):,} {pieces} that are wrong, of {len(records):,})"
        raise VerificationError(errors[0] + more * (len(errors) > 1))


@dataclass(frozen=True, kw_only=True)
class Check:
    """A stage whose units are checked.

    Attributes:
        output: the directory that is verified.
        name: the name of the stage.
        reads: True if `make` counts documents and bytes for Beam's counters.
    """

    output: str
    name: str = "check"
    directory: ClassVar[str] = ""
    reads: bool = True

    def pieces(self) -> Iterable[tuple[Any, int]]:
        """Return the pieces to check, each with the number of bytes that its check reads."""
        raise NotImplementedError

    def units(self) -> Iterator[Unit]:
        """Yield one unit for each piece."""
        for number, (piece, size) in enumerate(self.pieces()):
            name = f"{self.name}-{number:05d}"
            yield Unit(name=name, fingerprint=name, number=number, bytes=size, work=piece)

    def check(
        self, piece: Any, /, *, slot: SlotWriter, stopped: Callable[[], bool]
    ) -> dict[str, Any]:
        """Check a piece; return the totals of its record, such as ``documents``.

        Raises:
            VerificationError, InputError: the piece is wrong.
        """
        raise NotImplementedError

    def make(self, unit: Unit, *, slot: SlotWriter, stopped: Callable[[], bool]) -> Made:
        """Check a piece; return its totals or its error."""
        made = attempt(
            lambda: Made(files=(), totals=self.check(unit.work, slot=slot, stopped=stopped))
        )
        documents = made.totals.get("documents", 0)
        if self.reads:
            slot.update(documents=documents, bytes=unit.bytes)
            add_to_metrics(documents_read=documents, bytes_read=unit.bytes)
        return made

    def fold(self, records: Sequence[Record]) -> None:
        """Raise the first error.

        Raises:
            VerificationError: a piece is wrong.
        """
        raise_first(records, "parts")


@dataclass(frozen=True, kw_only=True)
class VerifyJob(Job):
    """The job of a verification; ``checks`` are its stages, in order."""

    checks: tuple[Stage, ...]
    name = "verify"
    last_file = ""

    @property
    def stages(self) -> tuple[Stage, ...]:
        """Return the checks, in order."""
        return self.checks

    def finish(self) -> None:
        """Count the output as verified; a runner that lost a check does not reach this step."""
        add_to_metrics(outputs_verified=1)


@dataclass(frozen=True, kw_only=True)
class Verification:
    """The subject of a verification.

    Attributes:
        directory: the directory that is verified.
        inputs: the inputs to compare the output with; None: the output is checked by itself.
        work: a directory for files that are made again, which all workers see.
        execution: where the work is done.
        progress: the display of the progress.
    """

    directory: str
    inputs: InputSettings | None
    work: str
    execution: Execution
    progress: Progress

    def run(self, *checks: Stage, reads: Iterable[str] = (), pieces: int, size: int) -> None:
        """Run checks, all of which must end well.

        Args:
            checks: the checks, in order.
            reads: files or directories that workers read, besides the output.
            pieces: about how many units the checks have.
            size: about how many bytes the checks read.

        Raises:
            VerificationError: a check finds an error in the output.
            JobError: the output cannot be checked, or the runner lost a check.
        """
        result = run_job(
            VerifyJob(output=OutputSettings(directory=self.directory), checks=checks),
            execution=self.execution,
            progress=self.progress,
            reads=reads,
            pieces=pieces,
            size=size,
        )
        if not metric(result, "outputs_verified"):
            raise JobError("the runner does not say that all checks are done: use another")

    def refuse_another(self, before: object, now: object) -> None:
        """Check that the manifest is the same as when the command began.

        Raises:
            VerificationError: the manifest was written anew.
        """
        if before != now:
            raise VerificationError(
                f"{join(self.directory, MANIFEST)} was written anew since this command read it: "
                "another job is at work there; verify again when it is done"
            )
