"""The trainer gives the merges of the textbook algorithm, whatever the ties, model and limits."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import bpe
from bpe import ByteLevel, CharacterLevel, PretokenCounts, Pretokenizer, Tokenizer, WordPiece, train
from bpe.byte_alphabet import HUGGINGFACE_ORDER
from bpe.pair_counts import PAIR_COUNTS
from bpe.reference import huggingface as reference_huggingface
from bpe.reference import train as reference
from bpe.ties import TIES

if TYPE_CHECKING:
    from bpe.models import Model
    from bpe.reference.train import Learnt

MODELS = (ByteLevel(), CharacterLevel(), CharacterLevel(end_of_word=""), WordPiece())
SETTINGS = [
    (ties, model)
    for model in MODELS
    for ties in TIES
    if ties != "huggingface" or isinstance(model, ByteLevel)
]


def in_order(counts: PretokenCounts) -> list[tuple[bytes, int]]:
    """The pre-tokens in the order of first occurrence."""
    assert counts.first_documents is not None
    assert counts.first_positions is not None
    places = zip(
        counts.first_documents.to_pylist(), counts.first_positions.to_pylist(), strict=True
    )
    return [item for _, item in sorted(zip(places, counts.items(), strict=True))]


def alphabet_of(words: list[bytes], model: Model, *, initial: str = "") -> list[bytes]:
    """The symbols of words and of the characters in ``initial``, in the order of their ids."""
    if isinstance(model, ByteLevel):
        return [bytes([byte]) for byte in range(256)]
    symbols = {symbol for word in words for symbol in model.symbols(word)}
    for character in initial:  # twice: at the beginning of a word, and within it
        symbols.update(model.symbols(2 * character.encode()))
    return sorted(symbols.union(model.symbols(b"")))


def learn(
    counts: PretokenCounts,
    *,
    ties: str,
    model: Model,
    pair_counts: str = "overlapping",
    vocab_size: int | None = None,
    initial: str = "",
    forbidden: tuple[bytes, ...] = (),
    **limits: Any,
) -> Learnt:
    """What ``bpe.reference`` learns from counts."""
    items = in_order(counts)
    split = [item for item in items if not counts.pretokenizer.is_never_split(item[0])]
    whole = [(model.as_token(word), count) for word, count in items if (word, count) not in split]
    whole = reference.sort_whole(whole, ties)
    words = [(model.symbols(word), count) for word, count in split]
    if ties == "huggingface":
        return reference_huggingface.train(
            words,
            vocab_size=vocab_size or 1 << 31,
            alphabet=[bytes([byte]) for byte in HUGGINGFACE_ORDER],
            forbidden=forbidden,
            whole=whole,
            **limits,
        )
    return reference.train(
        words,
        vocab_size=vocab_size,
        ties=ties,
        pair_counts=pair_counts,
        alphabet=alphabet_of([word for word, _ in split], model, initial=initial),
        forbidden=forbidden,
        whole=whole,
        prefix=model.prefix.encode() if isinstance(model, WordPiece) else None,
        **limits,
    )


def learnt(tokenizer: Tokenizer) -> Learnt:
    """The same of a tokenizer that was trained."""
    training = tokenizer.training
    assert training is not None
    pruned = training.pruned or {"first_affected_merge": None}
    specials = len(tokenizer.special_tokens)
    tokens = [token for token in tokenizer.tokens[specials:] if token is not None]
    affected = pruned["first_affected_merge"]
    return reference.Learnt(list(training.merges), tokens, affected, training.tied or ())


def words_of(letters: str, *, least: int = 1) -> st.SearchStrategy[dict[str, int]]:
    """Few letters and small counts, so that ties, overlaps and repeated strings abound."""
    word = st.lists(st.sampled_from(letters), min_size=1, max_size=16).map("".join)
    return st.dictionaries(word, st.integers(1, 6), min_size=least, max_size=10)


def pair_counts_of(ties: str) -> st.SearchStrategy[str]:
    """The ways to count pairs that go with a tie rule."""
    return st.sampled_from(PAIR_COUNTS if ties != "huggingface" else PAIR_COUNTS[:1])


LETTERS = st.sampled_from(["a", "ab", "abc", "aé", "</w>", "#a", "##ab", "aäßあ𝄞"])
WORDS = LETTERS.flatmap(words_of)


@pytest.mark.parametrize(("ties", "model"), SETTINGS)
@given(words=WORDS, merges=st.integers(0, 24), min_frequency=st.integers(1, 3), data=st.data())
def test_trainer_is_the_reference(
    ties: str,
    model: Model,
    words: dict[str, int],
    merges: int,
    min_frequency: int,
    data: st.DataObject,
) -> None:
    pair_counts = data.draw(pair_counts_of(ties))
    counts = PretokenCounts.from_items(words, track_order=True)
    alphabet = len(learn(counts, ties=ties, model=model, vocab_size=1).tokens)
    specials = 0 if isinstance(model, (ByteLevel, CharacterLevel)) else 1
    tokenizer = train(
        counts,
        vocab_size=specials + alphabet + merges,
        ties=ties,
        model=model,
        min_frequency=min_frequency,
        pair_counts=pair_counts,
    )
    assert learnt(tokenizer) == learn(
        counts,
        ties=ties,
        model=model,
        vocab_size=alphabet + merges,
        min_frequency=min_frequency,
        pair_counts=pair_counts,
        forbidden=tuple(token.encode() for token in tokenizer.special_tokens),
    )


@pytest.mark.parametrize("ties", TIES)
@given(words=words_of("abc"), great=st.data())
def test_counts_of_any_size(ties: str, words: dict[str, int], great: st.DataObject) -> None:
    """Small and great ones in one corpus, about the limits of what a slot of the trainer holds."""
    sizes = [1, (1 << 29) - 1, 1 << 29, (1 << 29) + 1, 1 << 51, (1 << 53) - 1]
    words = {word: great.draw(st.sampled_from(sizes)) for word in words} | {"ab": 1 << 60}
    pair_counts = great.draw(pair_counts_of(ties))
    counts = PretokenCounts.from_items(words, track_order=True)
    tokenizer = train(counts, max_merges=8, ties=ties, pair_counts=pair_counts)
    expected = learn(
        counts, ties=ties, model=ByteLevel(), vocab_size=256 + 8, pair_counts=pair_counts
    )
    assert learnt(tokenizer) == expected


@pytest.mark.parametrize(("ties", "model"), SETTINGS)
@given(words=words_of("ab@"), merges=st.integers(0, 12), min_frequency=st.integers(1, 3))
def test_words_that_are_never_split_compete_with_merges(
    ties: str, model: Model, words: dict[str, int], merges: int, min_frequency: int
) -> None:
    """A word that begins with an @ is whole, and so is ab."""
    cut = Pretokenizer("words", never_split=("@.*|^ab$",))
    words |= {"b": 1}  # something to split
    counts = PretokenCounts.from_items(words, pretokenizer=cut, track_order=True)
    alphabet = len(learn(counts, ties=ties, model=model, vocab_size=1).tokens)
    specials = 0 if isinstance(model, (ByteLevel, CharacterLevel)) else 1
    tokenizer = train(
        counts,
        vocab_size=specials + alphabet + merges,
        ties=ties,
        model=model,
        min_frequency=min_frequency,
    )
    assert learnt(tokenizer) == learn(
        counts,
        ties=ties,
        model=model,
        vocab_size=alphabet + merges,
        min_frequency=min_frequency,
    )


@pytest.mark.parametrize(("ties", "model"), [one for one in SETTINGS if one[0] != "huggingface"])
@given(words=WORDS, max_merges=st.integers(0, 12), initial=st.text("abc#", max_size=2))
def test_merges_alone_can_be_limited(
    ties: str, model: Model, words: dict[str, int], max_merges: int, initial: str
) -> None:
    counts = PretokenCounts.from_items(words, track_order=True)
    if isinstance(model, ByteLevel):
        initial = ""
    tokenizer = train(
        counts, max_merges=max_merges, ties=ties, model=model, initial_alphabet=initial
    )
    expected = learn(
        counts,
        ties=ties,
        model=model,
        max_merges=max_merges,
        initial=initial,
        forbidden=tuple(token.encode() for token in tokenizer.special_tokens),
    )
    assert learnt(tokenizer) == expected


@pytest.mark.parametrize(("ties", "model"), [one for one in SETTINGS if one[0] != "huggingface"])
@given(
    words=st.one_of(words_of("ab"), words_of("abc")),
    below=st.integers(2, 5),
    merges=st.integers(0, 20),
    min_frequency=st.integers(1, 3),
    pair_counts=st.sampled_from(PAIR_COUNTS),
)
def test_what_pruning_could_have_changed(
    ties: str,
    model: Model,
    words: dict[str, int],
    below: int,
    merges: int,
    min_frequency: int,
    pair_counts: str,
) -> None:
    words |= {"c": below}  # something to keep
    counts = PretokenCounts.from_items(words, track_order=True)
    tokenizer = train(
        counts,
        max_merges=merges,
        ties=ties,
        model=model,
        min_frequency=min_frequency,
        prune_below=below,
        pair_counts=pair_counts,
    )
    kept = counts.pruned(below)
    assert kept.prune is not None
    most = kept.prune.max_pair
    if isinstance(model, CharacterLevel) and model.end_of_word:
        most = max(most, kept.prune.max_end)
    expected = learn(
        kept,
        ties=ties,
        model=model,
        max_merges=merges,
        min_frequency=min_frequency,
        pair_counts=pair_counts,
        pruned=0 if isinstance(model, WordPiece) else most,
    )
    found = learnt(tokenizer)
    if isinstance(model, WordPiece):
        found = found._replace(first_affected=None)
    assert found == expected


@pytest.mark.parametrize(("ties", "model"), [one for one in SETTINGS if one[1] != WordPiece()])
@given(words=words_of("ab"), merges=st.integers(1, 24))
def test_training_ends_where_encoding_does(
    ties: str, model: Model, words: dict[str, int], merges: int
) -> None:
    """The tokens left after the last merge are the tokens that the tokenizer makes of the words."""
    counts = PretokenCounts.from_items(words, track_order=True)
    tokenizer = train(counts, vocab_size=256 + merges, ties=ties, model=model)
    assert tokenizer.training is not None
    encoded = sum(len(tokenizer.encode(word)) * count for word, count in words.items())
    assert encoded == tokenizer.training.tokens


@pytest.mark.parametrize("pair_counts", PAIR_COUNTS)
@pytest.mark.parametrize(("ties", "model"), SETTINGS)
def test_real_text(ties: str, model: Model, pair_counts: str) -> None:
    if ties == "huggingface" and pair_counts == "disjoint":
        return
    texts = [Path(argparse.__file__).read_text(encoding="utf-8")[:30_000]]
    counts = bpe.count_pretokens(texts, track_order=True)
    alphabet = len(learn(counts, ties=ties, model=model, vocab_size=1).tokens)
    specials = 0 if isinstance(model, (ByteLevel, CharacterLevel)) else 1
    tokenizer = train(
        counts,
        vocab_size=specials + alphabet + 60,
        ties=ties,
        model=model,
        pair_counts=pair_counts,
    )
    expected = learn(
        counts, ties=ties, model=model, vocab_size=alphabet + 60, pair_counts=pair_counts
    )
    assert learnt(tokenizer) == expected
