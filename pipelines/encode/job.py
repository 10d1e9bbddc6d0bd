"""The job of encoding a corpus: its plan, its pipeline, and the function of `bpe encode`.

A split is read, encoded and written inside one step; only descriptors of splits and of finished
parts pass between steps. Each split has a part of its own, under a name that the plan fixes, so a
bundle that is run again writes the same file again.
"""

from __future__ import annotations

import contextlib
import logging
import time
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from bpe._codec import from_jsonable
from pipelines import storage
from pipelines.corpus.documents import ReadOptions
from pipelines.corpus.splits import changed_inputs
from pipelines.elements import OncePerProcess
from pipelines.encode.fold import tidy, write_manifest
from pipelines.encode.manifest import (
    TokenizerFile,
    read_encoded,
    read_header,
    records_of,
    unit_name,
)
from pipelines.encode.passthrough import find_passthrough, settled_columns
from pipelines.encode.steps import EncodeJob, encode_arrived, encode_job, encode_split, tokenizer_of
from pipelines.encode.tokens import check_tokens, in_tokens
from pipelines.errors import InputError
from pipelines.failures import FailureChannel
from pipelines.option import split_arguments, takes
from pipelines.output.directory import decide, plan_of_run, refuse_inputs_inside
from pipelines.output.names import MANIFEST, RECORDS, TOKENIZER, read_manifest_object
from pipelines.planned import CorpusRequest, Planned, absolute, deflated, planned_splits
from pipelines.run import metric
from pipelines.settings import (
    AppendSettings,
    DriftSettings,
    EncodeSettings,
    InputSettings,
    OutputSettings,
    RowSettings,
)
from pipelines.stage.beam import RunJob
from pipelines.stage.record import loosen_records, record_path
from pipelines.stage.stage import Made, Unit
from pipelines.storage import join
from pipelines.summaries import EncodeSummary
from pipelines.timings import save_timing
from pipelines.tokenizer_files import files_of, load_tokenizer, loads

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from bpe import Tokenizer
    from pipelines.encode.manifest import EncodedManifest
    from pipelines.planned import Done
    from pipelines.progress import Progress, SlotWriter
    from pipelines.stage.record import Record
    from pipelines.stage.stage import Stage


