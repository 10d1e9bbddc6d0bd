"""Jobs on a standalone Flink whose processes are killed on the way: the same bytes, or a resume."""

from __future__ import annotations

import os
import random
import signal
import time
from typing import TYPE_CHECKING

import pytest

from tests.cluster.slow_job import SPLITS, SlowJob, Step

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from tests.cluster.conftest import Pool, Standalone
    from tests.cluster.slow_job import Running

pytestmark = pytest.mark.long
STEPS: tuple[Step, ...] = ("count", "encode")
KILLS = 3


@pytest.fixture(scope="module")
def slow(tmp_path_factory: pytest.TempPathFactory) -> SlowJob:
    return SlowJob.of(tmp_path_factory.mktemp("slow"))


@pytest.fixture(autouse=True)
def quiet(standalone: Standalone) -> Iterator[None]:
    """No test leaves a job to the next one."""
    yield
    standalone.flink.cancel_jobs()


def moments(running: Running, seed: str) -> Iterator[random.Random]:
    """Come back at random moments of a running step; a step of encoding keeps what it has."""
    chance = random.Random(f"{seed} {running.step}")
    if running.step == "encode":
        for splits in sorted(chance.sample(range(1, SPLITS * 3 // 4), KILLS)):
            if running.reaches(splits):
                yield chance
    else:
        for _ in range(KILLS):
            if running.reaches(chance.randrange(1, SPLITS // 2), since=time.time_ns()):
                yield chance


def kill_taskmanager(standalone: Standalone, pool: Pool, chance: random.Random) -> bool:
    """Kill one that has work, and start another; whether there was one."""
    if busy := standalone.flink.busy():
        standalone.flink.replace(chance.choice(busy))
    return bool(busy)


def kill_worker(standalone: Standalone, pool: Pool, chance: random.Random) -> bool:
    """Kill a Python worker; whether there was one."""
    if workers := pool.workers():
        os.kill(chance.choice(workers), signal.SIGKILL)
    return bool(workers)


@pytest.mark.parametrize("step", STEPS)
@pytest.mark.parametrize("kill", [kill_taskmanager, kill_worker])
def test_the_job_starts_again_where_a_process_is_killed(
    slow: SlowJob,
    standalone: Standalone,
    pool: Pool,
    tmp_path: Path,
    kill: Callable[[Standalone, Pool, random.Random], bool],
    step: Step,
) -> None:
    restarts = 0
    with slow.started(step, tmp_path / "out", standalone.external(pool, parallelism=2)) as running:
        for chance in moments(running, kill.__name__):
            since = time.time()
            if not kill(standalone, pool, chance):
                break
            restarts += standalone.flink.wait_for_restart(since=since)
        running.finish()
    assert restarts > 1
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
            running.kill()
        else:
            standalone.server.program.kill()
            assert "Traceback" not in running.fail()
            standalone.restart_server()
    submission = standalone.external(pool, parallelism=2)
    with slow.started(step, output, submission, "--resume") as running:
        before = running.files()
        summary = running.finish()
        if step == "encode":
            after = running.files()
            assert {name: after[name] for name in before} == before
            assert summary["resumed_parts"] >= len(before)
    # The job that nobody waits for any more ends too, and changes nothing.
    standalone.flink.wait_for_jobs()
    slow.check(step, output)
