"""A beginner's way: a job fails at once, and is typed again with the mistake mended."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

import pytest

from tests.cli.process import bpe
from tests.pipelines.corpora import tree, write_jsonl

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with a small corpus."""
    texts = [f"low lower lowest {number}" for number in range(20)]
    return write_jsonl(tmp_path / "a.jsonl", texts).folder


def test_a_job_that_failed_at_once_does_not_stand_in_its_own_way(folder: Path) -> None:
    train = ("train", "--input", "a.jsonl", "--vocab-size", "270", "--output", "model")
    failed = bpe(*train, "--text-field", "body", cwd=folder, status=1)
    assert "body" in failed.stderr
    bpe(*train, cwd=folder)

    encode = ("encode", "--input", "a.jsonl", "--tokenizer", "model/tokenizer.json")
    bpe(*encode, "--output", "ids", "--text-field", "body", cwd=folder, status=1)
    again = bpe(*encode, "--output", "ids", "--resume", cwd=folder)
    assert "20 documents" in again.stdout


@pytest.mark.parametrize("again", [(), pytest.param(("--resume",), marks=pytest.mark.long)])
def test_a_training_on_nothing_does_not_stand_in_the_way_of_the_next(
    folder: Path, again: tuple[str, ...]
) -> None:
    (folder / "corpus").mkdir()
    (folder / "corpus" / "a.jsonl").write_text('{"text": ""}\n', "utf-8")
    train = ("train", "--input", "corpus", "--vocab-size", "270", "--output", "model")
    assert "nothing to train on" in bpe(*train, cwd=folder, status=1).stderr
    assert not (folder / "model" / "tokenizer.json").exists()
    shutil.copy(folder / "a.jsonl", folder / "corpus")
    assert "270 tokens" in bpe(*train, *again, cwd=folder).stdout
    bpe("train", "--input", "a.jsonl", "--vocab-size", "270", "--output", "other", cwd=folder)
    assert tree(folder / "model") == tree(folder / "other")
    refused = bpe(*train, cwd=folder, status=1).stderr
    assert (
        "model holds the output of bpe train, which is complete: replace it with --overwrite"
    ) in refused


@pytest.mark.long
def test_a_run_that_had_nothing_to_train_on_does_not_either(folder: Path) -> None:
    (folder / "job.yaml").write_text("output: job\nvocab_size: 270\n", "utf-8")
    (folder / "empty.txt").touch()
    bpe("run", "job.yaml", "--input", "empty.txt", cwd=folder, status=1)
    assert "20 documents" in bpe("run", "job.yaml", "--input", "a.jsonl", cwd=folder).stdout
