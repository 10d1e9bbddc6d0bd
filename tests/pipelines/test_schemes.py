"""Whole jobs where input and output are not on a local disk."""

from __future__ import annotations

import io
import json
import re
import subprocess
import sys
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from pipelines import storage
from pipelines.compare.tokenizers import parse_tokenizers
from pipelines.corpus.documents.stored import LostFileError, StoredBytes
from pipelines.corpus.files import input_file
from pipelines.corpus.splits import whole_file
from pipelines.errors import InputError, JobError
from pipelines.report import report
from pipelines.settings import (
    Execution,
    InputSettings,
    OutputSettings,
    PretokenSettings,
    TrainSettings,
)
from tests import jobs
from tests.cli.process import environment
from tests.pipelines.corpora import (
    KINDS,
    ONE,
    SPLIT,
    Corpus,
    small_tokenizer,
    tree,
    write_corpus,
)
from tests.pipelines.object_store import ObjectStore

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

PATTERNS = tuple(f"store://bucket/corpus/{kind}" for kind in KINDS)
INPUTS = InputSettings(patterns=PATTERNS, split_size=SPLIT)
MODEL, IDS = "store://bucket/model", "store://bucket/ids"


@pytest.fixture
def corpus(tmp_path: Path) -> Iterator[Corpus]:
    """A corpus on disk, and the same in the store."""
    made = write_corpus(tmp_path / "corpus")
    for name, data in tree(made.folder).items():
        ObjectStore.objects[f"store://bucket/corpus/{name}"] = data
    yield made
    ObjectStore.objects.clear()


def train_in_store() -> None:
    jobs.train(
        inputs=INPUTS,
        pretokens=PretokenSettings(),
        training=TrainSettings(vocab_size=300),
        output=OutputSettings(directory=MODEL),
        execution=ONE,
    )


def encode_in_store() -> jobs.EncodeSummary:
    return jobs.encode(
        inputs=INPUTS,
        tokenizer=f"{MODEL}/tokenizer.json",
        output=OutputSettings(directory=IDS + "/"),
        execution=ONE,
    )


def test_what_lies_in_a_store_is_verified_reported_on_and_decoded(corpus: Corpus) -> None:
    train_in_store()
    encode_in_store()
    assert jobs.verify(directory=IDS, inputs=INPUTS).documents == len(corpus.documents)
    for directory in (IDS, MODEL, f"{MODEL}/counts"):
        assert report(directory).output == f"{directory}/report.html"
        assert b"<!doctype html>" in ObjectStore.objects[f"{directory}/report.html"]
    assert jobs.decode(directory=IDS, stream=io.BytesIO()) == len(corpus.documents)


def test_a_comparison_leaves_its_result_and_nothing_else(corpus: Corpus, tmp_path: Path) -> None:
    tokenizer = small_tokenizer(tmp_path / "large.json")
    tokenizer.truncated(280).save(tmp_path / "small.json")
    for name in ("large", "small"):
        path = tmp_path / f"{name}.json"
        ObjectStore.objects[f"store://bucket/{name}.json"] = path.read_bytes()
    ObjectStore.objects["store://bucket/corpus/bad.jsonl"] = b"no json\n"
    (corpus.folder / "bad.jsonl").write_bytes(b"no json\n")
    before = stored()
    elsewhere = jobs.compare(
        inputs=replace(INPUTS, max_failures=1),
        tokenizers=parse_tokenizers(["store://bucket/large.json", "store://bucket/small.json"]),
        by="file",
        output="store://bucket/compared.json",
        execution=Execution(runner="BundleBasedDirectRunner"),  # not the one that is ours
    )
    written = {path: data for path, data in stored().items() if path not in before}
    assert list(written) == ["store://bucket/compared.json"]
    assert json.loads(written["store://bucket/compared.json"]) == elsewhere
    here = jobs.compare(
        inputs=corpus.inputs(max_failures=1),
        tokenizers=parse_tokenizers([f"{tmp_path}/large.json", f"{tmp_path}/small.json"]),
        by="file",
        execution=ONE,
    )
    paths = {one.pop("path") for result in (elsewhere, here) for one in result["tokenizers"]}
    assert len(paths) == 4
    assert elsewhere == here


