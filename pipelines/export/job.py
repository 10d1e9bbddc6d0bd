"""``bpe export``: ids to training data, as stages of one job.

measure → choose (where a budget takes some documents) → exchange, merge (where they are shuffled)
→ make. The graph carries the plan, but no list of files.
"""

from __future__ import annotations

import contextlib
import time
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from pipelines import storage
from pipelines.errors import InputError, VerificationError
from pipelines.export.choose import Choose, Measure
from pipelines.export.exchange import Exchange, Merge
from pipelines.export.make import Make
from pipelines.export.manifest import ExportManifest, read_export
from pipelines.export.plan import (
    UNIT_TOKENS,
    ExportPlan,
    pinned_before,
    plan_export,
    spans_of,
    stored_pins,
    write_pins,
)
from pipelines.failures import job_errors
from pipelines.output.directory import decide, locked, prepare, remove_temporaries
from pipelines.output.names import (
    PINS,
    RECORDS,
    ROLES_FILES,
    TOKENIZER,
    WORK,
    Plan,
)
from pipelines.progress import UNSEEN, many, size_text
from pipelines.run import metric, options
from pipelines.stage.job import run_job
from pipelines.stage.record import (
    check_file,
    loosen_records,
    read_records,
)
from pipelines.stage.stage import Job
from pipelines.storage import join
from pipelines.summaries import ExportSummary

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from pipelines.progress import Progress
    from pipelines.settings import Execution, ExportSettings, OutputSettings
    from pipelines.stage.stage import Stage


@dataclass(frozen=True, kw_only=True)
class ExportJob(Job):
    """The job of an export.

    Attributes:
        plan: the plan of the export.
    """

    plan: ExportPlan
    name = "export"

    @property
    def stages(self) -> tuple[Stage, ...]:
        """Return the stages of the export, in order."""
        work = join(self.directory, WORK)
        return stages(self.plan, Make, output=self.directory, work=work, run=self.run)

    @property
    def same(self) -> Plan:
        """Return the settings by which two jobs are the same export."""
        return Plan(kind="export", settings=self.plan.header, run=self.run)

    @property
    def sources(self) -> dict[str, str]:
        """Return the directories of the sources, by name."""
        names = (source.name for source in self.plan.sources)
        return dict(zip(names, self.plan.directories, strict=True))

    def begin(self) -> bool:
        """Pin the parts and prepare the directory; return False if an earlier run did the export.

        Raises:
            JobError: the job cannot be done; the class says why.
        """
        action = decide(self.output, self.same, reads=self.plan.directories)
        if action == "own" and storage.exists(join(self.directory, PINS)):
            return True
        complete = action == "resume" and self._is_complete()
        plan, pins, _ = plan_export(
            [f"{name}={directory}" for name, directory in self.sources.items()],
            self.plan.settings,
            unit_tokens=self.plan.unit_tokens,
            pinned=pinned_before(self.directory) if self.output.resume else None,
            discarded=complete,
        )
        if plan != self.plan:
            raise InputError(
                f"{', '.join(plan.directories)}: the ids changed since this command read their "
                "manifest: another job is at work there; export again when it is done"
            )
        if complete:
            return False
        if action == "resume":
            loosen_records(self.directory)
        prepare(self.output, self.same, reads=self.plan.directories)
        write_pins(self.directory, pins)
        for name in (*ROLES_FILES, TOKENIZER):
            data = storage.read_if_there(join(self.plan.directories[0], name))
            if data is not None:
                storage.write(join(self.directory, name), data)
        return True

    def _is_complete(self) -> bool:
        """Return True if the export is complete and all its files, which are read, are intact."""
        try:
            manifest = read_export(self.directory)
            if manifest.header != self.plan.header:
                return False
            for record in read_records(self.directory, manifest.records.sha256):
                for file in record.files:
                    check_file(self.directory, file)
            check_others(self.directory, manifest)
        except (InputError, VerificationError):
            return False
        return True

    def finish(self) -> str:
        """Remove the files that only the stages needed; return the directory of the export."""
        for folder in (WORK, RECORDS):
            storage.remove_tree(join(self.directory, folder))
        remove_temporaries(self.directory)
        return self.directory


