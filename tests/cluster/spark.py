"""Spark on this machine: a master, workers, and Beam's job server in front of them."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tests.cluster import cache
from tests.cluster.jobs import Submission
from tests.cluster.processes import HOST, Program, free_ports
from tests.cluster.setup import java

if TYPE_CHECKING:
    from pathlib import Path

    from typing_extensions import Self

# What Spark reaches into and modules close since Java 17 (docs/running.md).
_OPENS = (
    *("lang", "lang.invoke", "lang.reflect", "io", "net", "nio", "util", "util.concurrent"),
    "util.concurrent.atomic",
)
_MODULES = [
    *(f"--add-opens=java.base/java.{name}=ALL-UNNAMED" for name in _OPENS),
    *(
        f"--add-opens=java.base/sun.{name}=ALL-UNNAMED"
        for name in ("nio.ch", "nio.cs", "security.action", "util.calendar")
    ),
]
_EXECUTOR = "CoarseGrainedExecutorBackend"


@dataclass
class Spark:
    """A standalone cluster of two workers with a core each.

    Attributes:
        master: the process.
        workers: the processes; each starts an executor for a job.
        server: Beam's job server.
        endpoint: where jobs are sent.
    """

    master: Program
    workers: list[Program]
    server: Program
    endpoint: str

    @classmethod
    def start(cls, folder: Path) -> Self:
        """Start it, and wait until it takes jobs.

        Args:
            folder: for logs, and what Spark keeps.
        """
        home = folder / "home"  # where a worker finds what its executors run
        home.mkdir()
        (home / "jars").symlink_to(cache.spark())
        (home / "RELEASE").touch()
        port, web, first, second, job, artifact, expansion = free_ports(7)
        address = f"spark://{HOST}:{port}"
        started: list[Program] = []

        def program(name: str, main: str, *arguments: str, heap: str = "512m") -> Program:
            env = {
                **os.environ,
                "SPARK_HOME": str(home),
                "SPARK_SCALA_VERSION": "2.12",
                "SPARK_LOCAL_IP": HOST,
                "TMPDIR": str(folder),
            }
            env.pop("PYTHONPATH", None)
            options = [*_MODULES, f"-Djava.io.tmpdir={folder}"]
            executors = f"-Dspark.executor.extraJavaOptions={' '.join(options)}"
            command = [java(), f"-Xmx{heap}", *options, executors, "-cp", f"{cache.spark()}/*"]
            started.append(Program(name, [*command, main, *arguments], folder=folder, env=env))
            return started[-1]

        try:
            deploy = "org.apache.spark.deploy"
            where = ("--host", HOST, "--port", str(port), "--webui-port", str(web))
            master = program("master", f"{deploy}.master.Master", *where).wait_for(port)
            workers = [
                program(
                    f"worker-{ui}",
                    f"{deploy}.worker.Worker",
                    *("--host", HOST, "--cores", "1", "--memory", "1g", "--webui-port", str(ui)),
                    *("--work-dir", str(folder / f"work-{ui}"), address),
                ).wait_for(ui)
                for ui in (first, second)
            ]
            server = program(
                "spark-job-server",
                "org.apache.beam.runners.spark.SparkJobServerDriver",
                *(f"--spark-master-url={address}", f"--job-host={HOST}", f"--job-port={job}"),
                *(f"--artifact-port={artifact}", f"--expansion-port={expansion}"),
                f"--artifacts-dir={folder / 'artifacts'}",
                heap="768m",
            ).wait_for(job)
        except BaseException:
            for one in started:
                one.stop()
            raise
        return cls(master, workers, server.wait_for(artifact), f"{HOST}:{job}")

    def submission(self, pool: str) -> Submission:
        """Options of a job that takes its workers from the pool at that address."""
        options = [f"--job_endpoint={self.endpoint}"]
        return Submission.of(*options, environment="EXTERNAL", config=pool, stage="none")

    def busy(self) -> list[Program]:
        """The workers that have an executor."""
        return [worker for worker in self.workers if worker.started(_EXECUTOR)]

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        for program in (self.server, *self.workers, self.master):
            program.stop()
