"""Flink on this machine: a JobManager, TaskManagers, and Beam's job server in front of them."""

from __future__ import annotations

import json
import os
import urllib.request
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from tests.cluster import cache
from tests.cluster.processes import HOST, Program, free_ports, wait_until
from tests.cluster.setup import java

if TYPE_CHECKING:
    from pathlib import Path

    from typing_extensions import Self

# What Flink reaches into and modules close since Java 17.
_EXPORTS = ("java.base/sun.net.util", "java.rmi/sun.rmi.registry")
_OPENS = (
    *("lang", "lang.reflect", "net", "io", "nio", "text", "time", "util", "util.concurrent"),
    *("util.concurrent.atomic", "util.concurrent.locks"),
)
_MODULES = [
    *(f"--add-exports={name}=ALL-UNNAMED" for name in _EXPORTS),
    *(f"--add-opens=java.base/java.{name}=ALL-UNNAMED" for name in _OPENS),
    "--add-opens=java.base/sun.nio.ch=ALL-UNNAMED",
]
# Small jobs end before code that is optimized more, or garbage collected by more threads, pays.
_SHORT_LIVED = ("-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC")
# A job starts again after a pause, and a worker is kept for the next step of its job: for less
# than the pause, else a job that starts again is given the worker that has just died.
RESTART_SECONDS = 8
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


def start_local(folder: Path) -> JobServer:
    """A job server that runs jobs in a Flink inside its own process."""
    return JobServer.start(folder, master="[local]")


@dataclass
class JobServer:
    """Beam's job server in front of a Flink.

    Attributes:
        program: that runs.
        endpoint: where jobs are sent.
        artifacts: where what they stage is sent.
    """

    program: Program
    endpoint: str
    artifacts: str

    @classmethod
    def start(
        cls, folder: Path, *, master: str, ports: tuple[int, int, int] | None = None
    ) -> JobServer:
        """Start it, and wait until it takes jobs.

        Args:
            folder: for its log and what is staged.
            master: ``[local]``, or the address of a JobManager.
            ports: of jobs, artifacts and expansion; None for free ones.
        """
        job, artifact, expansion = ports or free_ports(3)
        program = _program(
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
        )
        try:
            program.wait_for(job).wait_for(artifact)
        except BaseException:
            program.stop()
            raise
        return cls(program, f"{HOST}:{job}", f"{HOST}:{artifact}")

    def stop(self) -> None:
        """Take it down."""
        self.program.stop()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.stop()


