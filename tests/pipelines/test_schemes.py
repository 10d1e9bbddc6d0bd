"""Whole jobs where input and output are not on a local disk."""

from __future__ import annotations

import io
import json
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
from pipelines.settings import Execution, InputSettings
from tests import jobs
from tests.pipelines.corpora import (
    KINDS,
    ONE,
    SPLIT,
    Corpus,
    decoded,
    encode,
    small_tokenizer,
    train,
    tree,
    write_corpus,
)
from tests.pipelines.object_store import ObjectStore

if TYPE_CHECKING:
    from pathlib import Path

PATTERNS = tuple(f"store://bucket/corpus/{kind}" for kind in KINDS)
INPUTS = InputSettings(patterns=PATTERNS, split_size=SPLIT)
MODEL, IDS = "store://bucket/model", "store://bucket/ids"


@pytest.fixture
def corpus(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Corpus:
    """A corpus on disk, and the same in the store."""
    made = write_corpus(tmp_path / "corpus")
    objects = {f"store://bucket/corpus/{name}": data for name, data in tree(made.folder).items()}
    monkeypatch.setattr(ObjectStore, "objects", objects)
    return made


def test_what_lies_in_a_store_is_verified_reported_on_and_decoded(corpus: Corpus) -> None:
    train(MODEL, inputs=INPUTS)
    encode(INPUTS, f"{MODEL}/tokenizer.json", IDS + "/")
    assert jobs.verify(directory=IDS, inputs=INPUTS).documents == len(corpus.documents)
    for directory in (IDS, MODEL, f"{MODEL}/counts"):
        assert report(directory).output == f"{directory}/report.html"
        assert b"<!doctype html>" in ObjectStore.objects[f"{directory}/report.html"]
    assert decoded(IDS) == corpus.documents


def test_a_comparison_leaves_its_result_and_nothing_else(corpus: Corpus, tmp_path: Path) -> None:
    tokenizer = small_tokenizer(tmp_path / "large.json")
    tokenizer.truncated(280).save(tmp_path / "small.json")
    for name in ("large", "small"):
        path = tmp_path / f"{name}.json"
        ObjectStore.objects[f"store://bucket/{name}.json"] = path.read_bytes()
    ObjectStore.objects["store://bucket/corpus/bad.jsonl"] = b"no json\n"
    (corpus.folder / "bad.jsonl").write_bytes(b"no json\n")
    before = ObjectStore.tree("store:/")
    elsewhere = jobs.compare(
        inputs=replace(INPUTS, max_failures=1),
        tokenizers=parse_tokenizers(["store://bucket/large.json", "store://bucket/small.json"]),
        by="file",
        output="store://bucket/compared.json",
        execution=Execution(runner="BundleBasedDirectRunner"),  # not the one that is ours
    )
    ((name, written),) = ObjectStore.tree("store:/").items() - before.items()
    assert (name, json.loads(written)) == ("/bucket/compared.json", elsewhere)
    here = jobs.compare(
        inputs=corpus.inputs(max_failures=1),
        tokenizers=parse_tokenizers([f"{tmp_path}/large.json", f"{tmp_path}/small.json"]),
        by="file",
        execution=ONE,
    )
    paths = {one.pop("path") for result in (elsewhere, here) for one in result["tokenizers"]}
    assert len(paths) == 4
    assert elsewhere == here


class ClientError(Exception):
    """Of a client that has errors of its own, as Google's and that of HDFS."""


def test_a_store_whose_client_has_errors_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    unreadable, missing = "store://bucket/unreadable", "store://bucket/nothing"
    opened = ObjectStore.opened

    def refusing(store: ObjectStore, path: str) -> io.BytesIO:
        if path == unreadable:
            raise ClientError(f"404\n{path}")
        return opened(store, path)

    monkeypatch.setattr(ObjectStore, "opened", refusing)
    monkeypatch.setitem(ObjectStore.objects, unreadable, b"12345")
    with pytest.raises(InputError, match=f"{unreadable}: cannot read: ClientError: 404 store"):
        storage.read(unreadable)
    with pytest.raises(InputError, match=f"{missing}: cannot read: it does not exist"):
        storage.read(missing)
    with pytest.raises(InputError, match=f"{unreadable}: cannot read: ClientError: 404"):
        StoredBytes(whole_file(input_file(unreadable, "unreadable", 5, "text"), 0))
    with pytest.raises(LostFileError, match=f"{missing}: the file had 5 bytes .* is gone now"):
        StoredBytes(whole_file(input_file(missing, "nothing", 5, "text"), 0))


class BrokenFile(io.BytesIO):
    """Whose client fails in the middle, with an error that is no OSError."""

    def read(self, size: int | None = -1, /) -> bytes:
        if self.tell() >= 40:
            raise ClientError("503\ntry later")
        return super().read(40 if size is None or size < 0 else min(size, 40))


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
    named = r"store://bucket/corpus/\S+: cannot read: ClientError: 503 try later"
    with pytest.raises(JobError, match=named):
        encode(INPUTS, f"{MODEL}/tokenizer.json", IDS)
