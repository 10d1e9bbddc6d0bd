"""Counters of jobs on the page of a Flink cluster."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest

from tests.cli.process import ROOT

if TYPE_CHECKING:
    from pathlib import Path

    from tests.cluster.conftest import Pool, Standalone
    from tests.cluster.jobs import Job

pytestmark = pytest.mark.long


def documented(step: str) -> set[str]:
    """The counters that docs/metrics.md says a job has, but those of `--resume`."""
    page = (ROOT / "docs" / "metrics.md").read_text("utf-8")
    rows = re.findall(r"^\| `(\w+)` \| (.*) \| (.+) \|$", page, re.MULTILINE)
    return {
        name
        for name, counts, jobs in rows
        if ((jobs.startswith("all that read a corpus") and step != "train") or f"`{step}`" in jobs)
        and "earlier job" not in counts
    }


def test_counters_of_all_steps(
    job: Job, standalone: Standalone, pool: Pool, tmp_path: Path
) -> None:
    job.run(tmp_path / "out", standalone.external(pool, parallelism=1))
    shown = standalone.flink.accumulated("bpe")
    for step in ("count", "train", "encode"):
        (name,) = (name for name in shown if name.startswith(f"bpe-{step}-"))
        assert documented(step) - shown[name] == set()
