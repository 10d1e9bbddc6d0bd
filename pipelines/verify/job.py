"""The job of verifying counts, an encoded corpus or an export, on any runner: a part is an element.

Every part is checked, also after one that is wrong: the error names the first one in the order of
the manifest, whatever worker comes to it first. Counts that are compared with their input are
counted again, as `pipelines.count.job` counts, and compared shard by shard.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import apache_beam as beam

from pipelines import storage
from pipelines.corpus.splits import Split
from pipelines.count.check_parts import stored_sets
from pipelines.count.job import MergeRuns, count_splits, empty_runs
from pipelines.elements import OncePerProcess, Step, pack, unpack
from pipelines.encode.manifest import read_encoded, read_kind
from pipelines.encode.steps import tokenizer_of
from pipelines.errors import JobError, VerificationError
from pipelines.failures import Failures, job_errors
from pipelines.metrics import counter
from pipelines.output.names import MANIFEST
from pipelines.output.state import complete, complete_outputs
from pipelines.planned import anywhere
from pipelines.progress import NoProgress
from pipelines.run import metric, options
from pipelines.settings import FORMATS, Execution, OutputSettings
from pipelines.stage.beam import dealt, gathered
from pipelines.stage.job import run_job
from pipelines.stage.stage import Job
from pipelines.storage import join
from pipelines.summaries import VerifySummary
from pipelines.verify.counts import (
    StatedCounts,
    VerifyCountsJob,
    check_stored,
    compare_shard,
    conclude_counts,
    plan_counts,
)
from pipelines.verify.encoded import (
    StatedParts,
    check_part,
    conclude_encoded,
    keeps_texts,
    plan_encoded,
)
from pipelines.verify.export import verify_export

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from bpe import Tokenizer
    from pipelines.count.steps import CountJob
    from pipelines.output.state import Output
    from pipelines.progress import Progress
    from pipelines.settings import InputSettings
    from pipelines.verify.counts import VerifyingCounts
    from pipelines.verify.encoded import PartCheck, VerifyEncodedJob, VerifyingEncoded

    _Verifying = VerifyingCounts | VerifyingEncoded

_NUMBERS = ("parts", "documents", "bytes", "tokens", "unknown_tokens", "failures")


@dataclass(frozen=True, kw_only=True)
class VerifyRequest(Job):
    """What a verification carries in its graph: no parts and no files.

    Attributes:
        manifest: the fingerprint of the output's manifest; empty where that still grows.
        inputs: to compare it with.
        job: how its parts are checked.
    """

    manifest: str
    inputs: InputSettings | None
    job: VerifyCountsJob | VerifyEncodedJob
    name = "verify"
    last_file = ""

    def watched(self, counters_path: str | None) -> VerifyRequest:
        """The same, whose workers tell their progress."""
        return replace(self, job=self.job.with_counters(counters_path))

    @property
    def shown(self) -> dict[str, str]:
        """What a runner's web UI shows of it."""
        inputs = {"inputs": ", ".join(self.inputs.patterns)} if self.inputs else {}
        return {**super().shown, **inputs}

    def plan(self) -> _Verifying:
        """Read the manifest, and plan the checks.

        Raises:
            VerificationError: something is not as it must be, or the manifest is another by now.
        """
        planned: _Verifying
        if isinstance(self.job, VerifyCountsJob):
            sets = stored_sets(self.directory)
            planned = plan_counts(self.directory, sets, inputs=self.inputs)
        else:
            manifest = read_encoded(self.directory)
            planned = plan_encoded(self.directory, manifest, inputs=self.inputs)
        if planned.manifest != self.manifest:
            raise VerificationError(
                f"{join(self.directory, MANIFEST)} was written anew since this command read it: "
                "another job is at work there; verify again when it is done"
            )
        return planned

    def steps(self, begun: Any, failures: Failures) -> Any:
        """Check the parts, and count the inputs again where counts are compared."""
        work = begun | "Plan checks" >> beam.ParDo(Step(failures, _planned, self))
        stated, parts, splits = work | "By kind" >> beam.Partition(_kind, 3)
        parts |= "Deal parts" >> beam.Reshuffle()
        if isinstance(self.job, VerifyCountsJob):
            found = _check_counts(self.job, begun, parts, dealt("Deal splits", splits), failures)
        else:
            step = Step(failures, _checked_part, self.job, failures, OncePerProcess())
            found = (parts | "Check parts" >> beam.ParDo(step),)
        results = (stated, *found) | "All results" >> beam.Flatten()
        return gathered(begun, results, failures, _conclude, self)


