"""Check an export against its records, and against its sources.

Every file is read in full and compared with its record. Given the sources, every part is made
again, by the stages that made it, and compared. Since that shares all of making, an independent
count is made too: the multiset of ids of the documents that each half must hold, taken from the
sources by their keys alone, must be that of the rows.
"""

from __future__ import annotations

import json
import tempfile
import uuid
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np

from pipelines import storage
from pipelines.errors import VerificationError
from pipelines.export.choose import Pass, choice_of, spans_in
from pipelines.export.job import check_others, stages
from pipelines.export.make import Make, tally
from pipelines.export.manifest import half_totals, read_export
from pipelines.export.plan import plan_again
from pipelines.output.names import MANIFEST, PINS, RECORDS_FILE, TRAIN, VALIDATION, json_bytes
from pipelines.output.state import check_names
from pipelines.stage.record import check_file, read_records
from pipelines.stage.stage import Made
from pipelines.storage import join
from pipelines.verify.base import Check, attempt, raise_first
from pipelines.verify.made_again import refuse_other

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from pipelines.export.manifest import ExportManifest
    from pipelines.progress import SlotWriter
    from pipelines.stage.record import Record, StoredFile
    from pipelines.stage.stage import Stage, Unit
    from pipelines.verify.base import Verification

TALLY = "tally.json"


@dataclass(frozen=True, kw_only=True)
class CheckFiles(Check):
    """The check of all files; each unit is a record, which is compared with its files."""

    def pieces(self) -> Iterator[tuple[Record, int]]:
        """Yield the records, each with the size of its files."""
        for record in read_records(self.output, read_export(self.output).records.sha256):
            yield record, sum(file.bytes for file in record.files)

    def check(self, record: Record, /, **_: Any) -> dict[str, Any]:
        """Compare a record with its files."""
        for file in record.files:
            check_file(self.output, file)
        return {"documents": record.totals["documents"]}


@dataclass(frozen=True, kw_only=True)
class Tally(Pass):
    """The stage that counts, in the sources, the documents and ids that each half must have."""

    name: str = "tally"

    def make(self, unit: Unit, *, slot: SlotWriter, stopped: Callable[[], bool]) -> Made:  # noqa: ARG002 - of the protocol
        """Count the documents of a span, and tally their ids, in each half."""
        return attempt(lambda: self._count(unit, stopped))

    def _count(self, unit: Unit, stopped: Callable[[], bool]) -> Made:
        taken = choice_of(self).taken[spans_in(self)[unit.number].source]
        counts = {half: np.zeros(2, np.uint64) for half in (TRAIN, VALIDATION)}
        for block in self.blocks(unit.number, stopped=stopped):
            for epoch in taken.all_epochs:
                mask = self.takes(block, epoch)
                ids, _ = self.plan.ids(block.where(mask))
                half = VALIDATION if epoch is None else TRAIN
                counts[half] += np.array([mask.sum(), tally(ids)], np.uint64)
        return Made(files=(), totals={half: count.tolist() for half, count in counts.items()})

    def fold(self, records: Sequence[Record]) -> None:
        """Store the sums of each half.

        Raises:
            VerificationError: a source cannot be read.
        """
        raise_first(records, "parts of the sources")
        sums = {
            half: np.array([record.totals[half] for record in records], np.uint64).sum(0).tolist()
            for half in (TRAIN, VALIDATION)
        }
        storage.write(join(self.work, TALLY), json_bytes(sums))


@dataclass(frozen=True, kw_only=True)
class Compare(Make):
    """The last stage, which makes each part again, and compares the part with the stored one."""

    name: str = "compare"

    @property
    def directory(self) -> str:
        """Return the directory of the records of the comparisons."""
        return self.work

    def make(self, unit: Unit, **how: Any) -> Made:
        """Make the files of a unit again, in a temporary directory, and compare the files."""

        def compared() -> Made:
            with tempfile.TemporaryDirectory(prefix="bpe-verify-") as folder:
                made = Make.make(self, unit, **how, again=folder)
                for file in made.files:
                    if file != _recorded(self.output, self.run).get(file.file):
                        with storage.open_binary(join(folder, file.file)) as again:
                            refuse_other(join(self.output, file.file), again)
            return made

        return attempt(compared)

    def fold(self, records: Sequence[Record]) -> None:
        """Compare the documents and ids of all parts with the totals of `Tally`.

        Raises:
            VerificationError: a part differs, or the parts hold other documents or ids.
        """
        raise_first(records, "parts")
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


@lru_cache(maxsize=2)
def _recorded(output: str, run: str) -> dict[str, StoredFile]:  # noqa: ARG001 - a run has its own
    """Return the files in the records of an export, by name."""
    records = read_records(output, read_export(output).records.sha256)
    return {file.file: file for record in records for file in record.files}


def verify_export(job: Verification) -> dict[str, Any]:
    """Check an export against its records and, where they are given, against its sources.

    Args:
        job: the export to verify; the patterns of its inputs are ``NAME=DIR`` or ``DIR`` of each
            source, as for the export. If documents were shuffled, its temporary files are as
            large as the ids.

    Returns:
        Counts of the export, for `VerifySummary`.

    Raises:
        VerificationError: the export is wrong; the message names the file and the error.
        JobError: the export cannot be checked.
    """
    root = job.directory
    manifest = read_export(root)
    records = list(read_records(root, manifest.records.sha256))
    check_others(root, manifest)
    _check_totals(root, manifest, records)
    named = {file.file for record in records for file in record.files}
    named |= {file.file for file in manifest.index}
    check_names(root, "export", named={*named, PINS, RECORDS_FILE})
    halves = manifest.halves
    checks: list[Stage] = [CheckFiles(output=root, reads=job.inputs is None)]
    reads: list[str] = []
    if job.inputs is not None:
        plan = plan_again(manifest, job.inputs.patterns, root)
        reads = [*plan.directories]
        known: dict[str, Any] = {"output": root, "work": job.work, "run": uuid.uuid4().hex}
        *before, last = stages(plan, Compare, **known)
        checks += [*before, Tally(plan=plan, **known), last]
    size = sum(half.bytes for half in halves)
    job.run(*checks, reads=reads, pieces=len(records), size=size)
    job.refuse_another(manifest, read_export(root))
    return {
        "parts": sum(half.files for half in halves),
        "documents": sum(half.documents for half in halves),
        "bytes": size,
        "tokens": sum(half.tokens for half in halves),
        "failures": 0,
    }


def _check_totals(root: str, manifest: ExportManifest, records: Sequence[Record]) -> None:
    for half, stated in zip((TRAIN, VALIDATION), manifest.halves, strict=True):
        if (found := half_totals(records, half)) != stated:
            raise VerificationError(
                f"{join(root, MANIFEST)}: the totals of {half} are {stated}, its records add up to "
                f"{found}"
            )
