"""Training models of characters, and pre-tokens that are never split."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from bpe import (
    CharacterLevel,
    PretokenCounts,
    Pretokenizer,
    WordPiece,
    train,
)
from bpe.errors import TrainingError

if TYPE_CHECKING:
    from bpe.models import Model

NEVER_SPLIT = Pretokenizer("words", never_split=(r"\S*@\S*",))
MODELS = (CharacterLevel(), CharacterLevel(end_of_word=""), WordPiece())


@pytest.mark.parametrize("model", MODELS)
def test_characters_of_malformed_words_are_refused(model: Model) -> None:
    counts = PretokenCounts.from_items([("ab", 2), (b"a\xffb", 1)])
    with pytest.raises(TrainingError, match=r"b'a\\xffb' is not UTF-8"):
        train(counts, max_merges=2, model=model)
    counts = PretokenCounts.from_items([(b"@\xff", 1)], pretokenizer=NEVER_SPLIT)
    with pytest.raises(TrainingError, match="is not UTF-8"):
        train(counts, max_merges=2, model=model)


@pytest.mark.parametrize("model", MODELS)
def test_models_of_characters_refuse_what_is_of_bytes(model: Model) -> None:
    counts = PretokenCounts.from_items({"ab": 1})
    with pytest.raises(TrainingError, match="'huggingface' is for byte-level models"):
        train(counts, max_merges=2, model=model, ties="huggingface")
    with pytest.raises(TrainingError, match="'x' is a single character"):
        train(counts, max_merges=2, model=model, special_tokens=("x",))
    for initial in (["ab"], [""], [7], ["\ud800"]):
        with pytest.raises(TrainingError, match="initial_alphabet holds"):
            train(counts, max_merges=2, model=model, initial_alphabet=initial)  # type: ignore[arg-type]


def test_a_special_token_that_is_a_symbol_is_refused() -> None:
    counts = PretokenCounts.from_items({"ab": 1})
    for model, token in ((CharacterLevel(), "</w>"), (WordPiece(), "##b")):
        with pytest.raises(TrainingError, match=f"'{token}' is a symbol"):
            train(counts, max_merges=2, model=model, special_tokens=(token,))


def test_bytes_have_no_initial_alphabet() -> None:
    counts = PretokenCounts.from_items({"ab": 1})
    with pytest.raises(TrainingError, match="have all 256 bytes"):
        train(counts, max_merges=2, initial_alphabet="x")
    with pytest.raises(TrainingError, match="the model is 'wordpiece'"):
        train(counts, max_merges=2, model="wordpiece")  # type: ignore[arg-type]


def test_a_vocabulary_without_tokens_is_refused() -> None:
    counts = PretokenCounts.from_items({"ab": 1})
    model = CharacterLevel(end_of_word="")
    with pytest.raises(TrainingError, match="nothing to train on"):
        train(counts, max_merges=2, model=model, prune_below=2)


def test_the_unknown_token_of_a_model_is_special() -> None:
    counts = PretokenCounts.from_items({"ab": 1})
    tokenizer = train(counts, max_merges=1, model=WordPiece(), special_tokens=("[PAD]",))
    assert tokenizer.special_tokens == {"[PAD]": 0, "[UNK]": 1}
    given = train(counts, max_merges=1, model=WordPiece(), special_tokens=("[UNK]", "[PAD]"))
    assert given.special_tokens == {"[UNK]": 0, "[PAD]": 1}


def test_scores_are_compared_exactly() -> None:
    """1 / (2^59 - 1) is more than 1 / 2^59, which no floating-point number tells apart."""
    counts = PretokenCounts.from_items({"ab": 2**59, "cd": 2**59 - 1}, pretokenizer="words")
    training = train(counts, max_merges=2, model=WordPiece()).training
    assert training is not None
    assert [merge.left for merge in training.merges] == [b"c", b"a"]


def test_word_piece_joins_what_is_rare_apart() -> None:
    """The pair of the greatest count(ab) / (count(a) · count(b)), not the most frequent one."""
    words = {"hug": 10, "pug": 5, "pun": 12, "bun": 4, "hugs": 5}
    counts = PretokenCounts.from_items(words, pretokenizer="words", track_order=True)
    tokenizer = train(counts, max_merges=3, ties="first-seen", model=WordPiece())
    # The corpus of huggingface.co/learn/llm-course/chapter6/6, which takes (hu, ##g) at last: it
    # gives that pair a score of 1/15, but 10 / (15 * 15) is less than 5 / (15 * 5).
    training = tokenizer.training
    assert training is not None
    assert [(one.left, one.right, one.count) for one in training.merges] == [
        (b"##g", b"##s", 5),
        (b"h", b"##u", 15),
        (b"hu", b"##gs", 5),
    ]
    assert tokenizer.tokenize("hugs hug pug") == ["hugs", "hu", "##g", "p", "##u", "##g"]