def stored() -> dict[str, bytes]:
    """All objects but times, ids of runs and splits, which are never the same."""
    return {f"store:/{name}": data for name, data in ObjectStore.tree("store:/").items()}


class NotFoundError(Exception):
    """Of a client that has errors of its own, as Google's and that of HDFS."""


def test_a_store_whose_client_has_errors_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    unreadable, missing = "store://bucket/unreadable", "store://bucket/nothing"
    opened = ObjectStore.opened

    def refusing(store: ObjectStore, path: str) -> io.BytesIO:
        if path == unreadable:
            raise NotFoundError(f"404\n{path}")
        return opened(store, path)

    monkeypatch.setattr(ObjectStore, "opened", refusing)
    monkeypatch.setitem(ObjectStore.objects, unreadable, b"12345")
    with pytest.raises(InputError, match=f"{unreadable}: cannot read: NotFoundError: 404 store"):
        storage.read(unreadable)
    with pytest.raises(InputError, match=f"{missing}: cannot read: it does not exist"):
        storage.read(missing)
    with pytest.raises(InputError, match=f"{unreadable}: cannot read: NotFoundError: 404"):
        StoredBytes(whole_file(input_file(unreadable, "unreadable", 5, "text"), 0))
    with pytest.raises(LostFileError, match=f"{missing}: the file had 5 bytes .* is gone now"):
        StoredBytes(whole_file(input_file(missing, "nothing", 5, "text"), 0))


class BrokenFile(io.BytesIO):
    """Whose client fails in the middle, with an error that is no OSError."""

    def read(self, size: int | None = -1, /) -> bytes:
        if self.tell() >= 40:
            raise ConnectionLostError("503\ntry later")
        return super().read(40 if size is None or size < 0 else min(size, 40))


class ConnectionLostError(Exception):
    """Of a client that has errors of its own."""


@pytest.mark.usefixtures("corpus")
def test_a_file_at_which_a_store_fails_is_named(
    model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ObjectStore.objects[f"{MODEL}/tokenizer.json"] = model.read_bytes()
    opened = ObjectStore.opened

    def breaking(store: ObjectStore, path: str) -> Any:
        file = opened(store, path)
        return BrokenFile(file.read()) if path.startswith("store://bucket/corpus/") else file

    monkeypatch.setattr(ObjectStore, "opened", breaking)
    named = r"store://bucket/corpus/\S+: cannot read: ConnectionLostError: 503 try later"
    with pytest.raises(JobError, match=named):
        encode_in_store()


# Each in a process that has used no filesystem yet.
CALLS = """
import os, sys
from pipelines.decode import decode
from pipelines.errors import JobError
from pipelines.recipes import run
from pipelines.settings import *
from pipelines.verify.job import verify
import tests.pipelines.object_store

at = "store://bucket/none"
inputs, output = InputSettings(patterns=(at,)), OutputSettings(directory=at)
calls = {
    "verify": lambda: verify(directory=at),
    "decode": lambda: decode(directory=at, stream=sys.stdout.buffer),
    "run": lambda: run(
        inputs=inputs, pretokens=PretokenSettings(), training=TrainSettings(vocab_size=300),
        output=output, encoded_inputs=inputs, encoding=EncodeSettings(), execution=Execution(),
    ),
}
for name, call in calls.items():
    if not os.fork():
        try:
            call()
        except JobError as error:
            print(name, error)
        sys.exit()
    assert os.waitstatus_to_exitcode(os.wait()[1]) == 0
"""


def test_filesystems_get_options_before_they_are_used() -> None:
    command = [sys.executable, "-c", CALLS]
    done = subprocess.run(
        command, env=environment(), capture_output=True, text=True, check=True, timeout=120
    )
    errors = done.stdout.splitlines()
    assert [error.partition(" ")[0] for error in errors] == ["verify", "decode", "run"]
    assert all(re.search("no manifest.json|no file matches", error) for error in errors)
