"""Plan and run jobs over a corpus, which are planned inside their pipelines.

The graph carries the job: patterns and settings, no files. The first step lists the inputs, plans,
prepares the output directory, and stores the plan and its splits there under the id of the run. All
other steps follow the stored plan. A runner may start a job anew from its sources, when files were
added or changed meanwhile: the first step then finds its own run id, and keeps that plan. The step
that writes the last file reads the run id again: if another job has replaced the id, the job ends.
"""

from __future__ import annotations

import contextlib
import os
import time
import zlib
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, ClassVar

from pipelines.append import find_arrived
from pipelines.corpus.inputs import Inputs, describe_inputs, find_inputs
from pipelines.corpus.splits import plan_splits, read_splits, straggler, write_splits
from pipelines.errors import InputError, OutputError
from pipelines.formats import FILE_FORMATS
from pipelines.output.directory import decide, locked, plan_of_run, prepare, write_files
from pipelines.output.names import RUN, read_plan
from pipelines.progress import many, size_text
from pipelines.settings import AppendSettings
from pipelines.stage.job import run_job
from pipelines.stage.stage import Job
from pipelines.storage import is_local

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from typing_extensions import Self

    from pipelines.corpus.splits import Split
    from pipelines.output.names import Plan
    from pipelines.progress import Progress
    from pipelines.settings import Execution, InputSettings


@dataclass(frozen=True, kw_only=True)
class Planned(Inputs):
    """The work that a job plans for its inputs.

    Attributes:
        plan: the plan of the job, as it is stored in the output directory.
        splits: the splits of the inputs.
        not_applied: requests of the tokenizer's file that the job leaves out.
    """

    plan: Plan
    splits: tuple[Split, ...] = ()
    not_applied: tuple[str, ...] = ()

    @property
    def reads(self) -> tuple[str, ...]:
        """Return the paths of all files that the workers read."""
        return tuple(file.path for file in self.files)


@dataclass(frozen=True, kw_only=True)
class Done:
    """A pipeline that has ended; the output directory is still locked.

    Attributes:
        complete: whether an earlier run had already completed the job.
        result: the result that Beam returned.
        seconds: the duration of the job.
        execution: where the job ran.
    """

    complete: bool
    result: Any
    seconds: float
    execution: Execution


class NothingArrivedError(InputError):
    """A job with ``--append`` found no file, and has not taken any before."""


@dataclass(frozen=True, kw_only=True)
class CorpusRequest(Job):
    """A job over files, which stores its splits with its plan.

    Attributes:
        inputs: the corpus.
        appending: whether the job takes only files that the output directory lacks.
        sent: files for the workers, deflated; empty once the output directory has the files.
        takes_again_by_job: whether a changed file makes an appending job process all files again
            that an earlier job took together with the file.
    """

    inputs: InputSettings
    appending: AppendSettings = field(default_factory=AppendSettings)
    sent: Mapping[str, bytes] = field(default_factory=dict)
    takes_again_by_job: ClassVar[bool] = False

    def started(self) -> Self:
        """Return the job of one run, with absolute paths."""
        return replace(super().started(), inputs=anywhere(self.inputs))

    def elsewhere(self) -> Self:
        """Return the job for workers that do not see the files of this machine."""
        return self

    def after_plan(self) -> Self:
        """Return the job without the files that the output directory now has."""
        return replace(self, sent={})

    def worker_files(self) -> dict[str, bytes]:
        """Return the files that the workers need in the output directory, by name."""
        return {name: zlib.decompress(data) for name, data in self.sent.items()}

    @property
    def shown(self) -> dict[str, str]:
        """Return the values that a runner's web UI shows of the job."""
        return {**super().shown, "inputs": ", ".join(self.inputs.patterns)}

    def find(self) -> Inputs:
        """Return the files that the job takes; errors as in `find_inputs` and `find_arrived`."""
        if not self.appending.appends:
            return find_inputs(self.inputs)
        generation, fixed = (None, set[str]()) if self.output.overwrite else self.appended_to()
        return find_arrived(
            *(self.directory, generation, self.inputs, self.appending),
            fixed=fixed,
            by_job=self.takes_again_by_job,
        )

    def appended_to(self) -> tuple[int | None, set[str]]:
        """Return the last generation, or None, and the names of files that cannot be taken again.

        Raises:
            InputError, bpe.errors.CountsError: the output directory cannot be read.
        """
        return None, set()

    def planned(self, found: Inputs, splits: Sequence[Split], plan: Plan) -> Planned:
        """Return the plan for these files.

        Args:
            found: the files.
            splits: the splits of the files.
            plan: parts and settings of this job alone.
        """
        before = read_plan(self.directory).get("parts", ()) if found.generation else ()
        return Planned(
            **vars(found),
            splits=tuple(splits),
            plan=replace(
                plan,
                parts=(*plan.parts, *before),
                inputs=describe_inputs(found.files),
                run=self.run,
                base=found.base,
                generation=found.generation,
            ),
        )

    def split(self, found: Inputs) -> list[Split]:
        """Return the splits of these files."""
        whole = self.appending.appends
        size = self.inputs.split_size
        return plan_splits(found.files, size, generation=found.generation, whole=whole)

    def plan(self) -> Planned:
        """Plan the work of the job; write nothing.

        Raises:
            JobError: the job cannot be done; the class of the error says why.
        """
        raise NotImplementedError

    def keep(self, planned: Planned) -> bool:
        """Keep the finished work of an earlier run; return whether nothing remains to do."""
        return self.appending.appends and not planned.files

    def tell(self, planned: Planned, progress: Progress) -> None:
        """Log messages to the user before the work begins."""

    def tidy(self) -> None:
        """Remove leftovers of earlier appending jobs, when there is nothing to append."""

    def summarize(self, planned: Planned, done: Done | None) -> Any:
        """Return the summary of the job.

        Args:
            planned: the planned work.
            done: the pipeline that ran; None if there was nothing to append.
        """
        raise NotImplementedError

    def begin(self) -> bool:
        """Plan the job and prepare its directory, once a run; return whether there is work."""
        directory = self.directory
        if (
            read_plan(directory).get(RUN) == self.run
            and read_splits(directory, self.run) is not None
        ):
            return True
        planned = self.plan()
        if self.keep(planned):
            return False
        prepare(self.output, planned.plan, reads=planned.reads)
        write_files(directory, self.worker_files())
        write_splits(directory, self.run, planned.splits, earlier=planned.earlier)
        return True


