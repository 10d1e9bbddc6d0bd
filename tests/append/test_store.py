"""Appending on an S3 server of this machine: the input and the output."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from tests.append.drops import FILES, make_drops
from tests.cli.process import bpe
from tests.faults import test_object_store
from tests.faults.running import PATIENCE, running, until
from tests.faults.store import BUCKET, Store
from tests.pipelines.corpora import small_tokenizer

if TYPE_CHECKING:
    from pathlib import Path

# Beam makes a client of the store for each request, which takes a tenth of a second.
pytestmark = pytest.mark.long
store = test_object_store.store


@pytest.mark.parametrize("what", ["encode", "count"])
def test_a_loop_that_is_killed_and_started_again(store: Store, tmp_path: Path, what: str) -> None:
    """Half of the files are there when it is killed; in the end one changes."""
    drops = make_drops()
    prefix, at = f"killed-{what}", f"s3://{BUCKET}/killed-{what}"
    small_tokenizer(tmp_path / "t.json")
    command = [what, "--input", f"{at}/in/*", "--output", f"{at}/out", "--max-failures", "1000"]
    command += ["--tokenizer", str(tmp_path / "t.json")] if what == "encode" else []

    def arrive(names: list[str]) -> None:
        for name in names:
            key = f"{prefix}/in/{name}"
            store.client.put_object(Bucket=BUCKET, Key=key, Body=drops.contents[name])

    def append() -> tuple[int, int]:
        done = bpe(*command, "--append", "--json", *store.flags, seconds=PATIENCE)
        bpe("verify", f"{at}/out", "--input", f"{at}/in/*", *store.flags, seconds=PATIENCE)
        summary = json.loads(done.stdout)
        return summary["documents"], summary["failures"]

    names = list(drops.contents)
    arrive(names[: FILES // 2])
    with running(*command, "--watch", "0.3", "--settle", "0", *store.flags) as process:
        until(lambda: store.tree(f"{prefix}/out/data/"), process)
        process.kill()
    arrive(names[FILES // 2 :])
    assert append() == (len(drops.documents), drops.bad)
    if what == "encode":
        drops.contents["f000.jsonl"] = b'{"id": "new", "text": "the fox"}\n'  # it was empty
        arrive(["f000.jsonl"])
        assert append() == (len(drops.documents) + 1, drops.bad)
        lines = bpe("decode", f"{at}/out", *store.flags, seconds=PATIENCE).stdout.splitlines()
        ids = sorted(["new", *(id_ for id_, _ in drops.documents)])
        assert sorted(json.loads(line)["id"] for line in lines) == ids
