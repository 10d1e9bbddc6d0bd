"""The plan of a count over files: made by its first step, gone by in all others."""

from __future__ import annotations

import uuid
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from bpe.counts.manifest import CountedInput
from bpe.errors import CountsError
from pipelines.corpus.inputs import find_inputs
from pipelines.corpus.planned import (
    absolute,
    changed_inputs,
    inputs_of,
    plan_of_run,
    read_splits,
    write_splits,
)
from pipelines.corpus.reading import Reading
from pipelines.corpus.splits import plan_splits
from pipelines.count.steps import FILE_BITS, count_job, count_plan, write_manifest
from pipelines.errors import ConfigError, JobError
from pipelines.output.directory import prepare
from pipelines.output.names import PLAN, read_json_object
from pipelines.storage import join
from pipelines.verify.counts import verify_counts

if TYPE_CHECKING:
    from collections.abc import Iterable

    from bpe.counts.manifest import CountsPart, Totals
    from bpe.counts.pruning import Losses
    from pipelines.corpus.inputs import InputFile, PassedOver
    from pipelines.corpus.splits import Split
    from pipelines.count.steps import CountJob
    from pipelines.output.names import Plan
    from pipelines.settings import CountSettings, InputSettings, OutputSettings, PretokenSettings


@dataclass(frozen=True, kw_only=True)
class Counting:
    """A job over files, planned.

    Attributes:
        job: for the workers.
        reading: for the workers: how splits are read.
        files: the inputs.
        passed_over: what else the patterns match.
        splits: the work.
        plan: what the job is, for its output directory.
    """

    job: CountJob
    reading: Reading
    files: tuple[InputFile, ...]
    passed_over: tuple[PassedOver, ...]
    splits: tuple[Split, ...]
    plan: Plan

    def is_complete(self) -> bool:
        """Whether an earlier run of this job finished, and left every file as it should be."""
        directory = self.job.directory
        then = read_json_object(join(directory, PLAN)) or {}
        if self.plan.differences(then) or changed_inputs(directory, self.files):
            return False
        try:
            verify_counts(directory)
        except (JobError, CountsError):
            return False
        return True


@dataclass(frozen=True, kw_only=True)
class CountRequest:
    """What a count carries in its graph: patterns and settings, no files.

    Attributes:
        inputs: the corpus.
        job: how it is counted, and the directory.
        output: what may be done with what is in the directory.
        run: the id of this run of the job, once it has one (`started`): who finds it in the
            directory is of the same run.
        counters_path: the file of progress slots on this machine; None where nobody watches.
    """

    inputs: InputSettings
    job: CountJob
    output: OutputSettings
    run: str = ""
    counters_path: str | None = None

    @classmethod
    def of(
        cls,
        *,
        inputs: InputSettings,
        pretokens: PretokenSettings,
        output: OutputSettings,
        settings: CountSettings,
    ) -> CountRequest:
        """A request that means the same in every process, whatever its working directory.

        Raises:
            ConfigError: the filesystem of the output cannot be used here.
            bpe.BpeError: the pre-tokenizer, the special tokens or the number of shards is wrong.
        """
        job = count_job(pretokens, output, settings)
        return cls(
            inputs=replace(inputs, patterns=tuple(map(absolute, inputs.patterns))),
            job=job,
            output=replace(output, directory=job.directory),
        )

    def started(self) -> CountRequest:
        """The request of one run, with an id."""
        return self if self.run else replace(self, run=uuid.uuid4().hex)

    @property
    def reading(self) -> Reading:
        """How splits are read."""
        reading = Reading.of(self.inputs, self.job.directory)
        return replace(reading, counters_path=self.counters_path)


def plan_counting(request: CountRequest) -> Counting:
    """Find the inputs and plan the job; nothing is written.

    Raises:
        InputError: there are no inputs.
        ConfigError: a setting is wrong.
    """
    inputs, job, reading = request.inputs, request.job, request.reading
    found = find_inputs(inputs)
    files = found.files
    splits = plan_splits(files, inputs.split_size)
    if job.track_order and len(files) >> FILE_BITS:
        raise ConfigError(
            f"{len(files)} files are too many to keep the order of documents (ties first-seen): "
            "put them together, or use other ties"
        )
    plan = count_plan(job, splits=len(splits), reading=reading, files=files)
    return Counting(
        job=job,
        reading=reading,
        files=files,
        passed_over=found.passed_over,
        splits=tuple(splits),
        plan=replace(plan, run=request.run),
    )


def begin_counting(request: CountRequest) -> list[Split] | None:
    """Plan a job, prepare its directory, and return its splits; None where all is counted already.

    Where the directory holds the splits of this run, the runner has started the job anew: they
    are returned, and nothing is listed, refused or removed.

    Raises:
        JobError: the job cannot be done; the class says why.
    """
    directory = request.job.directory
    if (splits := read_splits(directory, request.run)) is not None:
        return splits
    counting = plan_counting(request)
    if request.output.resume and counting.is_complete():
        return None
    prepare(request.output, counting.plan, reads=[file.path for file in counting.files])
    write_splits(directory, request.run, counting.splits)
    return list(counting.splits)


def finish_counting(
    results: Iterable[CountsPart | Losses | Totals], request: CountRequest
) -> dict[str, Any]:
    """Check that everything is there, and write the manifest; the arguments as `write_manifest`.

    Raises:
        OutputError: another job has taken the directory over.
        RecordError, JobError: as in `write_manifest`.
    """
    directory = request.job.directory
    splits = read_splits(directory, request.run) or []

    def check() -> None:
        plan_of_run(directory, request.run)

    check()
    files = [CountedInput(name=one.name, size=one.file_size) for one in inputs_of(splits)]
    return write_manifest(
        results, request.job, reading=request.reading, files=files, splits=len(splits), check=check
    )
