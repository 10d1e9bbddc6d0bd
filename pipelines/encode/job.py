"""The job of encoding a corpus: its plan, its pipeline, and what `bpe encode` runs.

A split is read, encoded and written inside one step; only descriptors of splits and of finished
parts pass between steps. Each split has a part of its own, under a name that the plan fixes, so a
bundle that is run again writes the same file again.
"""

from __future__ import annotations

import time
import zlib
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal, TypeVar

import apache_beam as beam

from bpe._codec import decode
from pipelines import storage
from pipelines.corpus.documents import ReadOptions
from pipelines.corpus.inputs import check_sources, describe_inputs, find_inputs
from pipelines.corpus.mix import MixSource, sources_of
from pipelines.corpus.reading import Reading
from pipelines.corpus.splits import Split, changed_inputs, plan_splits
from pipelines.elements import OncePerProcess, Step, pack, unpack
from pipelines.encode.kept import find_kept
from pipelines.encode.manifest import read_encoded
from pipelines.encode.measure import (
    choose,
    finished_measure,
    measure_split,
    read_chosen,
    remove_measures,
    write_chosen,
)
from pipelines.encode.parts import FinishedPart, ShuffledSplit, finished_part
from pipelines.encode.shuffle import (
    finished_split,
    planned_parts,
    remove_shuffle_files,
    shuffle_split,
    shuffled_documents,
)
from pipelines.encode.steps import (
    CHOOSING,
    EncodeJob,
    check_splits,
    check_tokens,
    count_written,
    encode_job,
    encode_split,
    in_tokens,
    tokenizer_of,
    write_carried,
    write_manifest,
    write_parts,
)
from pipelines.encode.tokenizer_files import files_of, load_tokenizer, loads
from pipelines.errors import ConfigError, InputError, OutputError
from pipelines.failures import Failures, job_errors
from pipelines.metrics import counter
from pipelines.option import split_arguments, takes
from pipelines.output.directory import plan_of_run, refuse_inputs_inside
from pipelines.output.names import (
    DATA,
    MAX_PARTS,
    TOKENIZER,
    Plan,
    measure_file,
    part_files,
    read_plan,
    shuffle_file,
)
from pipelines.output.timings import save_timing
from pipelines.planned import (
    CorpusRequest,
    Planned,
    PlannedTransform,
    absolute,
    anywhere,
    dealt,
    run_job,
)
from pipelines.progress import NoProgress, SlotWriter
from pipelines.run import metric, options
from pipelines.settings import EncodeSettings, InputSettings, OutputSettings, RowSettings
from pipelines.storage import join
from pipelines.submission.workers import workers_of
from pipelines.summaries import EncodeSummary

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from bpe import Tokenizer
    from pipelines.progress import Progress
    from pipelines.settings import Execution

_Made = TypeVar("_Made")


