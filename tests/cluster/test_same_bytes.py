"""The whole job gives the same bytes on Flink and on Prism as on the local runner."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.cluster import cache
from tests.cluster.jobs import Submission

if TYPE_CHECKING:
    from pathlib import Path

    from tests.cluster.jobs import Job


def test_flink(job: Job, flink_local: Submission, tmp_path: Path) -> None:
    job.run(tmp_path / "out", flink_local)
    job.check(tmp_path / "out")
    job.verify(tmp_path / "out", flink_local)


def test_prism(job: Job, on_prism: Submission, tmp_path: Path) -> None:
    job.run(tmp_path / "out", on_prism)
    job.check(tmp_path / "out")
    job.verify(tmp_path / "out", on_prism)


@pytest.mark.long
@pytest.mark.parametrize("runner", ["FlinkRunner", "PrismRunner"])
def test_runners_by_their_own_names(
    job: Job, flink_local: Submission, on_prism: Submission, tmp_path: Path, runner: str
) -> None:
    server = flink_local if runner == "FlinkRunner" else on_prism
    flags = [one for one in server.for_beam if not one.startswith("--environment_type")]
    job.run(tmp_path / "out", Submission(("--runner", runner, "--", *flags)))
    job.check(tmp_path / "out")


@pytest.mark.long
def test_a_prism_that_beam_starts(job: Job, pieces: None, tmp_path: Path) -> None:
    started = f"--prism_location={cache.prism()}"
    job.run(tmp_path / "out", Submission(("--runner", "PrismRunner", "--", started)))
    job.check(tmp_path / "out")


def test_the_job_is_one_that_tells_runners_apart(job: Job) -> None:
    names = list(job.expected)
    assert sum(name.startswith("encoded/data/train-") for name in names) > 20
    assert sum(name.startswith("encoded/dead-letters/") for name in names) == 2
    assert sum(name.startswith("counts/data/part-") for name in names) == 16
    assert "tokenizer.json" in names
