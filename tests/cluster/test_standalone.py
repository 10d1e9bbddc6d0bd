"""The whole job on a standalone Flink cluster, with each kind of worker."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.cluster.processes import wait_until

if TYPE_CHECKING:
    from pathlib import Path

    from tests.cluster.conftest import Pool, Standalone
    from tests.cluster.jobs import Job
    from tests.cluster.package import Package

pytestmark = pytest.mark.long


@pytest.mark.parametrize("parallelism", [1, 4])
def test_workers_of_a_pool(
    job: Job, standalone: Standalone, pool: Pool, tmp_path: Path, parallelism: int
) -> None:
    job.run(tmp_path / "out", standalone.external(pool, parallelism=parallelism))
    job.check(tmp_path / "out")
    wait_until(lambda: not pool.workers(), "the end of the workers", seconds=300)


@pytest.mark.parametrize("parallelism", [1, 4])
def test_workers_that_are_sent_the_wheel(
    job: Job, standalone: Standalone, package: Package, tmp_path: Path, parallelism: int
) -> None:
    booted = standalone.process(parallelism=parallelism)
    job.run(tmp_path / "out", booted + package.as_wheel)
    job.check(tmp_path / "out")


def test_workers_that_compile_the_sources(
    job: Job, standalone: Standalone, package: Package, tmp_path: Path
) -> None:
    job.run(tmp_path / "out", standalone.process(parallelism=2) + package.as_sources)
    job.check(tmp_path / "out")


def test_workers_of_a_pool_that_are_sent_the_wheel(
    job: Job, standalone: Standalone, bare_pool: Pool, package: Package, tmp_path: Path
) -> None:
    job.run(tmp_path / "out", standalone.external(bare_pool, parallelism=2) + package.as_wheel)
    job.check(tmp_path / "out")


def test_workers_that_lack_the_package_say_so(
    job: Job, standalone: Standalone, tmp_path: Path
) -> None:
    done = job.run(tmp_path / "out", standalone.process(parallelism=1), status=1)
    assert "No module named" in done.stderr
