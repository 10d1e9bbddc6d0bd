"""Jobs over a corpus that are planned inside their pipelines: what all of them share.

The graph carries a `Request`: patterns and settings, no files. The first step lists the inputs,
plans, prepares the output directory, and stores the plan and its splits there under the id of the
run. All other steps go by them. A runner may start a job anew from its sources, when files were
added or changed meanwhile: the first step then finds its own run id, and keeps that plan. The step
that writes the last file reads the run id again: where another job has replaced it, this one ends.
"""

from __future__ import annotations

import contextlib
import os
import uuid
from abc import ABC, abstractmethod
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, ClassVar

import apache_beam as beam

from pipelines import storage
from pipelines.corpus.splits import read_splits, straggler, write_splits
from pipelines.elements import Step, pack, unpack
from pipelines.errors import ConfigError, OutputError
from pipelines.formats import FILE_FORMATS
from pipelines.local_runner import has_one_worker
from pipelines.output.directory import decide, prepare, run_of, write_files
from pipelines.output.lock import locked
from pipelines.output.names import MANIFEST
from pipelines.progress import many, size_text
from pipelines.run import check_job, run
from pipelines.storage import join

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from typing_extensions import Self

    from pipelines.corpus.inputs import InputFile, PassedOver
    from pipelines.corpus.splits import Split
    from pipelines.failures import Failures
    from pipelines.output.names import Plan
    from pipelines.progress import Progress
    from pipelines.settings import Execution, InputSettings, OutputSettings


@dataclass(frozen=True, kw_only=True)
class Planned:
    """What a job is about to do.

    Attributes:
        plan: what the job is, for its output directory.
        reads: paths of what the workers read.
        keep: names in the output directory that the job reads or manages itself.
        files: the inputs.
        passed_over: what else the patterns match.
        splits: the work.
        beside: more files that the workers need, by name.
        not_applied: what the tokenizer's file asks for that is left out.
    """

    plan: Plan
    reads: tuple[str, ...]
    keep: tuple[str, ...] = ()
    files: tuple[InputFile, ...] = ()
    passed_over: tuple[PassedOver, ...] = ()
    splits: tuple[Split, ...] = ()
    beside: Mapping[str, bytes] = field(default_factory=dict)
    not_applied: tuple[str, ...] = ()

    @property
    def pieces(self) -> int:
        """In how many pieces the work is done."""
        return max(len(self.splits), 1)

    @property
    def size(self) -> int | None:
        """Bytes that are read; None where nobody knows."""
        return sum(file.size for file in self.files) if self.files else None


@dataclass(frozen=True, kw_only=True)
class Request(ABC):
    """What a job carries in its graph; a kind of job says how it is planned, begun and finished.

    Attributes:
        output: the directory, and what may be done with what is in it.
        run: the id of this run of the job, once it has one (`started`).
        counters_path: the file of progress slots on this machine; None where nobody watches.
        name: of the kind of job.
        last_file: written when all else is done.
    """

    output: OutputSettings
    run: str = ""
    counters_path: str | None = None
    name: ClassVar[str]
    last_file: ClassVar[str] = MANIFEST

    @property
    def directory(self) -> str:
        """The output directory."""
        return self.output.directory

    @property
    @abstractmethod
    def shown(self) -> dict[str, str]:
        """What a runner's web UI shows of it, beside the output."""

    def started(self) -> Self:
        """The request of one run, with an id."""
        return self if self.run else replace(self, run=uuid.uuid4().hex)

    def after_plan(self) -> Self:
        """The request for the steps after the first, without what only that one needs."""
        return self

    @abstractmethod
    def begin(self) -> list[Any] | None:
        """Plan the job, prepare its directory, and return its splits; None if it is complete.

        Where the directory is of this run, the runner has started the job anew: the plan that is
        there stays, and nothing is listed, refused or removed.

        Raises:
            JobError: the job cannot be done; the class says why.
        """

    @abstractmethod
    def steps(self, planned: Any, failures: Failures) -> beam.PCollection[bytes]:
        """What the job makes of its splits, packed; `finish` is given all of it.

        Args:
            planned: PCollections: ``splits``, packed; ``begun``, one None where there is work.
            failures: where the job ends, and where errors are reported.
        """

    @abstractmethod
    def finish(self, results: Iterable[Any]) -> Any:
        """Check that everything is there, and write the last file; return what the job yields.

        Raises:
            OutputError: another job has taken the directory over.
            JobError: something is missing; the class says what.
        """

    def result(self) -> Any:
        """What `finish` returned in an earlier run that has done everything."""
        raise NotImplementedError

    def why_ended(self) -> str:
        """Why the work ended, where it need not reach its total."""
        return ""