@dataclass(frozen=True, kw_only=True)
class EncodeRequest(CorpusRequest):
    """What an encoding carries in its graph.

    Attributes:
        tokenizer: a tokenizer file, as `bpe.Tokenizer.load` takes it.
        tokenizer_files: of the tokenizer, deflated, where workers may not see that file.
        encoding: what the rows hold.
        then: ``export`` where the same command exports the corpus to the directory above.
    """

    encoding: EncodeSettings
    tokenizer: str
    tokenizer_files: Mapping[str, bytes] = field(default_factory=dict)
    then: Literal["export"] | None = None
    name = "encode"
    keeps_parts = True

    @classmethod
    def of(
        cls,
        *,
        inputs: InputSettings,
        tokenizer: str | Tokenizer,
        output: OutputSettings,
        encoding: EncodeSettings,
    ) -> EncodeRequest:
        """A request that means the same in every process, whatever its working directory.

        Raises:
            ConfigError: the filesystem of the output cannot be used here, or the tokenizer has no
                token for a role.
            InputError: no tokenizer.json holds the tokenizer.
        """
        sent: dict[str, bytes] = {}
        if encoding.mix:
            check_sources(inputs, encoding.shares)
        if not isinstance(tokenizer, str):
            encoding = in_tokens(encoding, tokenizer.special_tokens, tokenizer.roles)
            files = files_of(tokenizer, "the tokenizer")
            sent = {name: zlib.compress(data) for name, data in files.items()}
        return cls(
            inputs=anywhere(inputs),
            tokenizer=absolute(tokenizer) if isinstance(tokenizer, str) else "",
            tokenizer_files=sent,
            output=replace(output, directory=storage.located(output.directory)),
            encoding=encoding,
        )

    def after_plan(self) -> EncodeRequest:
        """The request without the tokenizer, which then lies in the output directory."""
        return replace(self, tokenizer_files={})

    def load(self) -> Tokenizer:
        """The tokenizer.

        Raises:
            InputError: it cannot be read.
        """
        if not self.tokenizer_files:
            return load_tokenizer(self.tokenizer)
        sent = self.tokenizer_files.items()
        return loads({name: zlib.decompress(data) for name, data in sent})

    @property
    def shown(self) -> dict[str, str]:
        """What a runner's web UI shows of it, beside the output."""
        return {**super().shown, "tokenizer": self.tokenizer or "in the graph"}

    def plan(self) -> Planned:
        """Find the inputs and plan the job; nothing is written.

        Raises:
            InputError: there are no inputs, or no tokenizer.
            ConfigError: a setting is wrong.
        """
        inputs, tokenizer = self.inputs, self.load()
        encoding = in_tokens(self.encoding, tokenizer.special_tokens, tokenizer.roles)
        check_tokens(tokenizer, encoding)
        if self.tokenizer:
            refuse_inputs_inside(self.directory, [self.tokenizer])
        found = find_inputs(inputs)
        files = found.files
        splits = plan_splits(files, inputs.split_size)
        shuffles = encoding.shuffles
        parts = len(splits)
        if shuffles:
            parts = planned_parts(files, inputs.split_size, tokens=encoding.token_budget)
        if encoding.carries:
            parts = _with_last(parts, inputs)
            splits = splits if shuffles else [replace(split, parts=parts) for split in splits]
        beside = files_of(tokenizer, self.tokenizer or "the tokenizer")
        job = encode_job(
            *(tokenizer, beside[TOKENIZER].decode()),
            reading=Reading.of(inputs, self.directory, keep=find_kept(files, encoding)),
            encoding=encoding,
            parts=parts,
            splits=len(splits) if shuffles else 0,
            sources=sources_of(files, encoding.shares) if encoding.mix else (),
        )
        return Planned(
            files=files,
            passed_over=found.passed_over,
            splits=tuple(splits),
            later=job.destinations if shuffles else 0,
            plan=Plan(
                kind="encoded",
                parts=(parts, len(splits)) if shuffles else (parts,),
                settings={**job.settings, "vocab_size": job.vocab_size},
                inputs=describe_inputs(files),
                run=self.run,
                then=self.then,
                choosing=CHOOSING if encoding.mix else (),
            ),
            beside=beside,
            reads=tuple(file.path for file in files),
            not_applied=tokenizer.not_applied,
            passes=2 if encoding.mix else 1,
        )

    def is_complete(self, planned: Planned) -> bool:
        """Whether an earlier run has done everything; asked where it needed temporary files.

        Documents that are shuffled, and mixes, need some, which are gone: parts could not be told
        from damaged ones and made again by themselves. Names and sizes of the parts are compared.
        """
        directory = self.directory
        if not (self.encoding.shuffles or self.encoding.mix):
            return False
        if planned.plan.differences(read_plan(directory)):
            return False
        if changed_inputs(directory, planned.files):
            return False
        try:
            manifest = read_encoded(directory)
        except InputError:
            return False
        sizes = {entry.name: entry.size for entry in storage.entries(join(directory, DATA))}
        found = all(
            sizes.get(part.file.removeprefix(f"{DATA}/")) == part.bytes for part in manifest.parts
        )
        return found and storage.exists(join(directory, TOKENIZER))

    def result(self) -> dict[str, Any]:
        """The manifest of an earlier run, which may have been killed before it cleaned up."""
        remove_shuffle_files(self.directory)
        remove_measures(self.directory)
        return read_encoded(self.directory).to_json()

    def outdated(self, planned: Planned, files: Sequence[int]) -> list[str]:
        """The parts that hold something of files that changed; all, where they are shuffled."""
        changed = set(files)
        splits = [
            split
            for split in planned.splits
            if changed & {piece.file_index for piece in split.pieces}
        ]
        measures = [measure_file(one.part, one.parts) for one in splits if self.encoding.mix]
        if not self.encoding.shuffles or not files:
            return [*super().outdated(planned, files), *measures]
        return [
            *part_files(planned.plan.parts[0], validation=bool(self.encoding.validation)),
            *(shuffle_file(split.part, split.parts) for split in splits),
            *measures,
        ]

    def steps(self, planned: Any, failures: Failures) -> beam.PCollection[bytes]:
        """Encode the splits; where they are shuffled, each to a file, and the parts from these."""
        tokenizers = OncePerProcess()
        splits = dealt("Deal splits", planned.splits)
        if self.encoding.mix:
            splits = (
                splits
                | "Measure splits"
                >> beam.ParDo(
                    Step(failures, _measured_split, self, failures, tokenizers)
                ).with_output_types(bytes)
                | "Gather measures" >> beam.Map(lambda split: (None, split))
                | "Wait for measures" >> beam.GroupByKey()
                | "Choose documents"
                >> beam.ParDo(Step(failures, _chosen, self)).with_output_types(bytes)
                | "Deal splits again" >> beam.Reshuffle()
            )
        if not self.encoding.shuffles:
            return splits | "Encode splits" >> beam.ParDo(
                Step(failures, _part_of_split, self, failures, tokenizers)
            ).with_output_types(bytes)
        shuffled = splits | "Encode splits" >> beam.ParDo(
            Step(failures, _shuffled_split, self, failures, tokenizers)
        ).with_output_types(bytes)
        parts = (
            shuffled
            | "Gather splits" >> beam.Map(lambda split: (None, split))
            | "Wait for splits" >> beam.GroupByKey()
            | "Plan parts" >> beam.ParDo(Step(failures, _parts_to_fill, self))
            | "Deal parts" >> beam.Reshuffle()
            | "Write parts"
            >> beam.ParDo(
                Step(failures, _shuffled_part, self, failures, tokenizers)
            ).with_output_types(bytes)
        )
        return (shuffled, parts) | "Splits and parts" >> beam.Flatten()

    def finish(self, results: Iterable[FinishedPart | ShuffledSplit]) -> dict[str, Any]:
        """Check that all parts are there, and write the manifest; errors of `write_manifest`."""
        job, found = chosen_job_of(self), list(results)
        parts = [one for one in found if isinstance(one, FinishedPart)]
        if job.rows.carries:
            parts += write_carried(parts, job, tokenizer_of(job))
        shuffled = [one for one in found if isinstance(one, ShuffledSplit)]
        manifest = write_manifest(parts, job, shuffled=shuffled)
        if self.encoding.shuffles:
            remove_shuffle_files(self.directory)
        if self.encoding.mix:
            remove_measures(self.directory)
        return manifest


