"""The job of exporting an encoded corpus: its plan, its pipeline, and what `bpe export` runs.

A part is an element: it is read and written inside one step. The names of its files follow from
its own name, so a bundle that is run again writes the same files again.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import apache_beam as beam

from pipelines import storage
from pipelines.elements import Step, pack, unpack
from pipelines.encode.manifest import read_encoded
from pipelines.errors import InputError
from pipelines.export.format import ExportJob
from pipelines.export.manifest import Encoded, read_export
from pipelines.export.steps import (
    LAYOUT,
    PartToExport,
    check_settings,
    chosen_parts,
    encoded_by,
    export_part,
    finish_export,
    kept_part,
    remove_leftovers,
)
from pipelines.failures import Failures, job_errors
from pipelines.metrics import counter
from pipelines.option import changed
from pipelines.output.directory import plan_of_run, prepare, run_of
from pipelines.output.names import (
    ENCODED,
    EXPORT,
    MANIFEST,
    VALIDATION,
    Plan,
    parse_part,
    read_plan,
)
from pipelines.output.state import complete
from pipelines.planned import Planned, Request, run_job
from pipelines.progress import NoProgress, many, size_text
from pipelines.run import metric, options
from pipelines.settings import ExportSettings, OutputSettings
from pipelines.storage import join
from pipelines.summaries import ExportSummary

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from pipelines.encode.manifest import EncodedManifest
    from pipelines.export.steps import DonePart
    from pipelines.progress import Progress
    from pipelines.settings import Execution


# Folders of an export by the command that encodes.
BESIDE = (ENCODED, VALIDATION)


@dataclass(frozen=True, kw_only=True)
class PlannedExport(Planned):
    """An export, planned; ``parts`` are the work."""

    parts: tuple[PartToExport, ...]

    @property
    def pieces(self) -> int:
        """In how many pieces the work is done."""
        return max(len(self.parts), 1)

    @property
    def size(self) -> int:
        """Bytes of Parquet that are read."""
        return sum(one.part.bytes for one in self.parts)


@dataclass(frozen=True, kw_only=True)
class ExportRequest(Request):
    """What an export carries in its graph: no parts and no files.

    Attributes:
        source: the directory of the encoded corpus.
        encoded: what its manifest says of it.
        parts: how many it has.
        settings: the format.
        encoding: as in `Plan`.
    """

    source: str
    encoded: Encoded
    parts: int
    settings: ExportSettings
    encoding: str = ""
    name = "export"
    last_file = EXPORT

    @classmethod
    def of(
        cls,
        manifest: EncodedManifest,
        *,
        source: str,
        output: OutputSettings,
        to: ExportSettings,
        encoding: str = "",
    ) -> ExportRequest:
        """A request that means the same in every process, whatever its working directory.

        Args:
            manifest: of the encoded corpus.
            source: its directory.
            output: where the files go.
            to: the format.
            encoding: as in `Plan`.

        Raises:
            ConfigError: a filesystem cannot be used here.
        """
        return cls(
            source=storage.located(source),
            encoded=encoded_by(manifest),
            parts=len(chosen_parts(manifest, to)),
            settings=to,
            encoding=encoding,
            output=OutputSettings(
                directory=storage.located(output.directory),
                overwrite=output.overwrite,
                resume=output.resume,
            ),
        )

    @property
    def shown(self) -> dict[str, str]:
        """What a runner's web UI shows of it, beside the output."""
        return {"encoded": self.source, "to": self.settings.to}

    @property
    def job(self) -> ExportJob:
        """What workers must know."""
        return ExportJob(
            source=self.source,
            directory=self.directory,
            encoded=self.encoded,
            settings=self.settings,
            run=self.run,
            counters_path=self.counters_path,
        )

    def plan(self) -> PlannedExport:
        """Read the manifest and plan the job; nothing is written.

        Raises:
            InputError: there is no complete corpus, or it is another by now.
            ConfigError: the format cannot hold it.
        """
        manifest = read_encoded(self.source)
        if encoded_by(manifest) != self.encoded:
            raise InputError(
                f"{join(self.source, MANIFEST)} was written anew since this command read it: "
                "another job is at work there; export again when it is done"
            )
        parts = chosen_parts(manifest, self.settings)
        check_settings(self.job, parts)
        names = (parse_part(part.file) for part in parts)
        is_inside = self.source == join(self.directory, ENCODED)  # it was encoded to be exported
        return PlannedExport(
            plan=Plan(
                kind="export",
                parts=tuple(sorted({name.parts for name in names if name is not None})),
                settings=plan_settings(self.settings, self.encoded.manifest_sha256),
                inputs={"parts": len(parts), "bytes": sum(part.bytes for part in parts)},
                run=self.run,
                encoding=self.encoding,
            ),
            reads=() if is_inside else tuple(join(self.source, part.file) for part in parts),
            keep=BESIDE if is_inside or self.encoding else (),
            parts=tuple(PartToExport(number=n, part=part) for n, part in enumerate(parts)),
        )

    def begin(self) -> list[PartToExport] | None:
        """Plan the job, prepare its directory, and return its parts; None if it is complete.

        Raises:
            JobError: the job cannot be done; the class says why.
        """
        planned = self.plan()
        if run_of(self.directory) != self.run:
            if self.output.resume and self._is_complete(planned):
                return None
            prepare(self.output, planned.plan, reads=planned.reads, keep=planned.keep)
        return list(planned.parts)

    def _is_complete(self, planned: PlannedExport) -> bool:
        """Whether an earlier run of the same job has done everything, by names and sizes."""
        if planned.plan.differences(read_plan(self.directory)):
            return False
        try:
            manifest = read_export(self.directory)
        except InputError:
            return False
        remove_leftovers(self.directory, manifest)
        sizes = {entry.name: entry.size for entry in storage.entries(self.directory)}
        return all(sizes.get(one.file) == one.bytes for one in manifest.listed)

    def steps(self, planned: Any, failures: Failures) -> beam.PCollection[bytes]:
        """Write the files of the parts."""
        return (
            planned.splits
            | "Deal parts" >> beam.Reshuffle()
            | "Export parts"
            >> beam.ParDo(Step(failures, _exported, self, failures)).with_output_types(bytes)
        )

    def finish(self, results: Iterable[DonePart]) -> dict[str, Any]:
        """Write the index and ``export.json``; errors of `finish_export`."""
        return finish_export(results, self.job, parts=self.parts)

    def result(self) -> dict[str, Any]:
        """What ``export.json`` holds."""
        return read_export(self.directory).to_json()


