"""One job whose files are all on an object store, on a runner that is no local one."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.cli.process import bpe
from tests.cluster.jobs import SECONDS
from tests.faults.store import BUCKET, start_store

if TYPE_CHECKING:
    from pathlib import Path

    from tests.cluster.jobs import Job, Submission


@pytest.mark.long
@pytest.mark.parametrize("submission", ["flink_local", "on_prism"], indirect=True)
def test_the_bytes_are_those_of_a_disk(submission: Submission, job: Job, tmp_path: Path) -> None:
    """Workers are threads of the command, and learn of the store from the job itself."""
    at = f"s3://{BUCKET}/whole"
    with start_store(tmp_path) as store:
        store.put(job.corpus, "whole/corpus/")
        run = job.command(tmp_path / "job.yaml", f"{at}/out", where=f"{at}/corpus")
        bpe(*run, *store.flags, *submission.options, seconds=SECONDS)
        assert store.tree("whole/out/") == job.made()
        assert store.unfinished() == []
        inputs = [f"--input={pattern}" for pattern in job.patterns(f"{at}/corpus")]
        bpe("verify", f"{at}/out/encoded", "-q", *inputs, *store.flags, seconds=SECONDS)