def _with_last(parts: int, inputs: InputSettings) -> int:
    """The number of parts, with one that has what is left of the others.

    Raises:
        ConfigError: there are too many.
    """
    if parts == MAX_PARTS:
        raise ConfigError(
            f"`pack_remainder` carry: the job makes {parts:,} parts and one more, and the maximum "
            f"is {MAX_PARTS:,}: use a larger `split_size`"
            + ("" if inputs.split_size is None else f" than {inputs.split_size}")
        )
    return parts + 1


def job_of(request: EncodeRequest) -> EncodeJob:
    """The job that the first step has planned, in a worker.

    Raises:
        OutputError: another job has taken the directory over.
    """
    directory = request.output.directory
    plan = plan_of_run(directory, request.run)
    settings = plan["settings"]
    carries = request.encoding.carries
    splits = plan["parts"][-1] - (carries and not request.encoding.shuffles)
    return EncodeJob(
        reading=Reading(
            directory=directory,
            options=decode(ReadOptions, settings),
            max_failures=request.inputs.max_failures,
            counters_path=request.counters_path,
            measured=splits if request.encoding.mix else 0,
        ),
        tokenizer_sha256=settings["tokenizer"],
        vocab_size=settings["vocab_size"],
        id_type=settings["id_type"],
        rows=decode(RowSettings, settings),
        parts=plan["parts"][0],
        run=request.run,
        splits=splits if request.encoding.shuffles else 0,
        inputs_sha256=plan["inputs"]["sha256"] if request.encoding.shuffles else "",
        sources=tuple(decode(MixSource, one) for one in settings.get("sources", ())),
    )


def chosen_job_of(request: EncodeRequest) -> EncodeJob:
    """The same for the steps after documents were chosen, where a mix takes some.

    Raises:
        OutputError: another job has taken the directory over.
        InputError: nothing says which documents were chosen.
    """
    job = job_of(request)
    if not request.encoding.mix:
        return job
    mix = read_chosen(job.directory, request.run)
    if mix is None:  # the last step, which removes it, is done again
        mix = read_encoded(job.directory).mix
    return replace(job, mix=mix)


