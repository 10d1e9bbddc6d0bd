from __future__ import annotations

import pytest

import bpe
from bpe import CharacterLevel, WordPiece
from tests.bpe.oracle import training_of

TEXTS = ["playing played plays play player", "low lower lowest low", "the player is playing"] * 2


def trained(model: bpe.models.Model, vocab_size: int) -> bpe.Tokenizer:
    counts = bpe.count_pretokens(TEXTS, pretokenizer="words", track_order=True)
    return bpe.train(counts, vocab_size=vocab_size, model=model)


@pytest.mark.parametrize("model", [bpe.ByteLevel(), CharacterLevel(unknown="<unk>")])
def test_one_training_tells_of_every_size(model: bpe.models.Model) -> None:
    largest = trained(model, 400)
    table = training_of(largest).curve()
    assert [row.vocab_size for row in table] == list(
        range(training_of(largest).initial_vocab, len(largest) + 1)
    )
    words = [word for text in TEXTS for word in text.split()]
    for row in table[:: len(table) // 4]:
        direct = trained(model, row.vocab_size)
        tokens = sum(len(direct.encode(word)) for word in words)
        assert row.tokens == tokens
        assert row.tokens_per_word == pytest.approx(tokens / len(words))
        assert row.bytes_per_token == pytest.approx(sum(map(len, words)) / tokens)
        assert largest.truncated(row.vocab_size) == direct
    averages = [row.tokens_per_word for row in table]
    assert averages == sorted(averages, reverse=True)


def test_words_that_are_dropped_or_whole_do_not_count() -> None:
    texts = ["see https://a.example/b twice twice", "see https://a.example/b once"]
    counts = bpe.count_pretokens(texts, pretokenizer="words", never_split=["url"])
    training = training_of(bpe.train(counts, vocab_size=257, prune_below=2))
    assert training.initial_words == 4
    assert training.curve()[0].tokens_per_word == (2 * 3 + 2 * 5) / 4


def test_nothing_has_no_average() -> None:
    training = training_of(bpe.train(bpe.count_pretokens([]), vocab_size=256))
    assert training.curve() == [(256, 0, 0.0, 0.0)]


@pytest.mark.parametrize("model", [CharacterLevel(unknown="<unk>"), WordPiece(), bpe.ByteLevel()])
def test_whether_words_share_a_root(model: bpe.models.Model) -> None:
    sizes = {bpe.ByteLevel: 300, WordPiece: 50, CharacterLevel: 22}
    tokenizer = trained(model, sizes[type(model)])
    root = tokenizer.common_root(["playing", "played", "plays"])
    tokens = [tokenizer.tokenize(word) for word in ("playing", "played", "plays")]
    assert all(one[: len(root)] == root for one in tokens)
    assert len({tuple(one[: len(root) + 1]) for one in tokens}) > 1
    if isinstance(model, CharacterLevel):
        assert root == ["play"]
    assert tokenizer.common_root(["playing", "low"]) == []
    assert tokenizer.common_root(["playing"]) == tokenizer.tokenize("playing")
    assert tokenizer.common_root([]) == []