_LOGGER = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True)
class EncodeRequest(CorpusRequest):
    """An encoding as its Beam graph holds it: patterns and settings, no files.

    Attributes:
        tokenizer: a tokenizer file, as `bpe.Tokenizer.load` takes it; empty if workers load the
            tokenizer from the files that the request holds.
        encoding: the settings of the rows.
        drift: for a job that appends, how to measure the fit of the tokenizer, and when to warn.
        tokenizers: the tokenizer, once in each process.
        gauges: the gauge of drift, once in each process.
    """

    tokenizer: str
    encoding: EncodeSettings = field(default_factory=EncodeSettings)
    drift: DriftSettings = field(default_factory=DriftSettings)
    tokenizers: OncePerProcess = field(default_factory=OncePerProcess)
    gauges: OncePerProcess = field(default_factory=OncePerProcess)
    name = "encode"

    @classmethod
    def of(
        cls,
        *,
        tokenizer: str | Tokenizer,
        inputs: InputSettings,
        output: OutputSettings,
        encoding: EncodeSettings = EncodeSettings(),  # noqa: B008  # immutable
        appending: AppendSettings = AppendSettings(),  # noqa: B008
        drift: DriftSettings = DriftSettings(),  # noqa: B008
    ) -> EncodeRequest:
        """Return a request that means the same in every process and working directory.

        Args:
            tokenizer: a tokenizer, or its file on any filesystem, as `bpe.Tokenizer.load` takes it.
            inputs: the corpus.
            output: the output directory.
            encoding: the settings of the rows.
            appending: whether the job takes only files that the output directory lacks.
            drift: for a job that appends, how to measure the fit of the tokenizer, and when to
                warn.

        Raises:
            ConfigError: the filesystem of the output cannot be used here.
            InputError: a ``tokenizer.json`` cannot hold the tokenizer.
        """
        given = {} if isinstance(tokenizer, str) else files_of(tokenizer, "the tokenizer")
        if drift.baseline is not None:
            drift = replace(drift, baseline=storage.located(drift.baseline))
        return cls(
            tokenizer=tokenizer if isinstance(tokenizer, str) else "",
            inputs=inputs,
            sent=deflated(given),
            output=replace(output, directory=storage.located(output.directory)),
            encoding=encoding,
            appending=appending,
            drift=drift,
        )

    def started(self) -> EncodeRequest:
        """Return the request of one run, which means the same in every process."""
        path = "" if self.sent else absolute(self.tokenizer)
        return replace(super().started(), tokenizer=path)

    def elsewhere(self) -> EncodeRequest:
        """Return the request with the tokenizer of a file of this machine."""
        here = storage.is_local(self.tokenizer)
        return replace(self, sent=deflated(self.worker_files())) if here else self

    def load(self) -> Tokenizer:
        """Load the tokenizer.

        Raises:
            InputError: the tokenizer cannot be read.
        """
        return load_tokenizer(self.tokenizer) if self.tokenizer else loads(super().worker_files())

    def worker_files(self) -> dict[str, bytes]:
        """Return the files of the tokenizer."""
        return super().worker_files() or files_of(self.load(), self.tokenizer)

    @property
    def shown(self) -> dict[str, str]:
        """Return the values that a runner's web UI shows of the job."""
        return {**super().shown, "tokenizer": self.tokenizer or "in the graph"}

    @property
    def stages(self) -> tuple[Stage, ...]:
        """Return the only stage: encode each split to its part, and write the manifest."""
        return (self,)

    def job(self) -> EncodeJob:
        """Return the job that the first step has planned.

        Raises:
            OutputError: another job has taken the directory over.
        """
        plan = plan_of_run(self.directory, self.run)
        settings = plan.settings
        return EncodeJob(
            directory=self.directory,
            tokenizer=TokenizerFile(
                sha256=settings["tokenizer"], vocab_size=settings["vocab_size"]
            ),
            id_type=settings["id_type"],
            settings=from_jsonable(ReadOptions, settings),
            rows=from_jsonable(RowSettings, settings),
            parts=plan.parts[0],
            max_failures=self.inputs.max_failures,
            run=self.run,
            generation=plan.generation,
        )

    def units(self) -> Iterator[Unit]:
        """Yield one unit for each split."""
        job = self.job()
        for split in planned_splits(self.directory, self.run):
            yield Unit(
                name=unit_name(split.file),
                fingerprint=job.fingerprint(split),
                number=split.part,
                bytes=split.size,
                work=split,
            )

    def make(self, unit: Unit, *, slot: SlotWriter, stopped: Callable[[], bool]) -> Made:
        """Encode a split."""
        job = self.job()
        sha256 = job.tokenizer.sha256
        tokenizer = self.tokenizers.get(sha256, lambda: tokenizer_of(job))
        if not self.appending.appends:
            return encode_split(unit.work, job, tokenizer, stopped, slot=slot)
        from pipelines.encode.drift import Gauge  # noqa: PLC0415 - of those that append alone

        gauge = self.gauges.get(sha256, lambda: Gauge(tokenizer, self.drift.baseline))
        return encode_arrived(unit.work, job, tokenizer, stopped, gauge=gauge, slot=slot)

    def fold(self, records: Sequence[Record]) -> None:
        """Write the manifest; errors are those of `write_manifest`."""
        sources = tuple(dict.fromkeys(name for name, _ in self.inputs.named_patterns))
        write_manifest(records, self.job(), sources=sources)

    def plan(self) -> Planned:
        """Find the inputs and plan the job; nothing is written.

        Raises:
            InputError: there are no inputs, or no tokenizer.
            ConfigError: a setting is wrong.
        """
        tokenizer = self.load()
        encoding = in_tokens(self.encoding, tokenizer.special_tokens, tokenizer.roles)
        check_tokens(tokenizer, encoding)
        if self.drift.baseline is not None:
            from pipelines.encode.drift import check_baseline  # noqa: PLC0415 - as below

            check_baseline(self.drift.baseline, tokenizer)
        if self.tokenizer:
            refuse_inputs_inside(self.directory, [self.tokenizer])
        found = self.find()
        if self.appending.appends:
            begins = not found.generation
            keep = settled_columns(self.directory, found.files, encoding.keep, begins=begins)
        else:
            keep = find_passthrough(found.files, encoding.keep)
        splits = self.split(found)
        job = encode_job(
            *(tokenizer, self.worker_files()[TOKENIZER]),
            encoding=encoding,
            directory=self.directory,
            settings=ReadOptions.of(self.inputs, keep=keep),
            parts=len(splits),
        )
        return replace(self.planned(found, splits, job.plan), not_applied=tokenizer.not_applied)

    def appended_to(self) -> tuple[int | None, set[str]]:
        """Return the generation in the directory, or None, and an empty set."""
        there = storage.exists(join(self.directory, MANIFEST))
        return read_header(self.directory).generation if there else None, set()

    def keep(self, planned: Planned) -> bool:
        """Keep the records of an earlier run, except for splits whose inputs changed.

        Returns:
            Whether no work is left, also because all parts were finished and then discarded.

        Raises:
            OutputError: the directory is refused (`decide`).
        """
        if super().keep(planned):
            return True
        if decide(self.output, planned.plan, reads=planned.reads) != "resume":
            return False
        changed = changed_inputs(self.directory, planned.files, generation=planned.plan.generation)
        if not self.appending.appends:
            with contextlib.suppress(InputError):  # there is no manifest
                if not changed and read_header(self.directory, discarded=True).discarded:
                    return True
            loosen_records(self.directory)
        for split in planned.splits:
            if any(piece.file_index in changed for piece in split.pieces):
                storage.remove(record_path(self.directory, unit_name(split.file)))
        return False

    def finish(self) -> dict[str, Any]:
        """Remove the folder of records, which are in `RECORDS_FILE` by now; return the manifest."""
        storage.remove_tree(join(self.directory, RECORDS))
        if self.appending.appends:
            self.tidy()
        return read_manifest_object(join(self.directory, MANIFEST))

    def tell(self, planned: Planned, progress: Progress) -> None:
        """Log unapplied settings of the tokenizer."""
        for what in planned.not_applied:
            progress.log(f"encode: {self.tokenizer}: not applied: {what}")

    def tidy(self) -> None:
        """Remove files that earlier appending jobs left."""
        generation = read_header(self.directory).generation
        tidy(self.directory, generation, prune=self.appending.prune)

    def summarize(self, planned: Planned, done: Done | None) -> EncodeSummary:
        """Return the summary of the corpus; write the timing or the drift."""
        manifest = read_encoded(self.directory, discarded=True)
        totals, result = manifest.totals, None if done is None else done.result
        made, resumed = metric(result, "units_made"), metric(result, "units_resumed")
        summary = EncodeSummary(
            output=self.directory,
            **manifest.figures,
            sources=totals.sources,
            duplicate_ids=manifest.duplicate_ids,
            passed_over=planned.passed_over,
            # A runner that starts a job again finds the parts of its own first try, too.
            resumed_parts=resumed if self.output.resume else 0,
            output_bytes=totals.bytes,
            id_type=manifest.id_type,
            not_applied=planned.not_applied,
            inputs=len(manifest.inputs),
            new_inputs=len(planned.files),
            set_aside=tuple(map(str, manifest.set_aside)),
            seconds=0.0 if done is None else done.seconds,
        )
        if done is not None and self.appending.appends:
            self._tell_drift(manifest)
        elif done is not None and made and not resumed:  # else an earlier run did some of it
            cache = {name: metric(result, name) for name in ("cache_hits", "cache_misses")}
            units = {"items": summary.tokens, "unit": "tokens"}
            save_timing(summary, done.execution, stage="encode", **units, **cache)
        return summary

    def _tell_drift(self, manifest: EncodedManifest) -> None:
        """Write a row of drift for the appended text, and warn if the tokenizer fits less well."""
        from pipelines.encode.drift import (  # noqa: PLC0415 - of jobs that append alone
            Measured,
            note_drift,
            trained_bytes_per_token,
        )

        records = records_of(manifest, self.directory)
        found = (record.totals.get("measured") for record in records)
        measured = [from_jsonable(Measured, one) for one in found if one is not None]
        trained = trained_bytes_per_token(self.tokenizer)
        for warning in note_drift(
            self.directory, measured, self.drift, trained=trained, now=time.time()
        ):
            _LOGGER.warning("encode: the tokenizer fits new text less well: %s", warning)


