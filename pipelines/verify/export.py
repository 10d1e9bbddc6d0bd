"""Is an export what its records say, and what its sources give?

Without the sources, every file is read in full and compared with its record. With them, every part
is made again, by the stages that made it, and compared instead of written. Since that shares all of
making, an independent count goes beside it: the multiset of ids of the documents that each half
must hold, taken from the sources by their keys alone, must be that of the rows.
"""

from __future__ import annotations

import json
import tempfile
import uuid
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from pipelines import storage
from pipelines.errors import InputError, VerificationError
from pipelines.export.choose import FAN_IN, Pass
from pipelines.export.job import check_index, check_tokenizer, half_totals, stages
from pipelines.export.make import Make
from pipelines.export.manifest import read_export
from pipelines.export.outputs import Comparison, tally
from pipelines.export.plan import check_pins, parse_sources, plan_again, stored_pins
from pipelines.export.rows import flat
from pipelines.export.source import read_blocks
from pipelines.metrics import counter
from pipelines.output.check_files import check_names
from pipelines.output.names import MANIFEST, PINS, RECORDS_FILE, TRAIN, VALIDATION, WORK, json_bytes
from pipelines.run import options
from pipelines.settings import OutputSettings
from pipelines.stage.job import run_job
from pipelines.stage.record import check_file, read_records
from pipelines.stage.stage import Job, Made, Unit
from pipelines.storage import join
from pipelines.submission.workers import workers_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from pipelines.export.manifest import ExportManifest
    from pipelines.export.plan import ExportPlan
    from pipelines.progress import Progress, SlotWriter
    from pipelines.settings import Execution
    from pipelines.stage.record import Record
    from pipelines.stage.stage import Stage

TALLY = "tally.json"


def _tried(make: Callable[[], Made]) -> Made:
    """What is made, or the error in its place: all units are checked, and the first one counts."""
    try:
        return make()
    except (VerificationError, InputError) as error:
        return Made(files=(), totals={"error": str(error), "documents": 0})


def _raise_first(records: Sequence[Record], name: str) -> None:
    """Raise the error of the first unit that has one.

    Raises:
        VerificationError: there is one; the message says how many there are.
    """
    errors = [record.totals["error"] for record in records if "error" in record.totals]
    if errors:
        more = f" (the first of {len(errors):,} {name} that are wrong)" if errors[1:] else ""
        raise VerificationError(errors[0] + more)


@dataclass(frozen=True, kw_only=True)
class CheckFiles:
    """Each unit is a record, whose files are compared with it."""

    output: str
    work: str
    records_sha256: str
    last: bool
    counters_path: str | None = None
    name: str = "check"

    @property
    def directory(self) -> str:
        """Where the records of the checks go."""
        return self.work

    def _records(self) -> list[Record]:
        return read_records(self.output, self.records_sha256)

    def units(self) -> Iterator[Unit]:
        """A unit a record."""
        for number, record in enumerate(self._records()):
            yield Unit(
                name=f"check-{number:05d}",
                fingerprint=record.fingerprint,
                number=number,
                bytes=sum(file.bytes for file in record.files),
            )

    def make(self, unit: Unit, *, slot: SlotWriter, stopped: Callable[[], bool]) -> Made:  # noqa: ARG002 - of the protocol
        """Compare the files of a record with it."""
        record = self._records()[unit.number]

        def check() -> Made:
            for file in record.files:
                check_file(self.output, file)
            return Made(files=(), totals={"documents": record.totals["documents"]})

        made = _tried(check)
        slot.update(documents=made.totals["documents"], bytes=unit.bytes)
        if self.last:
            counter("documents_read").inc(made.totals["documents"])
            counter("bytes_read").inc(unit.bytes)
        return made

    def fold(self, records: Sequence[Record]) -> None:
        """Raise the first error.

        Raises:
            VerificationError: a file is not what its record says.
        """
        _raise_first(records, "parts")


@dataclass(frozen=True, kw_only=True)
class Tally(Pass):
    """What each half must hold: counted from the sources, by keys alone."""

    name: str = "tally"

    def make(self, unit: Unit, *, slot: SlotWriter, stopped: Callable[[], bool]) -> Made:  # noqa: ARG002 - of the protocol
        """Count the documents of a span."""
        return _tried(lambda: self._count(unit, stopped))

    def _count(self, unit: Unit, stopped: Callable[[], bool]) -> Made:
        span, pins = self.spans()[unit.number], self.pins()
        selection = self.selection()
        taken = selection.taken[span.source]
        counts = {half: np.zeros(2, np.uint64) for half in (TRAIN, VALIDATION)}
        for file in range(span.first, span.first + span.files):
            for block in read_blocks(self.plan, pins[file], stopped=stopped):
                held_out = selection.validation(block.keys)
                for epoch in (None, *taken.all_epochs):
                    mask = selection.takes(
                        block.keys, file=file, rows=block.rows(), source=span.source, epoch=epoch
                    )
                    if epoch is not None and (mask & held_out).any():
                        raise VerificationError("a document is in training and in validation")
                    ids, _ = flat(block.where(mask).input_ids)
                    half = VALIDATION if epoch is None else TRAIN
                    counts[half] += np.array([mask.sum(), tally(ids)], np.uint64)
        return Made(files=(), totals={half: count.tolist() for half, count in counts.items()})

    def fold(self, records: Sequence[Record]) -> None:
        """Store the sums.

        Raises:
            VerificationError: a source cannot be read.
        """
        _raise_first(records, "parts of the sources")
        sums = {
            half: [
                sum(record.totals[half][place] for record in records) % (1 << 64)
                for place in (0, 1)
            ]
            for half in (TRAIN, VALIDATION)
        }
        storage.write(join(self.work, TALLY), json_bytes(sums))


