"""Whole jobs on an S3 server of this machine (moto's), through pyarrow's filesystem."""

from __future__ import annotations

import io
import json
import re
from functools import partial
from typing import TYPE_CHECKING

import pytest

from pipelines.settings import Execution
from tests import jobs
from tests.cli.process import bpe
from tests.cluster.jobs import BAD_RECORDS, write_corpus
from tests.faults.running import PATIENCE, ended, running, until
from tests.faults.store import BUCKET, Store, start_store
from tests.faults.whole import WholeJob

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Store]:
    with start_store(tmp_path_factory.mktemp("store")) as store:
        yield store


@pytest.fixture(scope="module")
def mixed(tmp_path_factory: pytest.TempPathFactory) -> WholeJob:
    """The whole job on every format, with bad records, on a disk."""
    folder = tmp_path_factory.mktemp("mixed")
    write_corpus(folder / "corpus")
    return WholeJob.of(folder, split_size=4000, max_failures=BAD_RECORDS)


def test_a_store_gets_the_bytes_of_a_disk_and_nothing_is_renamed(
    store: Store, mixed: WholeJob, tmp_path: Path
) -> None:
    """Count, train, encode, verify and decode; compare with what a disk holds."""
    at, prefix = f"s3://{BUCKET}/threads", "threads"
    store.put(mixed.corpus, f"{prefix}/corpus/")
    bpe(*mixed.command(tmp_path / "job.yaml", f"{at}/out", where=f"{at}/corpus"), *store.flags)
    made = mixed.made()
    assert store.tree(f"{prefix}/out/") == made
    assert sum(name.startswith("encoded/dead-letters/") for name in made) == 2
    assert sum(name.startswith("encoded/data/train-") for name in made) >= 6
    execution = Execution(workers=2, storage_options=store.options)
    verified = jobs.verify(directory=f"{at}/out/encoded", execution=execution)
    assert verified.failures == BAD_RECORDS
    decoded, expected = io.BytesIO(), io.BytesIO()
    documents = jobs.decode(directory=f"{at}/out/encoded", stream=decoded, execution=execution)
    jobs.decode(directory=str(mixed.disk / "encoded"), stream=expected)
    assert documents == verified.documents > BAD_RECORDS
    assert decoded.getvalue() == expected.getvalue()
    asked = store.asked()
    assert "PUT /corpora/threads/out/encoded/data/train-" in asked
    removed = re.findall(r"(?:DELETE|POST /corpora/?\?delete) (/\S+)", asked)
    assert [path for path in removed if "/encoded/records/" not in path] == []
    assert ".tmp" not in asked
    assert store.unfinished() == []


@pytest.mark.long
def test_a_whole_job_that_was_killed_is_resumed(
    store: Store, mixed: WholeJob, tmp_path: Path
) -> None:
    """With kill -9 once a part has a record: such parts are whole, and not written again."""
    at = f"s3://{BUCKET}/whole"
    store.put(mixed.corpus, "whole/corpus/")
    run = mixed.command(tmp_path / "job.yaml", f"{at}/out", where=f"{at}/corpus")
    run += store.flags
    parts = partial(recorded, store, "whole/out/encoded/")
    with running(*run) as process:
        until(parts, process)
        process.kill()
        ended(process)
    finished, killed_at = parts(), store.log.stat().st_size
    expected = mixed.made()
    left = store.tree("whole/out/")
    assert "encoded/manifest.json" not in left
    for name, data in left.items():
        assert "/records/" in name or expected[name] == data, name
    bpe(*run, "--resume", seconds=PATIENCE)
    assert store.tree("whole/out/") == expected
    sent = {
        name.removeprefix("encoded/")
        for name in re.findall(r'"PUT /corpora/whole/out/([^ ?]*)', store.asked(since=killed_at))
    }
    assert sent.isdisjoint(finished)
    everything = {name.removeprefix("encoded/") for name in expected}
    made = {name for name in everything if name.startswith("data/train-")}
    assert made <= sent | finished
    assert "counts/data/part-00000-of-00002.parquet" not in sent  # counts, of the step before
    # Uploads that a killed job had begun are all that is left of it: docs/running.md says so.
    # The store is asked to end them as the rule of a bucket does, and no object changes.
    begun = store.unfinished()
    assert all(upload["Key"].startswith("whole/out/") for upload in begun)
    assert len(begun) <= 2  # one of each worker
    for upload in begun:
        store.client.abort_multipart_upload(
            Bucket=BUCKET, Key=upload["Key"], UploadId=upload["UploadId"]
        )
    assert store.unfinished() == []
    assert store.tree("whole/out/") == expected
    done = bpe("verify", f"{at}/out", "--json", "-q", *store.flags, seconds=PATIENCE)
    assert list(json.loads(done.stdout)) == ["counts", "tokenizer", "encoded"]


def recorded(store: Store, prefix: str) -> set[str]:
    """The parts below ``prefix`` that have a record, which makes them finished."""
    names = store.tree(f"{prefix}records/train-")
    return {f"data/train-{name.removesuffix('.json')}.parquet" for name in names}
