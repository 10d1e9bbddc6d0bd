"""Counters of jobs, as runners tell them: on Flink's page, and in progress."""

from __future__ import annotations

import io
import re
from typing import TYPE_CHECKING

import pytest

from pipelines.progress import LineProgress
from pipelines.run import run
from pipelines.settings import Execution
from pipelines.stage.beam import RunJob
from tests.cli.process import ROOT
from tests.pipelines.corpora import count_request, sentence, write_jsonl

if TYPE_CHECKING:
    from pathlib import Path

    from tests.cluster.conftest import Pool, Standalone
    from tests.cluster.jobs import Job, Submission


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


@pytest.mark.long
def test_counters_of_all_steps(
    job: Job, standalone: Standalone, pool: Pool, tmp_path: Path
) -> None:
    job.run(tmp_path / "out", standalone.external(pool, parallelism=1))
    shown = standalone.flink.accumulated("bpe")
    for step in ("count", "train", "encode"):
        (name,) = (name for name in shown if name.startswith(f"bpe-{step}-"))
        assert documented(step) - shown[name] == set()


def test_progress_is_that_of_the_runners_counters(on_prism: Submission, tmp_path: Path) -> None:
    """Workers tell nothing here, as on machines of their own."""
    corpus = write_jsonl(tmp_path / "in" / "docs.jsonl", [sentence(i, 60) for i in range(400)])
    size = (corpus.folder / "docs.jsonl").stat().st_size
    request = count_request(corpus.inputs(), tmp_path / "out")
    execution = Execution(beam_args=("--runner=PortableRunner", *on_prism.for_beam))
    with LineProgress(io.StringIO(), interval=60).stage("count", size) as stage:
        run(lambda p, failures: p | RunJob(request, failures), execution=execution, stage=stage)
        now = stage.snapshot()
    assert (now.documents, now.bytes) == (400, size)
