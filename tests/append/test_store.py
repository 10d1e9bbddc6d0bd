"""Appending on an S3 server of this machine: the input, the output, or both."""

from __future__ import annotations

import json
from itertools import islice
from typing import TYPE_CHECKING

import pytest

from pipelines.settings import AppendSettings, InputSettings, OutputSettings
from tests import jobs
from tests.append.drops import FILES, make_drops
from tests.cli.process import bpe
from tests.faults import test_object_store
from tests.faults.running import PATIENCE, running, until
from tests.faults.store import BUCKET, Store
from tests.pipelines.corpora import sentence, small_tokenizer

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

# Beam makes a client of the store for each request, which takes a tenth of a second.
pytestmark = pytest.mark.long
store = test_object_store.store


def put(store: Store, prefix: str, contents: Mapping[str, bytes]) -> None:
    """Let files arrive."""
    for name, data in contents.items():
        store.client.put_object(Bucket=BUCKET, Key=f"{prefix}/in/{name}", Body=data)


def decoded(directory: str, store: Store, path: Path) -> list[str]:
    with path.open("wb") as stream:
        jobs.decode(directory=directory, stream=stream, execution=store.execution())
    return sorted(json.loads(line)["id"] for line in path.read_bytes().splitlines())


def test_a_file_that_changes(store: Store, tmp_path: Path) -> None:
    at = f"s3://{BUCKET}/encoded"
    small_tokenizer(tmp_path / "t.json")
    inputs = InputSettings(patterns=(f"{at}/in/*.jsonl",))

    def appended(**documents: int) -> tuple[int, int]:
        for name, number in documents.items():
            rows = ({"id": f"{name}{i}", "text": sentence(i)} for i in range(number))
            data = "\n".join(map(json.dumps, rows)).encode()
            put(store, "encoded", {f"{name} [1].jsonl": data})
        summary = jobs.encode(
            inputs=inputs,
            tokenizer=str(tmp_path / "t.json"),
            output=OutputSettings(directory=f"{at}/out"),
            execution=store.execution(),
            appending=AppendSettings(append=True),
        )
        return summary.inputs, summary.new_inputs

    assert appended(a=3, other=2) == (2, 2)
    assert appended(a=4, b=1) == (3, 3)  # "other" shares the unit of work of the first "a"
    assert appended() == (3, 0)
    verified = jobs.verify(directory=f"{at}/out", inputs=inputs, execution=store.execution())
    assert verified.documents == 7
    ids = ["a0", "a1", "a2", "a3", "b0", "other0", "other1"]
    assert decoded(f"{at}/out", store, tmp_path / "decoded") == ids
    names = store.tree("encoded/out/")
    assert sum(name.startswith("data/train-") for name in names) == 2  # one is superseded


@pytest.mark.parametrize("what", ["encode", "count"])
def test_a_loop_that_is_killed_and_started_again(store: Store, tmp_path: Path, what: str) -> None:
    """Half of the files are there when it is killed."""
    drops = make_drops()
    prefix, at = f"killed-{what}", f"s3://{BUCKET}/killed-{what}"
    small_tokenizer(tmp_path / "t.json")
    command = [what, "--input", f"{at}/in/*", "--output", f"{at}/out", "--max-failures", "1000"]
    command += ["--tokenizer", str(tmp_path / "t.json")] if what == "encode" else []
    first = dict(islice(drops.contents.items(), FILES // 2))

    def has_begun() -> bool:
        listed = store.client.list_objects_v2(Bucket=BUCKET, Prefix=f"{prefix}/out/data/")
        return int(listed["KeyCount"]) > 0

    put(store, prefix, first)
    with running(*command, "--watch", "0.3", "--settle", "0", *store.flags) as process:
        until(has_begun, process)
        process.kill()
    put(store, prefix, {name: drops.contents[name] for name in drops.contents.keys() - first})
    ended = bpe(*command, "--append", "--json", *store.flags, seconds=PATIENCE)
    summary = json.loads(ended.stdout)
    assert summary["documents"] == len(drops.documents)
    assert summary["failures"] == drops.bad
    bpe("verify", f"{at}/out", "--input", f"{at}/in/*", *store.flags, seconds=PATIENCE)
    if what == "encode":
        documents = sorted(id_ for id_, _ in drops.documents)
        assert decoded(f"{at}/out", store, tmp_path / "decoded") == documents
