"""The job of comparing tokenizers: its plan, its pipeline, and what `bpe compare` runs.

Splits are read and encoded with every tokenizer inside one step; totals of groups and counted
pieces leave it. Pieces are merged by shard as in `pipelines.count.job`; each shard yields its
examples.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import logging
import operator
import tempfile
import uuid
import zlib
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import apache_beam as beam

from bpe._codec import decode, encode
from pipelines import storage
from pipelines.compare.measures import USED_GROUPS, GroupTotals, PieceCutter, find_differences
from pipelines.compare.steps import (
    BY_FILE,
    EXAMPLES,
    CompareJob,
    SplitComparer,
    SplitFailures,
    Subject,
    Totals,
    comparison,
    group_column,
    load_sent,
    read_comparison,
    tokenizer_names,
    tokenizers_of,
)
from pipelines.compare.tokenizers import TokenizerFile, load
from pipelines.corpus.documents import ReadOptions  # noqa: TC001 - decoded by its annotation
from pipelines.corpus.inputs import describe_inputs, find_inputs
from pipelines.corpus.reading import Reading
from pipelines.corpus.splits import plan_splits
from pipelines.count.job import MergeRuns
from pipelines.count.steps import CountJob, drained
from pipelines.elements import OncePerProcess, Step, StorageDoFn, in_window, pack, unpack
from pipelines.errors import ConfigError, JobError
from pipelines.failures import job_errors
from pipelines.local_runner import is_local
from pipelines.output.directory import plan_of_run
from pipelines.output.names import Plan, json_bytes
from pipelines.planned import (
    CorpusRequest,
    Planned,
    anywhere,
    run_planned,
)
from pipelines.progress import NoProgress
from pipelines.run import options
from pipelines.settings import OutputSettings
from pipelines.stage.beam import gathered
from pipelines.storage import join
from pipelines.tokenizer_files import tokenizer_json

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from apache_beam.utils.windowed_value import WindowedValue

    from bpe import Tokenizer
    from bpe.counting import PretokenCounter
    from pipelines.failures import Failures
    from pipelines.progress import Progress
    from pipelines.settings import Execution, InputSettings

_LOGGER = logging.getLogger(__name__)
RESULT = "comparison.json"


@dataclass(frozen=True, kw_only=True)
class _Input:
    """A file of the corpus."""

    name: str
    size: int


@dataclass(frozen=True, kw_only=True)
class _Settings:
    """What the first step has planned, as it stands in the plan.

    Attributes:
        tokenizers: their files and names.
        tokenizers_sha256: of the ``tokenizer.json`` of each (hex).
        options: how records become documents.
        by: the groups: None, ``file``, or a column.
        used: whether to keep which ids occur in each group.
        inputs: the files of the corpus.
    """

    tokenizers: tuple[TokenizerFile, ...]
    tokenizers_sha256: tuple[str, ...]
    options: ReadOptions
    by: str | None
    used: bool
    inputs: tuple[_Input, ...]


@dataclass(frozen=True, kw_only=True)
class CompareRequest(CorpusRequest):
    """What a comparison carries in its graph.

    Attributes:
        tokenizers: two or more.
        tokenizer_jsons: the tokenizers themselves, deflated: their files are those of the command.
        by: ``file``, or a field or column whose values are groups.
        examples: pieces to show; 0 to count none.
    """

    tokenizers: tuple[TokenizerFile, ...]
    tokenizer_jsons: tuple[bytes, ...]
    by: str | None = None
    examples: int = EXAMPLES
    name = "compare"
    last_file = RESULT

    @classmethod
    def of(
        cls,
        *,
        inputs: InputSettings,
        tokenizers: Sequence[TokenizerFile],
        directory: str,
        by: str | None = None,
        examples: int = EXAMPLES,
    ) -> CompareRequest:
        """A request that means the same in every process, whatever its working directory.

        Raises:
            InputError: a tokenizer cannot be read.
            ConfigError: nothing says how it cuts text.
        """
        texts = [tokenizer_json(load(file), file.path) for file in tokenizers]
        return cls(
            inputs=anywhere(inputs),
            output=OutputSettings(directory=directory),
            tokenizers=tuple(tokenizers),
            tokenizer_jsons=tuple(zlib.compress(text.encode()) for text in texts),
            by=by,
            examples=examples,
        )

    @property
    def shown(self) -> dict[str, str]:
        """What a runner's web UI shows of it, beside the output."""
        return {**super().shown, "tokenizers": ", ".join(one.name for one in self.tokenizers)}

    def after_plan(self) -> CompareRequest:
        """The request without the tokenizers, which then lie in the directory."""
        return replace(self, tokenizer_jsons=())

    def plan(self) -> Planned:
        """Find the inputs and plan the job; nothing is written.

        Raises:
            InputError: there are no inputs.
            ConfigError: a setting is wrong.
        """
        found = find_inputs(self.inputs)
        files, by = found.files, self.by
        splits = plan_splits(files, self.inputs.split_size)
        column = group_column(files, by)
        texts = tuple(map(zlib.decompress, self.tokenizer_jsons))
        sha256s = tuple(hashlib.sha256(text).hexdigest() for text in texts)
        settings = _Settings(
            tokenizers=self.tokenizers,
            tokenizers_sha256=sha256s,
            options=Reading.of(self.inputs, self.directory, keep=column).options,
            by=by if by in (None, BY_FILE) else column[0].name,
            used=by != BY_FILE or len(files) <= USED_GROUPS,
            inputs=tuple(_Input(name=file.name, size=file.size) for file in files),
        )
        return Planned(
            plan=Plan(
                kind="comparison",
                parts=(len(splits),),
                settings=encode(settings),
                inputs=describe_inputs(files),
                run=self.run,
            ),
            reads=tuple(file.path for file in files),
            files=files,
            splits=tuple(splits),
            beside=dict(zip(tokenizer_names(len(texts)), texts, strict=True)),
        )

    def steps(self, begun: Any, failures: Failures) -> Any:
        """Compare over the splits, add totals up, and find the pieces that differ most."""
        compared = self.dealt_splits(begun, failures) | "Compare splits" >> beam.ParDo(
            _CompareSplits(self, failures)
        ).with_outputs("totals", "failures", main="pieces")
        totals = (
            compared.totals
            | "Add totals" >> beam.CombinePerKey(_AddTotals())
            | "Name totals" >> beam.MapTuple(_named)
        )
        differences = (
            compared.pieces
            | "Merge pieces" >> beam.CombinePerKey(MergeRuns(failures))
            | "Find differences" >> beam.ParDo(Step(failures, _differences, self, OncePerProcess()))
        )
        made = (totals, differences, compared.failures) | "All results" >> beam.Flatten()
        return gathered(begun, made, failures, _fold, self)

    def finish(self) -> str:
        """The file of the comparison."""
        return join(self.directory, RESULT)


