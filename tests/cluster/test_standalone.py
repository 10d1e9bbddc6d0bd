"""The whole job on a standalone Flink cluster, with each kind of worker."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.cluster.processes import wait_until

if TYPE_CHECKING:
    from pathlib import Path

    from tests.cluster.conftest import Pool, Standalone
    from tests.cluster.jobs import Job

pytestmark = pytest.mark.long


@pytest.mark.parametrize("parallelism", [1, 4])
def test_workers_of_a_pool(
    job: Job, standalone: Standalone, pool: Pool, tmp_path: Path, parallelism: int
) -> None:
    job.run(tmp_path / "out", standalone.external(pool, parallelism=parallelism))
    job.check(tmp_path / "out")
    wait_until(lambda: not pool.workers(), "the end of the workers", seconds=300)


@pytest.mark.parametrize(
    ("workers", "form"),
    [
        ("bare_flink", "wheel"),
        ("bare_flink", "sources"),
        ("standalone", "wheel"),
        ("standalone", "sources"),
        ("bare_pool", "wheel"),
    ],
)
def test_workers_that_are_sent_the_package(
    request: pytest.FixtureRequest,
    job: Job,
    standalone: Standalone,
    package: dict[str, tuple[str, ...]],
    tmp_path: Path,
    workers: str,
    form: str,
) -> None:
    """Started by the job server, by the TaskManagers, or by a pool; sources are compiled there."""
    submission = standalone.process(parallelism=2)
    if workers == "bare_flink":
        submission = request.getfixturevalue(workers)
    elif workers == "bare_pool":
        submission = standalone.external(request.getfixturevalue(workers), parallelism=2)
    job.run(tmp_path / "out", submission + package[form])
    job.check(tmp_path / "out")


def test_workers_that_lack_the_package_say_so(
    job: Job, standalone: Standalone, tmp_path: Path
) -> None:
    done = job.run(tmp_path / "out", standalone.process(parallelism=1), status=1)
    assert "No module named" in done.stderr