def _planned(_: None, request: VerifyRequest) -> Iterator[bytes]:
    """The parts, what is stated of them all, and the splits of inputs to count."""
    planned = request.plan()
    return map(pack, [planned.stated, *planned.parts, *planned.splits])


def _conclude(results: Iterable[Any], request: VerifyRequest) -> None:
    """Tell Beam's counters what the output holds, where all of it is right."""
    if isinstance(request.job, VerifyCountsJob):
        numbers = conclude_counts(results, request.job)
    else:
        numbers = conclude_encoded(results)
    for name, number in numbers.items():
        counter(f"{name}_verified").inc(number)


def _check_counts(
    job: VerifyCountsJob, begun: Any, parts: Any, splits: Any, failures: Failures
) -> tuple[Any, ...]:
    checked = parts | "Check parts" >> beam.ParDo(
        Step(failures, _checked_counts, job)
    ).with_outputs("stored", main="found")
    if job.reading is None:
        return (checked.found,)
    counted = count_splits(splits, job.count, job.reading, failures)
    empty = begun | "Empty runs" >> beam.FlatMap(lambda _: empty_runs(job.count))
    again = (
        (empty, counted.runs)
        | "All runs" >> beam.Flatten()
        | "Merge runs" >> beam.CombinePerKey(MergeRuns(failures))
    )
    compared = (
        {"stored": checked.stored, "counted": again}
        | "Group shards" >> beam.CoGroupByKey()
        | "Compare shards" >> beam.ParDo(Step(failures, _compared, job.count))
    )
    return checked.found, counted.totals, compared


def _kind(element: bytes, _: int) -> int:
    value = unpack(element)
    return 0 if isinstance(value, (StatedCounts, StatedParts)) else 1 + isinstance(value, Split)


def _checked_part(
    element: bytes, job: VerifyEncodedJob, failures: Failures, tokenizers: OncePerProcess
) -> Iterator[bytes]:
    part: PartCheck = unpack(element)
    tokenizer = tokenizers.get(job.encode.tokenizer_sha256, lambda: tokenizer_of(job.encode))
    yield pack(check_part(part, job, tokenizer, failures))
    if not job.compare:  # else reading has counted them
        counter("documents_read").inc(part.part.documents)
        counter("bytes_read").inc(part.part.bytes)


def _checked_counts(element: bytes, job: VerifyCountsJob) -> Iterator[Any]:
    for result in check_stored(unpack(element), job):
        if isinstance(result, tuple):
            yield beam.pvalue.TaggedOutput("stored", result)
        else:
            yield pack(result)


def _compared(element: tuple[int, Mapping[str, Iterable[bytes]]], job: CountJob) -> Iterator[bytes]:
    shard, runs = element
    yield pack(compare_shard(shard, job=job, stored=runs["stored"], counted=runs["counted"]))


def outputs(
    *,
    directory: str,
    execution: Execution = Execution(),  # noqa: B008  # immutable
) -> tuple[Output, ...]:
    """All that a job has made in a directory: counts, tokenizer, encoded corpus, as far as begun.

    Args:
        directory: that a job has written to.
        execution: says how stores are reached.

    Raises:
        JobError: there is nothing, or something of it is not complete.
    """
    with job_errors():
        options(execution)
        return complete_outputs(directory)