@dataclass(frozen=True, kw_only=True)
class CorpusRequest(Request):
    """A job over files, which stores its splits beside its plan.

    Attributes:
        inputs: the corpus.
    """

    inputs: InputSettings

    @property
    def shown(self) -> dict[str, str]:
        """What a runner's web UI shows of it, beside the output."""
        return {"inputs": ", ".join(self.inputs.patterns)}

    @abstractmethod
    def plan(self) -> Planned:
        """Find what is to be done; nothing is written.

        Raises:
            JobError: the job cannot be done; the class says why.
        """

    def is_complete(self, planned: Planned) -> bool:  # noqa: ARG002 - of those that can tell
        """Whether an earlier run, which is resumed, has done everything."""
        return False

    def before(self, planned: Planned) -> None:
        """Do what comes before the output directory is prepared."""

    def begin(self) -> list[Split] | None:
        """Plan the job, prepare its directory, and return its splits; None if it is complete.

        Raises:
            JobError: the job cannot be done; the class says why.
        """
        directory = self.directory
        if run_of(directory) == self.run:
            stored = read_splits(directory, self.run)
            if stored is not None:
                return stored
        planned = self.plan()
        self.before(planned)
        if self.output.resume and self.is_complete(planned):
            return None
        prepare(self.output, planned.plan, reads=planned.reads, keep=planned.keep)
        write_files(directory, planned.beside)
        write_splits(directory, self.run, planned.splits)
        return list(planned.splits)


def absolute(path: str) -> str:
    """A path or pattern that means the same in every working directory."""
    return path if "://" in path else os.path.join(os.getcwd(), path)  # noqa: PTH109, PTH118 - a pattern


def anywhere(inputs: InputSettings) -> InputSettings:
    """The same inputs, for a process in any working directory."""
    patterns = (
        f"{name}={absolute(pattern)}" if name else absolute(pattern)
        for name, pattern in inputs.named_patterns
    )
    return replace(inputs, patterns=tuple(patterns))


def _begun(_: None, request: Request) -> Iterator[Any]:
    """The splits; None as ``begun`` too, or all the job yields as ``complete``."""
    splits = request.begin()
    if splits is None:
        yield beam.pvalue.TaggedOutput("complete", request.result())
        return
    yield beam.pvalue.TaggedOutput("begun", None)
    yield from map(pack, splits)


def _finished(element: tuple[None, Iterable[bytes]], request: Request) -> list[Any]:
    return [request.finish(map(unpack, element[1]))]


def dealt(label: str, elements: beam.PCollection[Any]) -> beam.PCollection[Any]:
    """Deal elements to all workers; where there is one, they stay: a shuffle takes 30 ms."""
    if has_one_worker(elements.pipeline.options):
        return elements
    return elements | label >> beam.Reshuffle()


