"""Flink on this machine: a JobManager, TaskManagers, and Beam's job server in front of them."""

from __future__ import annotations

import contextlib
import json
import urllib.request
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from tests.cluster import cache
from tests.cluster.processes import HOST, free_ports, java_program, wait_until

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from typing_extensions import Self

    from tests.cluster.processes import Program

# Small jobs end before code that is optimized more, or garbage collected by more threads, pays.
_SHORT_LIVED = ("-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC")
# A job starts again after a pause, and a worker is kept for the next step of its job: for less
# than the pause, else a job that starts again is given the worker that has just died.
RESTART_SECONDS = 8
TASKMANAGERS, SLOTS = 2, 2  # slots of each, for a task of a step
KEPT_MILLIS = 5_000
# Without Flink's start scripts every part of a TaskManager's memory must be named. The times
# allow for a machine that is busy: a loss that is none costs more than one that is found late.
_CONFIGURATION = {
    "jobmanager.rpc.address": HOST,
    "jobmanager.bind-host": HOST,
    "rest.address": HOST,
    "rest.bind-address": HOST,
    "taskmanager.host": HOST,
    "taskmanager.bind-host": HOST,
    "taskmanager.numberOfTaskSlots": str(SLOTS),
    "taskmanager.cpu.cores": "1.0",
    "taskmanager.memory.task.heap.size": "256m",
    "taskmanager.memory.task.off-heap.size": "64m",
    "taskmanager.memory.framework.heap.size": "128m",
    "taskmanager.memory.framework.off-heap.size": "64m",
    "taskmanager.memory.network.min": "128m",
    "taskmanager.memory.network.max": "128m",
    "taskmanager.network.sort-shuffle.min-buffers": "64",  # of 32 KiB; many steps run at once
    "taskmanager.memory.managed.size": "128m",
    "taskmanager.memory.jvm-metaspace.size": "256m",
    "taskmanager.memory.jvm-overhead.min": "192m",
    "taskmanager.memory.jvm-overhead.max": "192m",
    "heartbeat.interval": "2000",
    "heartbeat.timeout": "60000",  # a process that is gone is found sooner, by calls that fail
    "pekko.startup-timeout": "120 s",
    "pekko.ask.timeout": "120 s",
    "web.timeout": "120000",
    "restart-strategy.type": "fixed-delay",
    # A lost TaskManager costs several: steps that had ended left what they made there.
    "restart-strategy.fixed-delay.attempts": "30",
    "restart-strategy.fixed-delay.delay": f"{RESTART_SECONDS} s",
}


def flags(endpoint: str, *, parallelism: int) -> list[str]:
    """Beam's arguments, after ``--``, for a job on Flink.

    Args:
        endpoint: of the job server.
        parallelism: tasks of a step at once.
    """
    return [
        f"--job_endpoint={endpoint}",
        f"--parallelism={parallelism}",
        f"--environment_cache_millis={KEPT_MILLIS}",
    ]


@dataclass(frozen=True)
class JobServer:
    """Beam's job server in front of a Flink.

    Attributes:
        program: that runs.
        endpoint: where jobs are sent.
    """

    program: Program
    endpoint: str

    @classmethod
    @contextlib.contextmanager
    def started(
        cls, folder: Path, *, master: str = "[local]", ports: tuple[int, int, int] | None = None
    ) -> Iterator[Self]:
        """Start it, and wait until it takes jobs.

        Args:
            folder: for its log and what is staged.
            master: the address of a JobManager; ``[local]`` for a Flink inside its own process.
            ports: of jobs, artifacts and expansion; None for free ones.
        """
        job, artifact, expansion = ports or free_ports(3)
        with _program(
            "job-server",
            folder,
            "org.apache.beam.runners.flink.FlinkJobServerDriver",
            f"--flink-master={master}",
            f"--job-host={HOST}",
            f"--job-port={job}",
            f"--artifact-port={artifact}",
            f"--expansion-port={expansion}",
            f"--artifacts-dir={folder / 'artifacts'}",
            heap="768m",
        ) as program:
            program.wait_for(job).wait_for(artifact)
            yield cls(program, f"{HOST}:{job}")