def _fold(results: Iterable[Any], request: CompareRequest) -> None:
    """Bring all results together, and write the file of the comparison."""
    job, subject = planned_job(request)
    result = comparison(results, job, subject=subject, tokenizers=tokenizers_of(job))
    storage.write(join(request.directory, RESULT), json_bytes(result))


def _planned_settings(request: CompareRequest) -> _Settings:
    return decode(_Settings, plan_of_run(request.directory, request.run)["settings"])


def planned_job(request: CompareRequest) -> tuple[CompareJob, Subject]:
    """What the first step has planned, in a worker.

    Raises:
        OutputError: another job has taken the directory over.
    """
    settings = _planned_settings(request)
    tokenizers = load_sent(request.directory, settings.tokenizers_sha256)
    cutter = PieceCutter(one.pretokenizer for one in tokenizers)
    job = CompareJob(
        directory=request.directory,
        tokenizers_sha256=settings.tokenizers_sha256,
        reading=Reading(
            directory=request.directory,
            options=settings.options,
            max_failures=request.inputs.max_failures,
            counters_path=request.counters_path,
        ),
        by=settings.by,
        cutter=cutter,
        counting=CountJob(directory=request.directory, pretokenizer=cutter.counted),
        names=tuple(file.name for file in settings.tokenizers),
        used=settings.used,
        examples=request.examples,
    )
    inputs = tuple((one.name, one.size) for one in settings.inputs)
    return job, Subject(tokenizers=settings.tokenizers, inputs=inputs)


def _tokenizers(job: CompareJob, loaded: OncePerProcess) -> tuple[Tokenizer, ...]:
    return loaded.get(" ".join(job.tokenizers_sha256), lambda: tokenizers_of(job))