def _measured_split(
    element: bytes, request: EncodeRequest, failures: Failures, tokenizers: OncePerProcess
) -> Iterator[bytes]:
    split: Split = unpack(element)
    job = job_of(request)
    done = finished_measure(split, job)
    if done is None:
        tokenizer = tokenizers.get(job.tokenizer_sha256, lambda: tokenizer_of(job))
        done = _made(
            lambda: measure_split(split, job, tokenizer, failures),
            lambda: finished_measure(split, job),
        )
    else:
        counter("splits_resumed").inc()
        _tell_kept(split, job, sum(done.documents), measures=True)
    yield pack(done)


def _chosen(element: tuple[None, Iterable[bytes]], request: EncodeRequest) -> Iterator[bytes]:
    """The splits, once it is known which documents of them a mix takes."""
    job = job_of(request)
    measured = [unpack(one) for one in element[1]]
    write_chosen(choose(measured, job), job)
    for one in measured:
        yield pack(one.split)


def _part_of_split(
    element: bytes, request: EncodeRequest, failures: Failures, tokenizers: OncePerProcess
) -> Iterator[bytes]:
    split: Split = unpack(element)
    job = chosen_job_of(request)
    tokenizer = tokenizers.get(job.tokenizer_sha256, lambda: tokenizer_of(job))
    done = _finished(job.halves(split), job)
    if done is None:
        done = _made(
            lambda: encode_split(split, job, tokenizer, failures),
            lambda: _finished(job.halves(split), job),
        )
        for part in done:
            count_written(part)
    else:
        counter("parts_resumed").inc(len(done))
        _tell_kept(split, job, sum(part.contents.documents for part in done))
    for part in done:
        yield pack(part)


def _shuffled_split(
    element: bytes, request: EncodeRequest, failures: Failures, tokenizers: OncePerProcess
) -> Iterator[bytes]:
    split: Split = unpack(element)
    job = chosen_job_of(request)
    done = finished_split(split, job)
    if done is None:
        tokenizer = tokenizers.get(job.tokenizer_sha256, lambda: tokenizer_of(job))
        done = _made(
            lambda: shuffle_split(split, job, tokenizer, failures),
            lambda: finished_split(split, job),
        )
    else:
        counter("splits_resumed").inc()
        _tell_kept(split, job, done.documents)
    yield pack(done)


def _parts_to_fill(
    element: tuple[None, Iterable[bytes]], request: EncodeRequest
) -> Iterator[bytes]:
    """The parts of a shuffled corpus, once the documents of all splits are there."""
    job = chosen_job_of(request)
    check_splits([unpack(one) for one in element[1]], job)
    for number in range(job.filled):
        for half in job.halves(Split(part=number, parts=job.parts, pieces=())):
            yield pack(half)


def _shuffled_part(
    element: bytes, request: EncodeRequest, failures: Failures, tokenizers: OncePerProcess
) -> Iterator[bytes]:
    part: Split = unpack(element)
    job = chosen_job_of(request)
    done = _finished([part], job)
    if done is None:
        tokenizer = tokenizers.get(job.tokenizer_sha256, lambda: tokenizer_of(job))
        layout = job.layout(tokenizer)
        done = _made(
            lambda: write_parts(
                [part],
                job,
                (
                    [some]
                    for some in shuffled_documents(part, job, layout, stopped=failures.stopped)
                ),
                layout=layout,
                tokenizer=tokenizer,
            ),
            lambda: _finished([part], job),
        )
        count_written(done[0])
    else:
        counter("parts_resumed").inc()
    number = job.reading.measured + job.splits + job.destination(part)
    with SlotWriter(job.reading.counters_path, number) as slot:
        slot.advance(1, 1)
    yield pack(done[0])


def _tell_kept(split: Split, job: EncodeJob, documents: int, *, measures: bool = False) -> None:
    counter("documents_kept").inc(documents)
    counter("bytes_kept").inc(split.size)
    with SlotWriter(job.reading.counters_path, job.reading.slot(split, measures)) as slot:
        slot.keep(documents=documents, bytes=split.size)


def _finished(parts: Sequence[Split], job: EncodeJob) -> list[FinishedPart] | None:
    """Parts that an earlier run finished; None where one must be made (again)."""
    done = []
    for one in parts:
        part = finished_part(job.directory, one, fingerprint=job.fingerprint(one))
        if part is None:
            return None
        done.append(part)
    return done


def _made(make: Callable[[], _Made], finished: Callable[[], _Made | None]) -> _Made:
    """What ``make`` returns; where it cannot write, what another job has finished."""
    try:
        return make()
    except OutputError:
        # A job that was left behind on a cluster may have made this part meanwhile, ended, and
        # taken our temporary file for one of a writer that was killed.
        done = finished()
        if done is None:
            raise
        return done