@dataclass
class Flink:
    """A standalone cluster: a JobManager and its TaskManagers, each a process.

    Attributes:
        folder: for logs and configuration.
        rest: the port of the JobManager's web page.
        jobmanager: the process.
        taskmanagers: the processes, in the order in which they were started.
    """

    folder: Path
    rest: int
    jobmanager: Program
    taskmanagers: list[Program] = field(default_factory=list)
    _started: int = 0
    _dead: list[Program] = field(default_factory=list)

    @classmethod
    def start(
        cls, folder: Path, *, taskmanagers: int = 2, slots: int = 2, rest: int | None = None
    ) -> Flink:
        """Start it, and wait until all its slots are there.

        Args:
            folder: for logs and configuration.
            taskmanagers: how many.
            slots: of each, for a task of a step.
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
            "taskmanager.numberOfTaskSlots": str(slots),
            "io.tmp.dirs": str(folder),
        }
        text = "".join(f"{key}: {value}\n" for key, value in configuration.items())
        (folder / "flink-conf.yaml").write_text(text, encoding="utf-8")
        jobmanager = _program(
            "jobmanager",
            folder,
            "org.apache.flink.runtime.entrypoint.StandaloneSessionClusterEntrypoint",
            *("--configDir", str(folder)),
            heap="512m",
        )
        made = cls(folder, rest, jobmanager)
        try:
            jobmanager.wait_for(rest)
            for _ in range(taskmanagers):
                made.add_taskmanager()
            made.wait_for_slots(taskmanagers * slots)
        except BaseException:
            made.stop()
            raise
        return made

    @property
    def master(self) -> str:
        """Its address, for a job server."""
        return f"{HOST}:{self.rest}"

    def add_taskmanager(self) -> Program:
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
        self.taskmanagers.append(added)
        return added

    def replace(self, taskmanager: Program) -> None:
        """Kill a TaskManager with SIGKILL, and start another one."""
        taskmanager.kill()
        self.taskmanagers.remove(taskmanager)
        self._dead.append(taskmanager)  # what it started is there until the end
        self.add_taskmanager()

    def busy(self) -> list[Program]:
        """The TaskManagers that have tasks of a job."""
        there = self._asked("/taskmanagers")["taskmanagers"]
        busy = {one["id"] for one in there if one["freeSlots"] < one["slotsNumber"]}
        return [program for program in self.taskmanagers if program.name in busy]

    def wait_for_slots(self, slots: int) -> None:
        """Wait until at least so many slots are registered."""
        wait_until(
            lambda: self.overview()["slots-total"] >= slots,
            f"{slots} slots",
            tail=self.taskmanagers[-1].tail,
        )

    def overview(self) -> dict[str, Any]:
        """The JobManager's overview: ``taskmanagers``, ``slots-total``, and so on."""
        try:
            return self._asked("/overview")
        except OSError:  # not yet
            return {"slots-total": 0}

    def running_jobs(self) -> list[str]:
        """The jobs that have not ended."""
        jobs = self._asked("/jobs/overview")["jobs"]
        ended = ("FINISHED", "CANCELED", "FAILED")
        return [job["jid"] for job in jobs if job["state"] not in ended]

    def accumulated(self, namespace: str) -> dict[str, set[str]]:
        """The counters of Beam that its page shows as accumulators, by name of job."""
        found = {}
        for job in self._asked("/jobs/overview")["jobs"]:
            said = self._asked(f"/jobs/{job['jid']}/accumulators")["user-task-accumulators"]
            metrics = [
                one for each in said for one in json.loads(each["value"])["metrics"]["attempted"]
            ]
            labels = [one["labels"] for one in metrics]
            found[job["name"]] = {
                label["NAME"] for label in labels if label.get("NAMESPACE") == namespace
            }
        return found

    def wait_for_restart(self, *, since: float) -> bool:
        """Wait until the one job there is has started again after a moment.

        Args:
            since: the moment, in seconds as of ``time.time``.

        Returns:
            False where it ended without.
        """

        def restarted() -> bool:
            jobs = self.running_jobs()
            if not jobs:
                return True
            times = self._asked(f"/jobs/{jobs[0]}")["timestamps"]
            return bool(times["RUNNING"] > max(since * 1000, times["RESTARTING"]))

        wait_until(restarted, "a restart", seconds=900, tail=self.jobmanager.tail)
        return bool(self.running_jobs())

    def wait_for_state(self, state: str, *, since: float) -> None:
        """Wait until the one job there is has come to a state after a moment, or has ended.

        Args:
            state: Flink's name of it.
            since: the moment, in seconds as of ``time.time``.
        """

        def reached() -> bool:
            jobs = self.running_jobs()
            return not jobs or bool(
                self._asked(f"/jobs/{jobs[0]}")["timestamps"][state] >= since * 1000
            )

        wait_until(reached, state, seconds=900, tail=self.jobmanager.tail)

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

    def stop(self) -> None:
        """Take all of it down."""
        for program in (*self.taskmanagers, *self._dead, self.jobmanager):
            program.stop()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.stop()


def _program(name: str, folder: Path, main: str, *arguments: str, heap: str) -> Program:
    # What is temporary is in the folder, and goes with it. PYTHONPATH would lend our package to
    # workers that are started from here.
    env = {**os.environ, "TMPDIR": str(folder)}
    env.pop("PYTHONPATH", None)
    command = [java(), f"-Xmx{heap}", *_SHORT_LIVED, *_MODULES, f"-Djava.io.tmpdir={folder}"]
    return Program(
        name,
        [*command, "-cp", f"{cache.jars()}/*", main, *arguments],
        folder=folder,
        env=env,
    )
