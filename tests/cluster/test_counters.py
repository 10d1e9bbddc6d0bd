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
from tests.pipelines.corpora import count_request, sentence, write_jsonl

if TYPE_CHECKING:
    from pathlib import Path

    from tests.cluster.conftest import Pool, Standalone
    from tests.cluster.jobs import Job, Submission


@pytest.mark.long
def test_counters_of_all_steps(
    job: Job, standalone: Standalone, pool: Pool, tmp_path: Path
) -> None:
    """As docs/metrics.md says; what a job counts is tested in tests/pipelines/test_metrics.py."""
    job.run(tmp_path / "out", standalone.external(pool, parallelism=1))
    shown = "\n".join(map(" ".join, standalone.flink.accumulators().items()))
    for step, name in (
        ("count", "bytes_read"),
        ("train", "merges_trained"),
        ("encode", "tokens_written"),
    ):
        assert re.search(rf"^bpe-{step}-.*\b{name}\b", shown, re.MULTILINE)


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