@takes(InputSettings, EncodeSettings)
class EncodeCorpus(PlannedTransform):
    """Encodes files into a directory of Parquet parts; yields its manifest, one dict.

    Nothing is read, listed or written before the pipeline runs. A runner that starts the job anew
    goes on with the files and splits of its first try.

    Example::

        p | EncodeCorpus(inputs=["docs/*.jsonl"], tokenizer="tokenizer.json", output="ids")
        p | EncodeCorpus(
            inputs=["docs/*.jsonl"], tokenizer="tokenizer.json", output="packed",
            append_token="<|endoftext|>", pack=2048,
        )

    Args:
        inputs: files, directories or patterns, also as ``NAME=PATTERN``; with ``mix``, all so.
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
        reading, rows = split_arguments(arguments, InputSettings, EncodeSettings)
        request = EncodeRequest.of(
            inputs=InputSettings.of(inputs, **reading),
            tokenizer=tokenizer,
            output=OutputSettings(directory=output, overwrite=overwrite, resume=resume),
            encoding=EncodeSettings(**rows),
        )
        super().__init__(request, Failures())


def encode(
    *,
    inputs: InputSettings,
    tokenizer: str,
    output: OutputSettings,
    execution: Execution,
    encoding: EncodeSettings = EncodeSettings(),  # noqa: B008  # immutable
    progress: Progress | None = None,
    then: Literal["export"] | None = None,
    ready: Callable[[Planned], object] | None = None,
) -> EncodeSummary:
    """Encode a corpus into a directory of Parquet parts.

    Args:
        inputs: the corpus.
        tokenizer: a tokenizer file, as `bpe.Tokenizer.load` takes it; of any filesystem.
        output: the directory.
        execution: where the work is done.
        encoding: what the rows hold.
        progress: told how far it is.
        then: as in `EncodeRequest`.
        ready: as in `run_job`; called with what is planned.

    Raises:
        JobError: something is wrong; the class says what.
    """
    began = time.monotonic()
    progress = progress or NoProgress()
    with job_errors():
        elsewhere = not workers_of(options(execution)).here and storage.is_local(tokenizer)
        request = EncodeRequest.of(
            inputs=inputs,
            tokenizer=load_tokenizer(tokenizer) if elsewhere else tokenizer,
            output=output,
            encoding=encoding,
        )
        request = replace(request, then=then)
        planned = replace(request, inputs=inputs, tokenizer=tokenizer, tokenizer_files={}).plan()
        for what in planned.not_applied:
            progress.log(f"encode: {tokenizer}: not applied: {what}")
        with run_job(
            request.started(),
            planned,
            execution=execution,
            progress=progress,
            ready=None if ready is None else lambda: ready(planned),
        ) as result:
            manifest = read_encoded(request.directory)
            totals = manifest.totals
            kept = metric(result, "parts_resumed") + metric(result, "splits_resumed")
            if metric(result, "parts_written") and not kept:  # else an earlier run did some of it
                save_timing(
                    request.directory,
                    "encode",
                    time.monotonic() - began,
                    read=(totals.documents, totals.text_bytes),
                    made=(totals.tokens, "tokens"),
                    execution=execution,
                    cache=(metric(result, "cache_hits"), metric(result, "cache_misses")),
                )
    return EncodeSummary(
        output=request.directory,
        documents=totals.documents,
        bytes=totals.text_bytes,
        rows=totals.rows,
        tokens=totals.tokens,
        unknown_tokens=totals.unknown,
        dropped_tokens=totals.dropped.tokens,
        dropped_documents=totals.dropped.documents,
        padding_tokens=totals.padding,
        short_rows=manifest.short_rows,
        cut_documents=totals.cut_documents if encoding.best_fit else None,
        row_length=encoding.pack,
        validation_documents=totals.validation.documents if encoding.validation else None,
        validation_tokens=totals.validation.tokens if encoding.validation else None,
        failures=totals.failures,
        formats=manifest.formats,
        passed_over=planned.passed_over,
        parts=len(manifest.parts),
        # A runner that starts a job again finds the parts of its own first try, too.
        resumed_parts=_resumed(result, len(manifest.parts)) if output.resume else 0,
        output_bytes=totals.bytes,
        id_type=manifest.id_type,
        mix=manifest.mix,
        not_applied=planned.not_applied,
        seconds=time.monotonic() - began,
    )


def _resumed(result: Any, parts: int) -> int:
    """How many parts an earlier run had finished: all, where this one had nothing to do."""
    return metric(result, "parts_resumed") if metric(result, "parts_written") else parts
