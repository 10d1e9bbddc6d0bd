"""A job of stages: what it is made of, and running it for a command."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar

from pipelines.output.lock import locked
from pipelines.output.names import MANIFEST
from pipelines.planned import see_arrived
from pipelines.run import check_job, run
from pipelines.stage.beam import RunStages

if TYPE_CHECKING:
    from collections.abc import Iterable

    from typing_extensions import Self

    from pipelines.progress import Progress
    from pipelines.settings import Execution
    from pipelines.stage.stage import Stage


@dataclass(frozen=True, kw_only=True)
class StagedJob:
    """A job of stages; small, and picklable.

    Attributes:
        directory: of the output.
        run: the id of this run of the job.
        counters_path: the file of progress slots on this machine; None where nobody watches.
        name: of the kind of job.
        last_file: the file that makes the output complete; empty where a job writes none.
    """

    directory: str
    run: str
    counters_path: str | None = None
    name: ClassVar[str]
    last_file: ClassVar[str] = MANIFEST

    @property
    def shown(self) -> dict[str, str]:
        """What a runner's web UI shows of it."""
        return {"output": self.directory}

    @property
    def stages(self) -> tuple[Stage, ...]:
        """In order."""
        raise NotImplementedError

    def begin(self) -> bool:
        """Plan the job and prepare its directory, in a worker; False where all is done already.

        Raises:
            JobError: the job cannot be done; the class says why.
        """
        raise NotImplementedError

    def finish(self) -> None:
        """Write the last file, when all stages are folded.

        Raises:
            JobError: something is missing; the class says what.
        """
        raise NotImplementedError

    def watched(self, counters_path: str | None) -> Self:
        """The same job, whose workers tell their progress to a file of slots."""
        return replace(self, counters_path=counters_path)


def run_stages(
    job: StagedJob,
    *,
    execution: Execution,
    progress: Progress,
    reads: Iterable[str],
    pieces: int,
    size: int,
    writes: str = "",
    lock: bool = True,
) -> Any:
    """Run a job, and show how far its last stage is; returns what Beam returns.

    Args:
        job: the job.
        execution: where the work is done.
        progress: told how far it is.
        reads: files or directories that workers read.
        pieces: in how many units the last stage does its work, about.
        size: bytes that it reads, about.
        writes: where workers write; empty for the directory of the job.
        lock: whether to keep other jobs out of the directory.

    Raises:
        JobError: something is wrong; the class says what.
    """
    check_job(execution, progress, reads=reads, writes=writes or job.directory)

    def work() -> Any:
        with progress.stage(job.name, size) as stage:
            stage.set_slots(pieces)
            watched = job.watched(stage.counters_path)
            result = run(
                lambda p, failures: p | job.name >> RunStages(watched, failures),
                execution=execution,
                pieces=pieces,
                stage=stage,
                progress=progress,
                name=job.name,
            )
            if job.last_file:
                see_arrived(job.directory, job.last_file)
        return result

    if not lock:
        return work()
    with locked(job.directory):
        return work()
