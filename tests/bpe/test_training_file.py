"""``training.json``: what it holds, and what is refused."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

import bpe
from bpe.errors import TokenizerFileError
from bpe.files import with_checksum
from bpe.training_report import TrainedMerge, Training
from tests.bpe.oracle import training_of

if TYPE_CHECKING:
    from pathlib import Path


def trained() -> bpe.Tokenizer:
    """A small tokenizer."""
    counts = bpe.count_pretokens(["the cat sat on the mat — naïve"], special_tokens=("<|e|>",))
    return bpe.train(counts, vocab_size=262)


@pytest.mark.parametrize(
    "model", [bpe.ByteLevel(), bpe.CharacterLevel(unknown="<unk>"), bpe.WordPiece(prefix="@@")]
)
def test_round_trip_of_everything(tmp_path: Path, model: bpe.models.Model) -> None:
    cut = bpe.Pretokenizer("words", normalizer=("lowercase",), never_split=("email",))
    words = {"<</w>": 3, "é": 2, "née": 2, "a@b.org": 4, "rare": 1}
    counts = bpe.PretokenCounts.from_items(words, pretokenizer=cut)
    training = training_of(bpe.train(counts, max_merges=9, model=model, prune_below=2))
    assert training.whole_words
    assert training.pruned
    path = tmp_path / "training.json"
    training.save(path)
    assert Training.load(path) == training
    fields = json.loads(path.read_text(encoding="utf-8"))
    assert fields["model"]["type"] == type(model).__name__
    assert fields["score"] == ("wordpiece" if isinstance(model, bpe.WordPiece) else "count")
    assert fields["whole_words"][0]["token"].startswith("a@b.org")
    assert fields["counts"]["never_split"] == ["email"]
    assert fields["pruned"]["distinct_pretokens"] == 1


_TEXT = st.one_of(st.text('}{,": left\\\né', max_size=20), st.just('}, {"left": '), st.just("}, {"))


@given(pairs=st.lists(st.tuples(_TEXT, _TEXT), max_size=6), of_bytes=st.booleans())
def test_each_merge_is_a_line(pairs: list[tuple[str, str]], of_bytes: bool) -> None:
    training = training_of(trained())
    merges = tuple(TrainedMerge(a.encode(), b.encode(), 7, 5) for a, b in pairs)
    model = bpe.ByteLevel() if of_bytes else bpe.CharacterLevel(unknown="<unk>")
    changed = replace(training, model=model, merges=merges)
    text = changed.to_json()
    assert text.count('\n    {"left": ') == len(merges)
    assert text.endswith("\n  ]\n}\n")
    assert Training.read(text.encode(), where="text") == changed


def test_a_file_may_lack_fields(tmp_path: Path) -> None:
    training = training_of(trained())
    fields = json.loads(training.to_json())
    assert len(fields.pop("checksum")) == 64
    fields["tied"] = None  # as of `huggingface`
    (tmp_path / "training.json").write_text(json.dumps(with_checksum(fields)))
    loaded = Training.load(tmp_path / "training.json")
    assert loaded == replace(training, tied=None)
    assert loaded.truncated(260).tied is None


ALPHA = '"parity": {"global_merges": 0, "window": null, "alpha":'


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("(?s:.)+", "[]", "not a training.json"),
        ("(?s:.)+", "[" * 100_000, "not a training.json"),
        ('"version": 1', '"version": 9', "version 9"),
        ('"count":', '"number":', r"merges\[0\] has the unknown field 'number'"),
        ('"tokens_left": [0-9]+', '"tokens_left": true', r"\[0\]\.tokens_left must .*, got True"),
        ('"left": "t"', '"left": "日"', r"merges\[2\]\.left is no token"),
        ('"ties"', '"knots"', "knots"),
        ('"ByteLevel"', '"SentencePiece"', "SentencePiece"),
        ('"score": "count"', '"score": "wordpiece"', "score"),
        ('"count": 1', '"count": 3', "checksum mismatch"),
        ("vocabulary full", "bored", "stopped must be 'vocabulary full' or .*, got 'bored'"),
        ('"repeated": ..', '"repeated": {}', "repeated must be a list, got {}"),
        ('"pruned": null', '"pruned": []', r"pruned must be an object or null, got \[\]"),
        ('"pruned": null', '"pruned": {"a": -1}', "pruned.a must be an integer from 0 or null"),
        ('"mix"', f'{ALPHA} NaN}}, "mix"', "parity.alpha must be a number, got nan"),
        ('"mix"', f'{ALPHA} 1{"0" * 400}}}, "mix"', "parity.alpha must be a number, got 1000"),
    ],
    ids=lambda value: value[:40],
)
def test_broken_files_are_refused(tmp_path: Path, old: str, new: str, message: str) -> None:
    text = training_of(trained()).to_json()
    path = tmp_path / "training.json"
    path.write_text(re.sub(old, new, text, count=1), encoding="utf-8")
    with pytest.raises(TokenizerFileError, match=message) as raised:
        Training.load(path)
    assert str(path) in str(raised.value)


def test_a_lone_surrogate_is_no_token() -> None:
    text = replace(training_of(trained()), model=bpe.CharacterLevel()).to_json()
    text = text.replace('"left": "t"', r'"left": "\ud800"')
    with pytest.raises(TokenizerFileError, match=r"merges\[2\]\.left is no token"):
        Training.read(text.encode(), where="text")