def deflated(files: Mapping[str, bytes]) -> dict[str, bytes]:
    """Compress files, by name, for the graph of a pipeline."""
    return {name: zlib.compress(data) for name, data in files.items()}


def planned_splits(directory: str, run: str) -> list[Split]:
    """Return the splits that the first step of a run has planned.

    Raises:
        OutputError: another job has taken the directory over.
    """
    plan_of_run(directory, run)
    found = read_splits(directory, run)
    if found is None:
        raise OutputError(f"{directory}: the splits of this job cannot be read: start it again")
    return found


def absolute(path: str) -> str:
    """Return a path or pattern as an absolute one; a URL is not changed."""
    # A pattern is text, which Path would normalize.
    return os.path.join(os.getcwd(), path) if is_local(path) else path  # noqa: PTH109, PTH118


def anywhere(inputs: InputSettings) -> InputSettings:
    """Return the inputs with absolute patterns."""
    patterns = (
        f"{name}={absolute(pattern)}" if name else absolute(pattern)
        for name, pattern in inputs.named_patterns
    )
    return replace(inputs, patterns=tuple(patterns))


def run_once(
    request: CorpusRequest,
    *,
    execution: Execution,
    progress: Progress,
    held: bool = False,
    ready: Callable[[Planned], object] = lambda _: None,
) -> Any:
    """Plan a job over files and run it; return its summary.

    Args:
        request: the job, with the paths that the user gave, for messages.
        execution: where the job runs.
        progress: the display of the progress.
        held: whether the caller has locked the output directory.
        ready: called with the plan of this process after all checks, before the job changes
            anything; may raise to refuse the job. The first step of the pipeline plans again, and
            only that plan counts.

    Raises:
        JobError: something is wrong; the class says what.
    """
    planned, appends = request.plan(), request.appending.appends
    if appends and not planned.files and planned.earlier is None:
        over = "".join(f"; {one}" for one in planned.passed_over)
        raise NothingArrivedError(
            f"no file has arrived that `input` matches{over}: check the patterns; in a shell, put "
            "quotes around one"
        )
    request.tell(planned, progress)
    with contextlib.ExitStack() as stack:

        def begin() -> None:
            if not held:
                stack.enter_context(locked(request.directory))
            decide(request.output, planned.plan, reads=planned.reads)
            ready(planned)

        if appends and not planned.files:
            begin()
            write_files(request.directory, request.worker_files())
            request.tidy()
            return request.summarize(planned, None)
        _tell_work(request, planned, progress)
        began, job = time.monotonic(), request.started()
        result = run_job(
            job,
            execution=execution,
            progress=progress,
            reads=planned.reads,
            pieces=max(len(planned.splits), 1),
            size=sum(file.size for file in planned.files),
            ready=begin,
        )
        complete = read_plan(job.directory).get(RUN) != job.run
        if complete:
            progress.log(f"{job.name}: {job.directory} is complete")
        seconds = time.monotonic() - began
        done = Done(complete=complete, result=result, seconds=seconds, execution=execution)
        return request.summarize(planned, done)


def _tell_work(job: CorpusRequest, planned: Planned, progress: Progress) -> None:
    files, splits = many(len(planned.files), "file"), many(len(planned.splits), "split")
    size = sum(file.size for file in planned.files)
    progress.log(f"{job.name}: {files}, {size_text(size)} as stored, {splits}")
    if (file := straggler(planned.files, job.inputs.split_size)) is not None:
        uncut = f"{FILE_FORMATS[file.format].uncut} (`format` {file.format})"
        why = uncut if file.compression == "none" else "compressed"
        progress.log(
            f"{job.name}: {file.path}, {size_text(file.size)}, is {why} and cannot be divided: it "
            f"is one of {splits} and keeps one worker busy: divide it beforehand, or store it "
            "uncompressed as lines, jsonl or Parquet"
        )
