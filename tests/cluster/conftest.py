"""Runners on this machine, each started once for the tests of a file, and always taken down.

Where a piece is missing, tests skip and say what brings it; with ``BPE_CLUSTER_REQUIRED=1`` they
fail instead.
"""

from __future__ import annotations

import contextlib
import json
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.cluster import cache, prism, workers
from tests.cluster.flink import Flink, JobServer, flags
from tests.cluster.jobs import Job, Submission, whole_job
from tests.cluster.package import staged
from tests.cluster.processes import wait_until
from tests.cluster.setup import missing_tools
from tests.cluster.spark import Spark
from tests.shared_data import missing

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from tests.cluster.processes import Program

_COMPUTES = 20  # clock ticks: a fifth of a second


@pytest.fixture(scope="session")
def pieces() -> None:
    """Skip the test, or fail it where a cluster is required, unless all pieces are here."""
    lacking = [*missing_tools(), *(f"{name} is not here: make cluster" for name in cache.missing())]
    if lacking:
        missing(f"no cluster: {'; '.join(lacking)}", "BPE_CLUSTER_REQUIRED")


@pytest.fixture
def apart(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder for a cluster of its own, apart from one that the user may be running."""
    root = cache.root()
    apart = tmp_path / "cluster"
    apart.mkdir()
    for path in root.glob("*") if root.exists() else ():
        if path.name != "running":
            (apart / path.name).symlink_to(path)
    monkeypatch.setenv("BPE_CLUSTER", str(apart))
    return apart


@pytest.fixture(scope="module")
def job(tmp_path_factory: pytest.TempPathFactory) -> Job:
    """A job, and what it makes on the local runner."""
    return whole_job(tmp_path_factory.mktemp("whole"))


@pytest.fixture(scope="module")
def flink_local(pieces: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Submission]:
    """Flink inside its job server; workers are threads of the command."""
    with JobServer.started(tmp_path_factory.mktemp("flink")) as server:
        yield Submission.of(*flags(server.endpoint, parallelism=2), environment="LOOPBACK")


@pytest.fixture(scope="module")
def bare_flink(pieces: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Submission]:
    """Flink inside its job server, which starts workers that lack our package."""
    folder = tmp_path_factory.mktemp("bare-flink")
    config = json.dumps({"command": str(workers.boot_command(folder))})
    with JobServer.started(folder) as server:
        options = flags(server.endpoint, parallelism=2)
        yield Submission.of(*options, environment="PROCESS", config=config)


@pytest.fixture(scope="module")
def prism_program(
    pieces: None, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[Program, Submission]]:
    """Prism, whose workers are threads of the command; the process, and how to use it."""
    with prism.started(tmp_path_factory.mktemp("prism")) as (program, endpoint):
        yield program, Submission.of(f"--job_endpoint={endpoint}", environment="LOOPBACK")


@pytest.fixture(scope="module")
def on_prism(prism_program: tuple[Program, Submission]) -> Submission:
    """Prism; workers are threads of the command."""
    return prism_program[1]


@pytest.fixture(scope="module")
def spark(pieces: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Spark]:
    """A standalone Spark: a master, two workers and a job server."""
    with Spark.started(tmp_path_factory.mktemp("spark")) as cluster:
        yield cluster


@pytest.fixture(scope="module")
def on_spark(spark: Spark, pool: Pool) -> Submission:
    """A standalone Spark; workers are those of a pool."""
    return spark.submission(pool.address)


@pytest.fixture(scope="session")
def package(pieces: None, tmp_path_factory: pytest.TempPathFactory) -> dict[str, tuple[str, ...]]:
    """The options with which jobs stage our package."""
    return staged(tmp_path_factory.mktemp("package"))


@pytest.fixture
def submission(request: pytest.FixtureRequest) -> Submission:
    """The runner that a test names."""
    named: Submission = request.getfixturevalue(request.param)
    return named


@dataclass
class Standalone:
    """A Flink cluster with a job server in front of it."""

    flink: Flink
    boot: Path

    def __post_init__(self) -> None:
        self.start_server()

    def start_server(self) -> None:
        """A job server, or another in the place of one that was killed."""
        started = JobServer.started(self.flink.folder, master=self.flink.master)
        self.server = self.flink.held.enter_context(started)

    def external(self, pool: Pool, *, parallelism: int) -> Submission:
        """A job whose workers are those of a pool, and are sent what the options name."""
        options = flags(self.server.endpoint, parallelism=parallelism)
        return Submission.of(*options, environment="EXTERNAL", config=pool.address, stage="none")

    def process(self, *, parallelism: int) -> Submission:
        """A job whose workers are started by the TaskManagers, without our package."""
        options = flags(self.server.endpoint, parallelism=parallelism)
        config = json.dumps({"command": str(self.boot)})
        return Submission.of(*options, environment="PROCESS", config=config, stage="none")


@pytest.fixture(scope="module")
def standalone(pieces: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Standalone]:
    """A JobManager, two TaskManagers and a job server."""
    folder = tmp_path_factory.mktemp("standalone")
    with Flink.started(folder) as flink:
        yield Standalone(flink, workers.boot_command(folder))


@pytest.fixture
def quiet(standalone: Standalone) -> Iterator[None]:
    """A test that leaves no job to the next one."""
    yield
    standalone.flink.cancel_jobs()


@dataclass(frozen=True)
class Pool:
    """A pool of workers, and where it listens."""

    program: Program
    address: str

    def workers(self) -> list[int]:
        """The processes of its workers."""
        return self.program.started("apache_beam.runners.worker.sdk_worker")

    def at_work(self, *, known: Iterable[int] = ()) -> int:
        """Wait until the worker that has computed most, rather one that is not known, goes on.

        It serves a task: one that is only starting has computed less.
        """
        before = self._computed()
        most = 0

        def computes() -> bool:
            nonlocal most
            now = self._computed()
            most = max(now, key=lambda one: (one not in known, now[one]), default=0)
            return most in now and now[most] >= before.setdefault(most, now[most]) + _COMPUTES

        wait_until(computes, "a worker that computes", seconds=900, tail=self.program.tail)
        return most

    def _computed(self) -> dict[int, int]:
        """Clock ticks of a processor that each worker has had (Linux)."""
        found = {}
        for worker in self.workers():
            with contextlib.suppress(OSError):  # it has ended
                after = Path(f"/proc/{worker}/stat").read_text().rpartition(")")[2].split()
                found[worker] = int(after[11]) + int(after[12])
        return found


@pytest.fixture(scope="module")
def pool(pieces: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pool]:
    """A pool whose workers have our package."""
    with workers.started_pool(tmp_path_factory.mktemp("pool")) as pool:
        yield Pool(*pool)


@pytest.fixture(scope="module")
def bare_pool(pieces: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pool]:
    """A pool whose workers start without our package."""
    folder = tmp_path_factory.mktemp("bare-pool")
    with workers.started_pool(folder, boot=workers.boot_command(folder)) as pool:
        yield Pool(*pool)