@dataclass(frozen=True, kw_only=True)
class Compare(Make):
    """The last stage: each part is made again, and compared with the one that is there."""

    name: str = "compare"

    @property
    def directory(self) -> str:
        """Where the records of the comparisons go."""
        return self.work

    def make(self, unit: Unit, *, slot: SlotWriter, stopped: Callable[[], bool]) -> Made:
        """Compare the parts of a unit."""
        return _tried(lambda: self.write(unit, Comparison, slot=slot, stopped=stopped))

    def fold(self, records: Sequence[Record]) -> None:
        """Compare what all parts hold with what the sources give.

        Raises:
            VerificationError: a part differs, or they hold other documents.
        """
        _raise_first(records, "parts")
        expected = json.loads(storage.read(join(self.work, TALLY)))
        halves = [record.totals["halves"] for record in records]
        for half, (documents, ids) in expected.items():
            for what, name, there in (("documents", "documents", documents), ("ids", "tally", ids)):
                here = sum(one[half][name] for one in halves if half in one) % (1 << 64)
                if here != there:
                    raise VerificationError(
                        f"{self.output}: the {half} rows do not hold the {what} that the sources "
                        "give: export again with `overwrite`, and report a bug"
                    )


@dataclass(frozen=True, kw_only=True)
class VerifyExport(Job):
    """A verification of an export.

    Attributes:
        records_sha256: of the file of its records.
        work: a directory for temporary files.
        plan: to make it again; None: its files are compared with its records alone.
    """

    records_sha256: str
    work: str
    plan: ExportPlan | None
    name = "verify"
    last_file = ""

    @property
    def stages(self) -> tuple[Stage, ...]:
        """In order."""
        check = CheckFiles(
            output=self.directory,
            work=self.work,
            records_sha256=self.records_sha256,
            last=self.plan is None,
            counters_path=None if self.plan else self.counters_path,
        )
        if self.plan is None:
            return (check,)
        again = stages(
            self.plan,
            output=self.directory,
            work=self.work,
            run=self.run,
            fan_in=FAN_IN,
            last=Compare,
            counters_path=self.counters_path,
        )
        tally_ = Tally(plan=self.plan, output=self.directory, work=self.work, run=self.run)
        return (check, *again[:-1], tally_, again[-1])


def verify_export(
    directory: str,
    sources: Sequence[str] | None,
    *,
    execution: Execution,
    progress: Progress,
    temp: str | None,
) -> Mapping[str, int]:
    """Check an export against its records and, where they are given, against its sources.

    Args:
        directory: of the export.
        sources: ``NAME=DIR`` or ``DIR`` of each, as for the export; None: files alone.
        execution: where the work is done.
        progress: told how far it is.
        temp: a directory for temporary files; None: the system's, or the export's own where
            workers are elsewhere.

    Returns:
        Parts, documents, bytes and tokens.

    Raises:
        VerificationError: something is not as it must be; the message says what and where.
        JobError: it cannot be checked.
    """
    root = storage.located(directory)
    manifest = read_export(root)
    records = read_records(root, manifest.records.sha256)
    check_tokenizer(root, manifest)
    _check_totals(root, manifest, records)
    check_index(root, manifest, records)
    named = {file.file for record in records for file in record.files}
    named |= {file.file for file in manifest.index}
    check_names(root, "export", named={*named, PINS, RECORDS_FILE})
    run = uuid.uuid4().hex
    check_pins(manifest.sources, stored_pins(root), join(root, PINS))
    plan, reads = None, [root]
    if sources is not None:
        plan = plan_again(manifest, parse_sources(sources), root)
        reads += [source.directory for source in plan.sources]
    with tempfile.TemporaryDirectory(prefix="bpe-verify-") as system:
        place = temp or (system if workers_of(options(execution)).here else join(root, WORK))
        work = join(storage.located(place), f"verify-{run}")
        try:
            with run_job(
                VerifyExport(
                    output=OutputSettings(directory=root),
                    run=run,
                    records_sha256=manifest.records.sha256,
                    work=work,
                    plan=plan,
                ),
                execution=execution,
                progress=progress,
                reads=reads,
                writes=work,
                pieces=len(records),
                size=sum(half.bytes for half in manifest.halves),
                lock=False,
            ):
                pass
        finally:
            storage.remove_tree(work)
    halves = manifest.halves
    return {
        "parts": sum(half.files for half in halves),
        "documents": sum(half.documents for half in halves),
        "bytes": sum(half.bytes for half in halves),
        "tokens": sum(half.tokens for half in halves),
        "unknown_tokens": 0,
        "failures": 0,
    }


def _check_totals(root: str, manifest: ExportManifest, records: Sequence[Record]) -> None:
    for half, stated in zip((TRAIN, VALIDATION), manifest.halves, strict=True):
        if (found := half_totals(records, half)) != stated:
            raise VerificationError(
                f"{join(root, MANIFEST)}: the totals of {half} are {stated}, its records add up to "
                f"{found}"
            )