class _CompareSplits(StorageDoFn):
    def __init__(self, request: CompareRequest, failures: Failures) -> None:
        super().__init__()
        self._request = request
        self._failures = failures
        self._tokenizers = OncePerProcess()
        self._job: CompareJob | None = None

    def start_bundle(self) -> None:
        self._pieces: PretokenCounter | None = None

    def process(self, element: bytes) -> Iterator[Any]:
        if self._failures.stopped():
            return
        with self._failures.reported():
            if self._job is None:
                self._job = planned_job(self._request)[0]
                self._comparer = SplitComparer(self._job, _tokenizers(self._job, self._tokenizers))
            if self._pieces is None:
                self._pieces = self._job.counting.pretoken_counter()
            for result in self._comparer.run(unpack(element), self._failures, self._pieces):
                if isinstance(result, SplitFailures):
                    yield beam.pvalue.TaggedOutput("failures", pack(result))
                elif isinstance(result, dict):
                    for key, totals in result.items():
                        yield beam.pvalue.TaggedOutput("totals", (key, pack(totals)))
                else:
                    yield result

    def finish_bundle(self) -> Iterator[WindowedValue]:
        if self._job is None or self._pieces is None or self._failures.stopped():
            return
        with self._failures.reported():
            pieces, self._pieces = self._pieces, None
            for result in drained(pieces, self._job.counting):
                yield in_window(result)


class _AddTotals(beam.CombineFn):  # type: ignore[misc]
    """Adds up the totals of a group."""

    def create_accumulator(self) -> GroupTotals:
        return GroupTotals()

    def add_input(self, accumulator: GroupTotals, totals: bytes) -> GroupTotals:
        more: GroupTotals = unpack(totals)
        return accumulator + more

    def merge_accumulators(self, accumulators: Iterable[GroupTotals]) -> GroupTotals:
        return functools.reduce(operator.add, accumulators, GroupTotals())

    def extract_output(self, accumulator: GroupTotals) -> bytes:
        return pack(accumulator)


def _differences(
    element: tuple[int, bytes], request: CompareRequest, tokenizers: OncePerProcess
) -> Iterator[bytes]:
    sha256s = _planned_settings(request).tokenizers_sha256
    loaded = tokenizers.get(" ".join(sha256s), lambda: load_sent(request.directory, sha256s))
    yield pack(tuple(find_differences(element[1], loaded, examples=request.examples)))


def _named(key: str, totals: bytes) -> bytes:
    return pack(Totals(key=key, totals=unpack(totals)))


def compare(
    *,
    inputs: InputSettings,
    tokenizers: Sequence[TokenizerFile],
    execution: Execution,
    by: str | None = None,
    examples: int = EXAMPLES,
    output: str | None = None,
    progress: Progress | None = None,
) -> dict[str, Any]:
    """Compare what tokenizers make of a corpus; return the result, as JSON values.

    Args:
        inputs: the corpus.
        tokenizers: two or more.
        execution: where the work is done.
        by: ``file``, or a field or column whose values are groups.
        examples: how many pieces to show on which two tokenizers differ most; 0: do not look.
        output: a file to write the result to; needed where workers do not share this machine.
        progress: told how far it is.

    Raises:
        JobError: something is wrong; the class says what.
    """
    progress = progress or NoProgress()
    with job_errors(), _workspace(execution, output) as directory:
        request = CompareRequest.of(
            inputs=inputs, tokenizers=tokenizers, directory=directory, by=by, examples=examples
        )
        planned = replace(request, inputs=inputs).plan()
        with run_planned(request.started(), planned, execution=execution, progress=progress):
            result = read_comparison(join(directory, RESULT))
        if output is not None:
            storage.write(storage.located(output), json_bytes(result))
    return result


@contextlib.contextmanager
def _workspace(execution: Execution, output: str | None) -> Iterator[str]:
    """A directory for the files of a job while it runs, where all of its workers reach it.

    It may not be there yet; it is removed at the end with all that is in it.

    Args:
        execution: where the work is done.
        output: the file of the result; where workers do not share this machine, it lies beside it.

    Raises:
        ConfigError: nothing says where that is.
    """
    if is_local(options(execution)):
        with tempfile.TemporaryDirectory(prefix="bpe-compare-") as folder:
            yield folder
        return
    if output is None:
        raise ConfigError(
            f"`runner` {execution.runner}: its workers write the result to a file: give `output` "
            "FILE.json on a filesystem that they share with this machine"
        )
    folder = f"{storage.located(output)}.{uuid.uuid4().hex[:8]}"
    try:
        yield folder
    finally:
        _remove(folder)


def _remove(folder: str) -> None:
    """Remove the directory of a job with all that workers left in it."""
    try:
        storage.remove_tree(folder)
    except JobError as error:
        _LOGGER.warning("%s: cannot remove what the job left for itself: %s", folder, error)
