"""One job whose files are all on an object store, on a runner that is no local one."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.cli.process import bpe
from tests.cluster.jobs import BAD_RECORDS, SECONDS, write_corpus
from tests.faults.store import BUCKET, start_store
from tests.faults.whole import WholeJob

if TYPE_CHECKING:
    from pathlib import Path

    from tests.cluster.jobs import Submission


@pytest.mark.long
@pytest.mark.parametrize("submission", ["flink_local", "on_prism"], indirect=True)
def test_the_bytes_are_those_of_a_disk(submission: Submission, tmp_path: Path) -> None:
    """Workers are threads of the command, and learn of the store from the job itself."""
    write_corpus(tmp_path / "corpus")
    whole = WholeJob.of(tmp_path, split_size=4000, max_failures=BAD_RECORDS)
    at = f"s3://{BUCKET}/whole"
    with start_store(tmp_path) as store:
        store.put(whole.corpus, "whole/corpus/")
        run = whole.command(tmp_path / "job.yaml", f"{at}/out", where=f"{at}/corpus")
        bpe(*run, *store.flags, *submission.options, seconds=SECONDS)
        assert store.tree("whole/out/") == whole.made()
        assert store.unfinished() == []
        bpe(
            *("verify", f"{at}/out/encoded", "-q"),
            *(f"--input={pattern}" for pattern in whole.patterns(f"{at}/corpus")),
            *store.flags,
            seconds=SECONDS,
        )
