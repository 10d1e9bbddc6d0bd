"""Appending on an S3 server of this machine: the input, the output, or both."""

from __future__ import annotations

import json
import signal
from typing import TYPE_CHECKING

import pytest

from pipelines.settings import (
    AppendSettings,
    EncodeSettings,
    InputSettings,
    OutputSettings,
    PretokenSettings,
    TrainSettings,
)
from tests import jobs
from tests.append.drops import make_drops, running, wait_for
from tests.cli.process import bpe
from tests.faults import test_object_store
from tests.faults.store import BUCKET, Store
from tests.pipelines.corpora import sentence, small_tokenizer

if TYPE_CHECKING:
    from pathlib import Path

# Beam makes a client of the store for each request, which takes a tenth of a second.
pytestmark = pytest.mark.long
store = test_object_store.store
APPEND = AppendSettings(append=True)


def put(store: Store, prefix: str, name: str, documents: int) -> None:
    lines = [json.dumps({"id": f"{name}{i}", "text": sentence(i)}) for i in range(documents)]
    store.client.put_object(
        Bucket=BUCKET, Key=f"{prefix}/in/{name}.jsonl", Body="\n".join(lines).encode()
    )


def decoded(directory: str, store: Store, path: Path) -> list[str]:
    with path.open("wb") as stream:
        jobs.decode(directory=directory, stream=stream, execution=store.execution())
    return sorted(json.loads(line)["id"] for line in path.read_bytes().splitlines())


def test_encoding(store: Store, tmp_path: Path) -> None:
    at = f"s3://{BUCKET}/encoded"
    small_tokenizer(tmp_path / "t.json")
    inputs = InputSettings(patterns=(f"{at}/in/*.jsonl",))

    def append() -> tuple[int, int]:
        summary = jobs.encode(
            inputs=inputs,
            tokenizer=str(tmp_path / "t.json"),
            output=OutputSettings(directory=f"{at}/out"),
            execution=store.execution(),
            encoding=EncodeSettings(),
            appending=APPEND,
        )
        return summary.inputs, summary.new_inputs

    put(store, "encoded", "a", 3)
    put(store, "encoded", "odd [1]", 2)
    assert append() == (2, 2)
    put(store, "encoded", "a", 4)  # in place of what it was
    put(store, "encoded", "b", 1)
    assert append() == (3, 3)  # "odd [1]" shares its unit of work
    assert append() == (3, 0)
    verified = jobs.verify(directory=f"{at}/out", inputs=inputs, execution=store.execution())
    assert verified.documents == 7
    ids = ["a0", "a1", "a2", "a3", "b0", "odd [1]0", "odd [1]1"]
    assert decoded(f"{at}/out", store, tmp_path / "decoded") == ids
    names = store.tree("encoded/out/")
    assert sum(name.startswith("data/train-") for name in names) == 2  # one is superseded


def test_counting(store: Store, tmp_path: Path) -> None:
    at = f"s3://{BUCKET}/counted"
    inputs = InputSettings(patterns=(f"{at}/in",))
    for first in (0, 12):
        for number in range(first, first + 12):
            put(store, "counted", f"{number:02}", number % 3)
        summary = jobs.count(
            inputs=inputs,
            pretokens=PretokenSettings(),
            output=OutputSettings(directory=f"{at}/out"),
            execution=store.execution(),
            appending=APPEND,
        )
        assert (summary.inputs, summary.new_inputs) == (first + 12, 12)
    jobs.verify(directory=f"{at}/out", inputs=inputs, execution=store.execution())
    sets = store.tree("counted/out/data/")
    training = TrainSettings(vocab_size=300)
    made = [
        jobs.train(
            inputs=None if counts else inputs,
            counts=counts,
            pretokens=PretokenSettings(),
            training=training,
            output=OutputSettings(directory=str(tmp_path / name)),
            execution=store.execution(),
        ).sha256
        for name, counts in (
            ("appended", (jobs.CountsInput(directory=f"{at}/out"),)),
            ("batch", ()),
        )
    ]
    assert made[0] == made[1]
    assert sets


@pytest.mark.long
@pytest.mark.parametrize("what", ["encode", "count"])
def test_a_loop_that_is_killed_and_started_again(store: Store, tmp_path: Path, what: str) -> None:
    """60 files, of which half are there when it is killed."""
    drops = make_drops(60)
    prefix, at = f"killed-{what}", f"s3://{BUCKET}/killed-{what}"
    small_tokenizer(tmp_path / "t.json")
    command = [what, "--input", f"{at}/in/*", "--output", f"{at}/out", "--max-failures", "1000"]
    command += ["--tokenizer", str(tmp_path / "t.json")] if what == "encode" else []
    names = sorted(drops.contents)

    def send(some: list[str]) -> None:
        for name in some:
            store.client.put_object(
                Bucket=BUCKET, Key=f"{prefix}/in/{name}", Body=drops.contents[name]
            )

    def has_begun() -> bool:
        listed = store.client.list_objects_v2(Bucket=BUCKET, Prefix=f"{prefix}/out/data/")
        return int(listed["KeyCount"]) > 0

    send(names[:30])
    with running(
        *command, "--watch", "0.3", "--settle", "0", *store.flags, cwd=tmp_path
    ) as process:
        wait_for(has_begun, process)
        process.send_signal(signal.SIGKILL)
    send(names[30:])
    ended = bpe(*command, "--append", "--json", *store.flags, cwd=tmp_path, seconds=600)
    summary = json.loads(ended.stdout)
    assert summary["documents"] == len(drops.documents)
    assert summary["failures"] == drops.bad
    bpe("verify", f"{at}/out", "--input", f"{at}/in/*", *store.flags, seconds=600)
    if what == "encode":
        assert decoded(f"{at}/out", store, tmp_path / "decoded") == sorted(drops.texts)
