"""Jobs on a standalone Flink whose processes are killed on the way: the same bytes, or a resume."""

from __future__ import annotations

import contextlib
import os
import random
import signal
import time
from typing import TYPE_CHECKING

import pytest

from tests.cluster.slow_job import SPLITS, SlowJob, Step

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.cluster.conftest import Pool, Standalone
    from tests.cluster.slow_job import Running
    from tests.cluster.spark import Spark

pytestmark = [pytest.mark.long, pytest.mark.usefixtures("quiet")]
STEPS: tuple[Step, ...] = ("count", "encode")
KILLS = 3


@pytest.fixture(scope="module")
def slow(tmp_path_factory: pytest.TempPathFactory) -> SlowJob:
    return SlowJob.of(tmp_path_factory.mktemp("slow"))


@pytest.fixture
def chance() -> random.Random:
    """Another one in each run, and the same with ``BPE_KILLS`` as a failed test prints it."""
    seed = os.environ.get("BPE_KILLS") or str(random.SystemRandom().randrange(1 << 32))
    print(f"BPE_KILLS={seed} kills at the same moments")
    return random.Random(seed)


def moments(running: Running, chance: random.Random) -> Iterator[None]:
    """Come back at random moments of a running step, each time with a split done since.

    A step of encoding keeps what it has, one of counting begins again. Each moment is before the
    last quarter of the splits, so that there is work for the processes that are left.
    """
    least = [1] * KILLS
    if running.step == "encode":
        least = sorted(chance.sample(range(1, SPLITS * 3 // 4), KILLS))
    for splits in least:
        new = 1 if running.step == "encode" else chance.randrange(1, SPLITS // 2)
        assert running.reaches(new, since=time.time_ns()), running.said()
        assert running.reaches(splits), running.said()
        yield


@pytest.mark.parametrize("step", STEPS)
@pytest.mark.parametrize("who", ["TaskManager", "two TaskManagers", "Python worker"])
def test_the_job_starts_again_each_time_that_a_process_is_killed(
    slow: SlowJob,
    standalone: Standalone,
    pool: Pool,
    tmp_path: Path,
    chance: random.Random,
    who: str,
    step: Step,
) -> None:
    restarts, flink = 0, standalone.flink
    known: list[int] = []
    with slow.started(step, tmp_path / "out", standalone.external(pool, parallelism=2)) as running:
        for _ in moments(running, chance):
            since = time.time()
            if who == "Python worker":
                worker = pool.at_work(known=known)
                known = pool.workers()
                os.kill(worker, signal.SIGKILL)
            else:
                flink.replace(chance.choice(flink.busy()))
            if who == "two TaskManagers":  # the second while the job starts again
                flink.wait_for_state("RESTARTING", since=since)
                flink.replace(chance.choice(flink.taskmanagers))
            # The next one is killed when the job works again: no two fall into one restart.
            restarts += flink.wait_for_restart(since=since)
        running.ended(0)
    assert restarts == KILLS
    slow.check(step, tmp_path / "out")


@pytest.mark.parametrize("step", STEPS)
@pytest.mark.parametrize("who", ["command", "job server"])
def test_the_job_is_resumed_where_nobody_waits_for_it(
    slow: SlowJob, standalone: Standalone, pool: Pool, tmp_path: Path, who: str, step: Step
) -> None:
    output = tmp_path / "out"
    with slow.started(step, output, standalone.external(pool, parallelism=2)) as running:
        assert running.reaches(SPLITS // 4)
        if who == "command":
            running.process.kill()
        else:
            standalone.server.program.kill()
            running.ended(1)
            standalone.start_server()
    submission = standalone.external(pool, parallelism=2)
    with slow.started(step, output, submission, "--resume") as running:
        before = running.files()
        running.ended(0)
        if step == "encode":
            after = running.files()
            assert {name: after[name] for name in before} == before
    # The job that nobody waits for any more ends too, and changes nothing.
    standalone.flink.wait_for_jobs()
    slow.check(step, output)


def test_spark_loses_a_worker_and_its_executor(
    slow: SlowJob, spark: Spark, pool: Pool, tmp_path: Path, chance: random.Random
) -> None:
    """Its tasks go to the other worker."""
    submission = spark.submission(pool.address)
    with slow.started("count", tmp_path / "out", submission) as running:
        assert running.reaches(chance.randrange(1, SPLITS // 2))
        lost = chance.choice(spark.busy())
        for process in lost.started("java"):
            with contextlib.suppress(ProcessLookupError):
                os.kill(process, signal.SIGKILL)
        running.ended(0)
    slow.check("count", tmp_path / "out")
