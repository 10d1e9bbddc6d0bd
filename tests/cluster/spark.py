"""Spark on this machine: a master, workers, and Beam's job server in front of them."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tests.cluster import cache
from tests.cluster.jobs import Submission
from tests.cluster.processes import HOST, MODULES, free_ports, java_program

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from typing_extensions import Self

    from tests.cluster.processes import Program

_EXECUTOR = "CoarseGrainedExecutorBackend"


@dataclass(frozen=True)
class Spark:
    """A standalone cluster of two workers with a core each.

    Attributes:
        workers: the processes; each starts an executor for a job.
        endpoint: where jobs are sent.
    """

    workers: list[Program]
    endpoint: str

    @classmethod
    @contextlib.contextmanager
    def started(cls, folder: Path) -> Iterator[Self]:
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
        options = [*MODULES, f"-Djava.io.tmpdir={folder}"]
        executors = f"-Dspark.executor.extraJavaOptions={' '.join(options)}"
        env = {"SPARK_HOME": str(home), "SPARK_SCALA_VERSION": "2.12", "SPARK_LOCAL_IP": HOST}
        jars = f"{cache.spark()}/*"
        how: dict[str, Any] = {"options": [executors], **env}
        with contextlib.ExitStack() as held:

            def program(name: str, main: str, *arguments: str, heap: str = "512m") -> Program:
                started = java_program(name, folder, jars, main, *arguments, heap=heap, **how)
                return held.enter_context(started)

            deploy = "org.apache.spark.deploy"
            where = ("--host", HOST, "--port", str(port), "--webui-port", str(web))
            program("master", f"{deploy}.master.Master", *where).wait_for(port)
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
            )
            server.wait_for(job).wait_for(artifact)
            yield cls(workers, f"{HOST}:{job}")

    def submission(self, pool: str) -> Submission:
        """Options of a job that takes its workers from the pool at that address."""
        options = [f"--job_endpoint={self.endpoint}"]
        return Submission.of(*options, environment="EXTERNAL", config=pool, stage="none")

    def busy(self) -> list[Program]:
        """The workers that have an executor."""
        return [worker for worker in self.workers if worker.started(_EXECUTOR)]