def verify(
    *,
    directory: str,
    inputs: InputSettings | None = None,
    execution: Execution = Execution(),  # noqa: B008  # immutable
    progress: Progress | None = None,
    tokenizer: Tokenizer | None = None,
    temp: str | None = None,
) -> VerifySummary:
    """Check an output against its manifest, and against what it was made of, if given.

    Args:
        directory: that holds the manifest.
        inputs: the corpus, given as when the output was made; of an export, the directories of
            its sources.
        execution: where the work is done.
        progress: told how far it is.
        tokenizer: that a corpus must have been encoded with; None: any.
        temp: a directory for temporary files, as large as the ids, where documents were shuffled;
            None: the system's, or the output's where workers are elsewhere.

    Raises:
        VerificationError: something is not as it must be; the message names what and where.
        JobError: it cannot be checked.
    """
    began = time.monotonic()
    progress = progress or NoProgress()
    with job_errors():
        options(execution)
        output = complete(directory, "counts", "encoded", "export")
        kind, checksum = ("export", True) if output.kind == "export" else read_kind(directory)
        unit = "token"
        if kind == "export":
            sources = None if inputs is None else inputs.patterns
            numbers, lossless = (
                verify_export(
                    directory, sources, execution=execution, progress=progress, temp=temp
                ),
                None,
            )
        elif kind == "encoded":
            corpus, numbers = _verify_encoded(directory, inputs, execution, progress)
            if tokenizer is not None and tokenizer.sha256 != corpus.job.encode.tokenizer_sha256:
                raise VerificationError(
                    f"{directory} was encoded with another tokenizer than the one beside it: "
                    "encode it again"
                )
            lossless = keeps_texts(corpus.tokenizer, corpus.job.encode.rows)
        else:
            unit, numbers = _verify_counts(directory, inputs, execution, progress)
            lossless = None
    holds: dict[str, Any] = {
        **{name: number for name, number in numbers.items() if name not in FORMATS},
        "formats": {name: numbers[name] for name in sorted(FORMATS) if name in numbers},
    }
    return VerifySummary(
        directory=storage.located(directory),
        kind=kind,
        unit=unit,
        compared=inputs is not None,
        lossless=lossless,
        manifest_checksum=checksum,
        seconds=time.monotonic() - began,
        **holds,
    )


def _verify_encoded(
    directory: str, inputs: InputSettings | None, execution: Execution, progress: Progress
) -> tuple[VerifyingEncoded, Mapping[str, int]]:
    planned = plan_encoded(directory, read_encoded(directory), inputs=inputs)
    splits = [part.split for part in planned.parts]
    reads = [piece.path for one in splits for piece in one.pieces] if inputs else []
    size = sum(part.size(compare=inputs is not None) for part in planned.parts)
    return planned, _run(planned, inputs, execution, progress, reads=reads, size=size)


def _verify_counts(
    directory: str, inputs: InputSettings | None, execution: Execution, progress: Progress
) -> tuple[str, Mapping[str, int]]:
    planned = plan_counts(directory, stored_sets(directory), inputs=inputs)
    reads = [file.path for file in planned.files]
    sizes = (file.size for file in planned.files)
    size = sum(sizes) if inputs else sum(stored.size for stored in planned.parts)
    numbers = _run(planned, inputs, execution, progress, reads=reads, size=size)
    return planned.job.count.unit, numbers


def _run(
    planned: _Verifying,
    inputs: InputSettings | None,
    execution: Execution,
    progress: Progress,
    *,
    reads: Sequence[str],
    size: int,
) -> Mapping[str, int]:
    """Run the pipeline that checks what was planned; returns what it holds.

    Args:
        planned: what there seems to be to check, for totals.
        inputs: to compare it with.
        execution: where the work is done.
        progress: told how far it is.
        reads: the files of the inputs.
        size: bytes to read.
    """
    root = planned.job.directory
    pieces = max(len(planned.parts), len(planned.splits))
    request = VerifyRequest(
        output=OutputSettings(directory=root),
        manifest=planned.manifest,
        inputs=inputs and anywhere(inputs),
        job=planned.job,
    )
    with run_job(
        request,
        execution=execution,
        progress=progress,
        reads=reads or [root],
        pieces=pieces,
        size=size,
        lock=False,
    ) as result:
        pass
    if not (numbers := _verified(result))["parts"]:
        raise JobError("the runner does not say that it checked the parts: use another runner")
    return planned.stated.numbers if planned.manifest else numbers


def _verified(result: Any) -> dict[str, int]:
    """What `_conclude` found in a pipeline; no parts where the runner does not say."""
    names = (*_NUMBERS, *FORMATS)
    numbers = {name: metric(result, f"{name}_verified") for name in names}
    return {name: number for name, number in numbers.items() if number or name in _NUMBERS}