@dataclass
class Flink:
    """A standalone cluster: a JobManager and its TaskManagers, each a process.

    Attributes:
        folder: for logs and configuration.
        rest: the port of the JobManager's web page.
        jobmanager: the process.
        held: all processes, those that were killed too: what they started is there until the end.
        taskmanagers: the processes, in the order in which they were started.
    """

    folder: Path
    rest: int
    jobmanager: Program
    held: contextlib.ExitStack
    taskmanagers: list[Program] = field(default_factory=list)
    _started: int = 0

    @classmethod
    @contextlib.contextmanager
    def started(cls, folder: Path, *, rest: int | None = None) -> Iterator[Self]:
        """Start it, and wait until all its slots are there.

        Args:
            folder: for logs and configuration.
            rest: the port of the web page; None for a free one.
        """
        rpc, blob, free = free_ports(3)
        rest = rest or free
        configuration = {
            **_CONFIGURATION,
            "jobmanager.rpc.port": str(rpc),
            "blob.server.port": str(blob),
            "rest.port": str(rest),
            "rest.bind-port": str(rest),
            "io.tmp.dirs": str(folder),
        }
        text = "".join(f"{key}: {value}\n" for key, value in configuration.items())
        (folder / "flink-conf.yaml").write_text(text, encoding="utf-8")
        with contextlib.ExitStack() as held:
            jobmanager = _program(
                "jobmanager",
                folder,
                "org.apache.flink.runtime.entrypoint.StandaloneSessionClusterEntrypoint",
                *("--configDir", str(folder)),
                heap="512m",
            )
            flink = cls(folder, rest, held.enter_context(jobmanager).wait_for(rest), held)
            for _ in range(TASKMANAGERS):
                flink.add_taskmanager()
            flink.wait_for_slots(TASKMANAGERS * SLOTS)
            yield flink

    @property
    def master(self) -> str:
        """Its address, for a job server."""
        return f"{HOST}:{self.rest}"

    def add_taskmanager(self) -> None:
        """Start one more TaskManager."""
        self._started += 1
        name = f"taskmanager-{self._started}"
        added = _program(
            name,
            self.folder,
            "org.apache.flink.runtime.taskexecutor.TaskManagerRunner",
            *("--configDir", str(self.folder), f"-Dtaskmanager.resource-id={name}"),
            heap="384m",
        )
        self.taskmanagers.append(self.held.enter_context(added))

    def replace(self, taskmanager: Program) -> None:
        """Kill a TaskManager with SIGKILL, and start another one."""
        taskmanager.kill()
        self.taskmanagers.remove(taskmanager)
        self.add_taskmanager()

    def busy(self) -> list[Program]:
        """The TaskManagers that have tasks of a job."""
        there = self._asked("/taskmanagers")["taskmanagers"]
        busy = {one["id"] for one in there if one["freeSlots"] < one["slotsNumber"]}
        return [program for program in self.taskmanagers if program.name in busy]

    def wait_for_slots(self, slots: int) -> None:
        """Wait until at least so many slots are registered."""

        def registered() -> bool:
            with contextlib.suppress(OSError):  # it does not answer yet
                return bool(self._asked("/overview")["slots-total"] >= slots)
            return False

        wait_until(registered, f"{slots} slots", tail=self.taskmanagers[-1].tail)

    def running_jobs(self) -> list[str]:
        """The jobs that have not ended."""
        jobs = self._asked("/jobs/overview")["jobs"]
        ended = ("FINISHED", "CANCELED", "FAILED")
        return [job["jid"] for job in jobs if job["state"] not in ended]

    def accumulators(self) -> dict[str, str]:
        """The counters of each job on its page, by the name of the job."""
        jobs = self._asked("/jobs/overview")["jobs"]
        return {job["name"]: str(self._asked(f"/jobs/{job['jid']}/accumulators")) for job in jobs}

    def wait_for_restart(self, *, since: float) -> bool:
        """Wait until the one job there is has started again after a moment.

        Args:
            since: the moment, in seconds as of ``time.time``.

        Returns:
            False where it ended without.
        """
        return self._wait_for(
            "a restart",
            lambda times: times["RUNNING"] > max(since * 1000, times["RESTARTING"]),
        )

    def wait_for_state(self, state: str, *, since: float) -> bool:
        """Wait until the one job there is has come to a state after a moment, or has ended."""
        return self._wait_for(state, lambda times: times[state] >= since * 1000)

    def _wait_for(self, what: str, holds: Callable[[dict[str, int]], bool]) -> bool:
        """Wait until it holds of the times of a job's states; False where the job ended before."""

        def reached() -> bool:
            jobs = self.running_jobs()
            return not jobs or holds(self._asked(f"/jobs/{jobs[0]}")["timestamps"])

        wait_until(reached, what, seconds=900, tail=self.jobmanager.tail)
        return bool(self.running_jobs())

    def wait_for_jobs(self) -> None:
        """Wait until no job is left."""
        wait_until(lambda: not self.running_jobs(), "the end of the jobs", seconds=900)

    def cancel_jobs(self) -> None:
        """End the jobs that have not ended."""
        for job in self.running_jobs():
            self._asked(f"/jobs/{job}?mode=cancel", method="PATCH")
        self.wait_for_jobs()

    def _asked(self, path: str, *, method: str = "GET") -> dict[str, Any]:
        request = urllib.request.Request(f"http://{self.master}{path}", method=method)
        with urllib.request.urlopen(request, timeout=30) as answer:  # noqa: S310  # our own server
            said: dict[str, Any] = json.load(answer)
            return said


def _program(name: str, folder: Path, main: str, *arguments: str, heap: str) -> Program:
    jars = f"{cache.jars()}/*"
    return java_program(name, folder, jars, main, *arguments, heap=heap, options=_SHORT_LIVED)
