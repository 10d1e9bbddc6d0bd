"""Training that begins with a tokenizer: its files, and what is refused."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

import bpe
from bpe import CharacterLevel, Tokenizer, train
from bpe.errors import TokenizerError, TrainingError
from tests.bpe.huggingface import ids_of, written
from tests.bpe.oracle import known, training_of

if TYPE_CHECKING:
    from pathlib import Path


def test_files_keep_it_and_hugging_face_reads_them(tmp_path: Path) -> None:
    """Also where special tokens stand among the others."""
    text = "low lower lowest, new newer newest; die neue niedrige Niederung"
    first = train(bpe.count_pretokens([text[:30]] * 2), vocab_size=262)
    old = Tokenizer(
        tokens=[*first.tokens, b"<|end|>"],
        merges=first.merges,
        pretokenizer=first.pretokenizer,
        special_tokens={"<|end|>": 262},
    )
    old.save(tmp_path / "old.json")
    counts = bpe.count_pretokens([text])
    new = train(counts, extend=Tokenizer.load(tmp_path / "old.json"), vocab_size=280)
    extends = known(training_of(new).extends)
    assert (extends.sha256, extends.vocab_size, extends.merges) == (old.sha256, 263, 6)
    new.save(tmp_path / "new.json")
    training_of(new).save(tmp_path / "training.json")
    assert Tokenizer.load(tmp_path / "new.json") == new
    assert bpe.Training.load(tmp_path / "training.json") == training_of(new)
    theirs = written(new)
    assert ids_of(theirs, text) == new.encode(text)
    assert theirs.encode("<|end|>").ids == [262]
    assert max(new.encode(text)) > 262
    with pytest.raises(TokenizerError, match="is not between"):
        new.truncated(len(old) - 1)


OLD = train(bpe.count_pretokens(["low lower lowest"], special_tokens=["<s>"]), vocab_size=260)
COUNTS = bpe.count_pretokens(["new newer"])
CL100K = bpe.count_pretokens(["x"], pretokenizer="cl100k")
CUT = bpe.count_pretokens(["x"], special_tokens=["<e>"])
CHARACTERS, PIECES = (
    train(COUNTS, vocab_size=300, model=model) for model in (CharacterLevel(), bpe.WordPiece())
)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"vocab_size": 259}, "`vocab_size` 259 is smaller than the tokenizer to extend.* 260"),
        ({"ties": "huggingface"}, "ties 'huggingface' cannot extend"),
        ({"model": CharacterLevel()}, "only byte-level BPE .* the model asked for is Character"),
        ({"special_tokens": ["<pad>"]}, r"has '<pad>', which .* lacks \(it has '<s>'\)"),
        ({"initial_alphabet": "x"}, "initial_alphabet"),
        ({"extend": "tokenizer.json"}, "`extend` is str, not a tokenizer: load it"),
        ({"counts": CL100K}, "split with cl100k, but .* with gpt2"),
        ({"counts": CUT}, "at the special token '<e>', which"),
        ({"extend": CHARACTERS}, "only byte-level BPE .* the tokenizer to extend is Character"),
        ({"extend": PIECES}, "does not record its merges, .* tokenizer to extend is WordPiece"),
    ],
)
def test_settings_that_contradict_the_tokenizer(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(TrainingError, match=message):
        train(**{"counts": COUNTS, "extend": OLD, "max_merges": 3, **arguments})