def stages(plan: ExportPlan, last: Callable[..., Stage], **known: Any) -> tuple[Stage, ...]:
    """Return the stages of an export, or of its verification.

    Args:
        plan: the plan of the export.
        last: the class of the last stage.
        **known: more fields of all stages (`pipelines.export.choose.Pass`).
    """
    kinds: list[Callable[..., Stage]] = [Measure] if plan.selects else []
    kinds += [Choose] if plan.settings.chooses else []
    kinds += [Exchange, Merge] if plan.settings.shuffle is not None else []
    return tuple(kind(plan=plan, **known) for kind in (*kinds, last))


def check_others(directory: str, manifest: ExportManifest) -> None:
    """Compare the files of an export that no record names with the manifest.

    Raises:
        VerificationError: a file is missing or differs.
        InputError: the pinned parts cannot be read, or differ from those of the manifest.
    """
    tokenizer = join(directory, TOKENIZER)
    if storage.digest(tokenizer).sha256 != manifest.tokenizer.sha256:
        raise VerificationError(
            f"{tokenizer} is not the tokenizer of the manifest: make it again with `resume`"
        )
    for file in manifest.index:
        check_file(directory, file)
    stored_pins(directory, manifest.sources)


def export(
    *,
    sources: Sequence[str],
    output: OutputSettings,
    settings: ExportSettings,
    execution: Execution,
    progress: Progress = UNSEEN,
    unit_tokens: int = UNIT_TOKENS,
) -> ExportSummary:
    """Make training data from directories of ids.

    Args:
        sources: ``NAME=DIR`` or ``DIR`` of each directory of ids.
        output: where the files go.
        settings: which documents, in rows of which shape, and in which format.
        execution: where the work is done.
        progress: the display of the progress.
        unit_tokens: as in `ExportPlan`.

    Raises:
        JobError: something is wrong; the class says what.
    """
    began = time.monotonic()
    with job_errors():
        options(execution)
        directory = storage.located(output.directory)
        plan, pins, warning = plan_export(
            sources,
            settings,
            unit_tokens=unit_tokens,
            pinned=pinned_before(directory) if output.resume else None,
        )
        output = replace(output, directory=directory)
        job = ExportJob(output=output, plan=plan)
        decide(output, job.same, reads=plan.directories)
        size = sum(pin.bytes for pin in pins)
        progress.log(f"export: {many(len(pins), 'part')}, {size_text(size)} of Parquet")
        with contextlib.ExitStack() as stack:
            result = run_job(
                job,
                execution=execution,
                progress=progress,
                reads=plan.directories,
                pieces=len(spans_of(pins, plan.unit_tokens)),
                size=size,
                ready=lambda: stack.enter_context(locked(directory)),
            )
            manifest = read_export(job.directory)
    made, resumed = metric(result, "units_made"), metric(result, "units_resumed")
    halves = manifest.halves
    return ExportSummary(
        output=job.directory,
        sources=job.sources,
        format=settings.to,
        documents=sum(half.documents for half in halves),
        bytes=0,
        failures=0,
        rows=sum(half.rows for half in halves),
        tokens=sum(half.tokens for half in halves),
        validation_documents=manifest.validation.documents if settings.validation else None,
        validation_tokens=manifest.validation.tokens if settings.validation else None,
        padding_tokens=sum(half.padding for half in halves),
        dropped_tokens=sum(half.dropped_tokens for half in halves),
        dropped_documents=sum(half.dropped_documents for half in halves),
        row_length=settings.pack,
        taken=manifest.taken,
        files=sum(half.files for half in halves),
        resumed_units=resumed if output.resume else 0,
        made_units=made,
        output_bytes=sum(half.bytes for half in manifest.halves),
        warnings=(warning,) if warning else (),
        seconds=time.monotonic() - began,
    )