def plan_settings(settings: ExportSettings, manifest: object) -> dict[str, Any]:
    """What a plan says of an export.

    Args:
        settings: the format.
        manifest: the fingerprint of the manifest of the encoded corpus.
    """
    return {"layout": LAYOUT, "manifest": manifest, **changed(settings)}


def _exported(element: bytes, request: ExportRequest, failures: Failures) -> Iterator[bytes]:
    piece: PartToExport = unpack(element)
    plan_of_run(request.directory, request.run)  # of another job by now: this one ends
    done = kept_part(piece, request.job)
    if done is None:
        done = export_part(piece, request.job, stopped=failures.stopped)
        counter("parts_written").inc()
        counter("documents_read").inc(done.documents)
        counter("bytes_read").inc(piece.part.bytes)
        counter("tokens_written").inc(done.part.tokens)
    else:
        counter("parts_resumed").inc()
        counter("documents_kept").inc(done.documents)
        counter("bytes_kept").inc(piece.part.bytes)
    yield pack(done)


def export(
    *,
    directory: str,
    output: OutputSettings,
    settings: ExportSettings,
    execution: Execution,
    progress: Progress | None = None,
    encoding: str = "",
) -> ExportSummary:
    """Write the token ids of an encoded corpus in a format that trainers read.

    Args:
        directory: that holds the corpus.
        output: where the files go.
        settings: the format.
        execution: where the work is done.
        progress: told how far it is.
        encoding: as in `Plan`.

    Raises:
        JobError: something is wrong; the class says what.
    """
    began = time.monotonic()
    progress = progress or NoProgress()
    with job_errors():
        options(execution)
        complete(directory, "encoded")
        source = read_encoded(directory)
        if not source.parts:
            raise InputError(f"{directory}: no file was encoded yet: there is nothing to export")
        request = ExportRequest.of(
            source, source=directory, output=output, to=settings, encoding=encoding
        )
        planned = request.plan()
        progress.log(
            f"export: {many(len(planned.parts), 'part')}, {size_text(planned.size)} of Parquet"
        )
        with run_job(request.started(), planned, execution=execution, progress=progress) as result:
            manifest = read_export(request.directory)
    written, resumed = metric(result, "parts_written"), metric(result, "parts_resumed")
    if output.resume and not written:
        resumed = len(manifest.parts)
    return ExportSummary(
        output=request.directory,
        encoded=request.source,
        format=settings.to,
        documents=manifest.totals.documents,
        bytes=sum(one.part.text_bytes for one in planned.parts),
        rows=manifest.totals.rows,
        tokens=manifest.totals.tokens,
        failures=source.totals.failures,
        formats=source.formats,
        parts=len(manifest.parts),
        # A runner that starts a job again finds the parts of its own first try, too.
        resumed_parts=resumed if output.resume else 0,
        files=len(manifest.files),
        output_bytes=manifest.totals.bytes,
        seconds=time.monotonic() - began,
    )
