"""Training models of characters, and pre-tokens that are never split."""

from __future__ import annotations

from bpe import (
    PretokenCounts,
    WordPiece,
    train,
)
from tests.bpe.oracle import training_of


def test_the_unknown_token_of_a_model_is_special() -> None:
    counts = PretokenCounts.from_items({"ab": 1})
    tokenizer = train(counts, max_merges=1, model=WordPiece(), special_tokens=("[PAD]",))
    assert tokenizer.special_tokens == {"[PAD]": 0, "[UNK]": 1}
    given = train(counts, max_merges=1, model=WordPiece(), special_tokens=("[UNK]", "[PAD]"))
    assert given.special_tokens == {"[UNK]": 0, "[PAD]": 1}


def test_scores_are_compared_exactly() -> None:
    """1 / (2^59 - 1) is more than 1 / 2^59, which no floating-point number tells apart."""
    counts = PretokenCounts.from_items({"ab": 2**59, "cd": 2**59 - 1}, pretokenizer="words")
    training = training_of(train(counts, max_merges=2, model=WordPiece()))
    assert [merge.left for merge in training.merges] == [b"c", b"a"]
