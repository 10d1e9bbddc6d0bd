"""``training.json``: what it holds, and what is refused."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

import bpe
from bpe.errors import TokenizerFileError
from bpe.training import Training

if TYPE_CHECKING:
    from pathlib import Path


def trained() -> bpe.Tokenizer:
    """A small tokenizer."""
    counts = bpe.count_pretokens(["the cat sat on the mat — naïve"], special_tokens=("<|e|>",))
    return bpe.train(counts, vocab_size=262)


def test_round_trip(tmp_path: Path) -> None:
    training = trained().training
    assert training is not None
    path = tmp_path / "training.json"
    training.save(path)
    assert Training.load(path) == training
    assert [entry.name for entry in tmp_path.iterdir()] == ["training.json"]


def test_fields(tmp_path: Path) -> None:
    tokenizer = trained()
    assert tokenizer.training is not None
    fields = json.loads(tokenizer.training.to_json())
    assert fields["ties"] == "bytes-min"
    assert fields["initial_tokens"] == len("the cat sat on the mat — naïve".encode())
    assert fields["counts"]["documents"] == 1
    assert fields["counts"]["special_tokens"] == ["<|e|>"]
    names = json.loads(tokenizer.to_json())["model"]["merges"]
    assert [[merge["left"], merge["right"]] for merge in fields["merges"]] == names
    left = [merge["tokens_left"] for merge in fields["merges"]]
    assert left == sorted(left, reverse=True)
    assert all(merge["count"] >= 1 for merge in fields["merges"])


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda text: text[: len(text) // 2], "not a training.json"),
        (lambda text: "[]", "not a training.json"),
        (lambda text: text.replace('"version": 1', '"version": 9'), "version 9"),
        (lambda text: text.replace('"count"', '"number"'), "KeyError: 'count'"),
        (lambda text: text.replace('"ties"', '"knots"'), "knots"),
        (lambda text: "[" * 100_000, "not a training.json"),
    ],
)
def test_broken_files_are_refused(tmp_path: Path, damage: object, message: str) -> None:
    training = trained().training
    assert training is not None
    path = tmp_path / "training.json"
    assert callable(damage)
    path.write_text(damage(training.to_json()), encoding="utf-8")
    with pytest.raises(TokenizerFileError, match=message) as raised:
        Training.load(path)
    assert str(path) in str(raised.value)
