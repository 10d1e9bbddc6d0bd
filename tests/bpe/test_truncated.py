"""The smaller tokenizer inside a tokenizer is the one that less training makes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from bpe import (
    ByteLevel,
    CharacterLevel,
    PretokenCounts,
    Tokenizer,
    WordPiece,
    train,
)
from bpe.errors import TokenizerError
from tests.bpe.vocabularies import byte_tokenizer

if TYPE_CHECKING:
    from pathlib import Path


def test_sizes_that_are_none_are_refused() -> None:
    tokenizer = train(PretokenCounts.from_items({"abab": 3}), max_merges=2)
    assert tokenizer.truncated(256).merges == []
    with pytest.raises(TokenizerError, match=r"`vocab_size` 255 is not between 256 .* and 258"):
        tokenizer.truncated(255)
    for size in (259, 0, -1, "257", 257.0, True):
        with pytest.raises(TokenizerError, match=r"is not between 1 and 258"):
            tokenizer.truncated(size)  # type: ignore[arg-type]


def test_a_tokenizer_that_was_loaded(tmp_path: Path) -> None:
    counts = PretokenCounts.from_items({"abab": 3, "abc": 1}, pretokenizer="words")
    for model in (ByteLevel(), CharacterLevel()):
        trained = train(counts, max_merges=3, model=model)
        trained.save(tmp_path / "tokenizer.json", dialect="beam-bpe")
        loaded = Tokenizer.load(tmp_path / "tokenizer.json")
        assert loaded.training is None
        for size in range(len(trained) - 3, len(trained) + 1):
            assert loaded.truncated(size) == trained.truncated(size)
        with pytest.raises(TokenizerError, match="does not hold"):
            loaded.truncated(2)


def test_word_piece_needs_its_training() -> None:
    counts = PretokenCounts.from_items({"abab": 3, "abc": 1}, pretokenizer="words")
    trained = train(counts, max_merges=3, model=WordPiece())
    again = trained.with_training(None)
    with pytest.raises(TokenizerError, match=r"with_training\(bpe.Training.load"):
        again.truncated(5)
    assert again.with_training(trained.training).truncated(7) == trained.truncated(7)


@pytest.mark.parametrize(
    ("tokenizer", "named"),
    [
        (byte_tokenizer("abc", "ab", joins=["a|b", "ab|c"]), "makes token 256 after .* token 257"),
        (
            byte_tokenizer("ab", "<|e|>", joins=["a|b"], special_tokens={"<|e|>": 257}),
            r"does not hold '<\|e\|>'",
        ),
        (byte_tokenizer(None, "ab", joins=["a|b"]), "no token has the id 256"),
    ],
)
def test_ids_that_do_not_follow_the_merges_are_refused(tokenizer: Tokenizer, named: str) -> None:
    with pytest.raises(TokenizerError, match=named):
        tokenizer.truncated(257)


def test_training_of_another_tokenizer_is_refused() -> None:
    one = train(PretokenCounts.from_items({"abab": 3}), max_merges=2)
    other = train(PretokenCounts.from_items({"abab": 3}), max_merges=1).training
    with pytest.raises(TokenizerError, match="training of another tokenizer"):
        one.with_training(other).truncated(257)
