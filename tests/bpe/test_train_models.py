"""Training models of characters, and pre-tokens that are never split."""

from __future__ import annotations

from bpe import (
    PretokenCounts,
    WordPiece,
    train,
)
from bpe.reference.train import train as train_reference
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


def test_word_piece_joins_what_is_rare_apart() -> None:
    """The pair of the greatest count(ab) / (count(a) · count(b)), not the most frequent one."""
    words = {"hug": 10, "pug": 5, "pun": 12, "bun": 4, "hugs": 5}
    counts = PretokenCounts.from_items(words, pretokenizer="words", track_order=True)
    tokenizer = train(counts, max_merges=3, ties="first-seen", model=WordPiece())
    # The corpus of huggingface.co/learn/llm-course/chapter6/6, which takes (hu, ##g) at last: it
    # gives that pair a score of 1/15, but 10 / (15 * 15) is less than 5 / (15 * 5).
    training = training_of(tokenizer)
    assert [(one.left, one.right, one.count) for one in training.merges] == [
        (b"##g", b"##s", 5),
        (b"h", b"##u", 15),
        (b"hu", b"##gs", 5),
    ]
    assert tokenizer.tokenize("hugs hug pug") == ["hugs", "hu", "##g", "p", "##u", "##g"]


def test_a_word_piece_is_no_text_that_is_spelled_like_it() -> None:
    """Words that begin with the prefix, or with the unknown token, are words as any others."""
    model = WordPiece()
    items = {"###": 5, "##a": 4, "#": 2, "a#": 3, "[UNK]": 2, "[UNK]a": 1}
    trained = train(PretokenCounts.from_items(items), max_merges=6, model=model)
    words = [(model.symbols(word.encode()), count) for word, count in sorted(items.items())]
    alphabet = sorted({symbol for symbols, _ in words for symbol in symbols})
    learnt = train_reference(
        words,
        ties="bytes-min",
        alphabet=alphabet,
        max_merges=6,
        prefix=b"##",
        forbidden=[b"[UNK]"],
    )
    assert list(training_of(trained).merges) == learnt.merges