class PlannedTransform(beam.PTransform):  # type: ignore[misc]  # Beam has no types
    """A job, for ``p | ...``.

    Args:
        request: the job.
        failures: where its errors are reported.

    Attributes:
        instead: what takes the elements of a PCollection, which this does not.
    """

    instead: ClassVar[str] = "it takes no PCollection"

    def __init__(self, request: Request, failures: Failures) -> None:
        super().__init__()
        self._request = request
        self._failures = failures

    def display_data(self) -> dict[str, Any]:
        """What a runner's web UI shows."""
        return {"output": self._request.directory, **self._request.shown}

    def expand(self, begin: beam.pvalue.PBegin) -> beam.PCollection[Any]:
        """Plan, do the work, and write the last file."""
        if not isinstance(begin, beam.pvalue.PBegin):
            name = type(self).__name__
            raise ConfigError(
                f"{name} reads its inputs itself: apply it to the pipeline, p | {name}(...); "
                f"{self.instead}"
            )
        request, failures = self._request.started(), self._failures
        start = begin | "Start" >> beam.Create([None], reshuffle=False)
        # So that Beam's own functions alone open a worker's connections: where the worker lacks
        # this package, Flink would wait three minutes for them and not say why.
        connected = dealt("Connect", start)
        planned = connected | "Plan" >> beam.ParDo(Step(failures, _begun, request)).with_outputs(
            "begun", "complete", main="splits"
        )
        request = request.after_plan()
        finished = (
            request.steps(planned, failures)
            | "Gather results" >> beam.Map(lambda result: (None, result))
            | "Group results" >> beam.GroupByKey()
            | "Finish" >> beam.ParDo(Step(failures, _finished, request))
        )
        return (finished, planned.complete) | "Result" >> beam.Flatten()


@contextlib.contextmanager
def run_job(
    request: Request,
    planned: Planned,
    *,
    execution: Execution,
    progress: Progress,
    held: str | None = None,
    ready: Callable[[], object] | None = None,
) -> Iterator[Any]:
    """Run a job, and show how far it is; gives what Beam returns, the directory still locked.

    Args:
        request: the job.
        planned: what the command saw. It lists the inputs as well, which costs little beside
            reading them, to fail before a job is sent anywhere and to show totals; the first step
            of the pipeline lists them again, and decides.
        execution: where the work is done.
        progress: told how far it is.
        held: a directory that the caller has locked.
        ready: called when nothing speaks against the job, before it changes anything.

    Raises:
        JobError: something is wrong; the class says what.
    """
    directory, name = request.directory, request.name
    check_job(execution, progress, reads=planned.reads, writes=directory)
    with contextlib.ExitStack() as locks:
        if directory != held:
            locks.enter_context(locked(directory))
        decide(request.output, planned.plan, reads=planned.reads, keep=planned.keep)
        if ready is not None:
            ready()
        if isinstance(request, CorpusRequest):
            tell_work(name, planned, progress)
        with progress.stage(name, planned.size) as stage:
            stage.set_slots(planned.pieces)
            watched = replace(request, counters_path=stage.counters_path)
            result = run(
                lambda p, failures: p | name >> PlannedTransform(watched, failures),
                execution=execution,
                pieces=planned.pieces,
                stage=stage,
                progress=progress,
                name=name,
            )
            see_arrived(directory, request.last_file)
            if why := request.why_ended():
                stage.ended(why)
        yield result


def tell_work(name: str, planned: Planned, progress: Progress) -> None:
    """Say what a job over files is about to read."""
    files, splits = many(len(planned.files), "file"), many(len(planned.splits), "split")
    size = sum(file.size for file in planned.files)
    progress.log(f"{name}: {files}, {size_text(size)} as stored, {splits}")
    if (file := straggler(planned.files, planned.splits)) is not None:
        uncut = f"{FILE_FORMATS[file.format].uncut} (`format` {file.format})"
        why = uncut if file.compression == "none" else "compressed"
        progress.log(
            f"{name}: {file.path}, {size_text(file.size)}, is {why} and cannot be divided: it "
            f"is one of {splits} and keeps one worker busy: divide it beforehand, or store it "
            "uncompressed as lines, jsonl or Parquet"
        )


def see_arrived(directory: str, name: str) -> None:
    """See that what workers wrote is where this process looks for it.

    Raises:
        OutputError: it is not: they wrote to files of their own.
    """
    path = join(directory, name)
    if not storage.exists(path):
        raise OutputError(
            f"{path} is not there, though the runner says the job is done: its workers wrote to "
            "files of their own. Use a filesystem that both see (gs://, s3://, abfs://, a mounted "
            "directory)"
        )