@takes(InputSettings, EncodeSettings)
class EncodeCorpus(RunJob):
    """Encodes files into a directory of Parquet parts; yields its manifest, one dict.

    Nothing is read, listed or written before the pipeline runs. A runner that starts the job anew
    goes on with the files and splits of its first try.

    Example::

        p | EncodeCorpus(inputs=["docs/*.jsonl"], tokenizer="tokenizer.json", output="ids")
        p | EncodeCorpus(
            inputs=["docs/*.jsonl"], tokenizer="tokenizer.json", output="ids",
            append_token="<|endoftext|>", keep=["lang"],
        )

    Args:
        inputs: files, directories or patterns, also as ``NAME=PATTERN``.
        tokenizer: a tokenizer file that workers see, as `bpe.Tokenizer.load` takes it, or a
            `bpe.Tokenizer`, which travels in the graph.
        output: a directory that is empty, or not there yet.
        overwrite: replace what an earlier job left in the directory.
        resume: keep the parts that an earlier run of the same job finished.
        **arguments: options, as below.

    Raises:
        ConfigError: an argument is wrong.
        InputError: the tokenizer given cannot be sent to workers.
    """

    instead = "EncodeDocuments encodes a PCollection"

    def __init__(
        self,
        *,
        inputs: Sequence[str],
        tokenizer: str | Tokenizer,
        output: str,
        overwrite: bool = False,
        resume: bool = False,
        **arguments: Any,
    ) -> None:
        reading, rows = split_arguments(self, arguments)
        request = EncodeRequest.of(
            inputs=InputSettings.of(inputs, **reading),
            tokenizer=tokenizer,
            output=OutputSettings(directory=output, overwrite=overwrite, resume=resume),
            encoding=EncodeSettings(**rows),
        )
        super().__init__(request, FailureChannel())
