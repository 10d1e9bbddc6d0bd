"""The whole job gives the same bytes on Flink and on Prism as on the local runner."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

    from tests.cluster.jobs import Job, Submission


def test_flink(job: Job, flink_local: Submission, tmp_path: Path) -> None:
    job.run(tmp_path / "out", flink_local)
    job.check(tmp_path / "out")


def test_prism(job: Job, on_prism: Submission, tmp_path: Path) -> None:
    job.run(tmp_path / "out", on_prism)
    job.check(tmp_path / "out")


def test_the_job_is_one_that_tells_runners_apart(job: Job) -> None:
    names = list(job.expected)
    assert sum(name.startswith("encoded/part-") for name in names) > 20
    assert sum(name.startswith("encoded/dead-letters/") for name in names) == 2
    assert sum(name.startswith("counts/part-") for name in names) == 16
    assert "tokenizer.json" in names
