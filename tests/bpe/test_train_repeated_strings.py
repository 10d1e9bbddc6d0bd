"""Two merges that make the same string share one token.

Over single bytes this cannot happen: a string is made in one way only, because all its
occurrences are merged alike. It happens when a symbol of the alphabet is itself a string of
others, such as the end-of-word mark ``</w>`` together with the characters it is written with. The
engine handles any alphabet, so it is tested here with such ones.
"""

from __future__ import annotations

import json
from array import array
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest
import tokenizers
from hypothesis import given
from hypothesis import strategies as st

from bpe._native import TextColumn, Trainer
from bpe.pair_counts import PAIR_COUNTS
from bpe.reference import train as reference
from bpe.ties import TIES
from bpe.training_report import TrainedMerge
from tests.bpe import huggingface_trainer as reference_huggingface
from tests.examples import examples

if TYPE_CHECKING:
    from bpe.reference.train import Words

EXACT_TIES = tuple(ties for ties in TIES if ties != "huggingface")
ALPHABET = [b"a", b"b", b"ab", b"ba", b"aba"]
ROWS = [b"a", b"aa", b"b", b"ab", b"aab"]  # tokens in a row come together in many ways


class Result(NamedTuple):
    """The merges that the engine learnt."""

    steps: list[TrainedMerge]
    tokens: list[bytes]


def engine(
    words: Words, *, alphabet: list[bytes], vocab_size: int, ties: str, **settings: Any
) -> Result:
    """Train over any alphabet: a byte of a word is the number of a symbol."""
    trainer = Trainer(
        alphabet=alphabet,
        ties=ties,
        max_tokens=vocab_size,
        forbidden=[],
        **{"min_frequency": 1, **settings},
    )
    coded = [bytes(alphabet.index(symbol) for symbol in symbols) for symbols, _ in words]
    offsets = array("q", [0])
    for word in coded:
        offsets.append(offsets[-1] + len(word))
    trainer.add_words(
        TextColumn(b"".join(coded), offsets, 8, 0, len(coded)),
        counts=array("q", [count for _, count in words]),
        symbol_of_byte=bytes(byte if byte < len(alphabet) else 0 for byte in range(256)),
    )
    for _ in range(400):  # Hugging Face's trainer can go on for ever without a new token
        if not trainer.step(1):
            break
    tokens = trainer.tokens()
    steps = [
        TrainedMerge(tokens[left], tokens[right], count, tokens_left)
        for left, right, _, count, tokens_left in trainer.merges()
    ]
    return Result(steps, tokens)


def words_over(alphabet: list[bytes]) -> st.SearchStrategy[Words]:
    """A few words of a few symbols."""
    symbols = st.lists(st.sampled_from(alphabet), min_size=1, max_size=16).map(tuple)
    return st.dictionaries(symbols, st.integers(1, 6), min_size=1, max_size=8).map(
        lambda words: list(words.items())
    )


@pytest.mark.parametrize("ties", EXACT_TIES)
@pytest.mark.parametrize("pair_counts", PAIR_COUNTS)
@pytest.mark.parametrize("alphabet", [ALPHABET, ROWS])
@given(data=st.data(), merges=st.integers(0, 20), min_frequency=st.integers(1, 3))
@examples(100)
def test_engine_is_the_reference(
    ties: str,
    alphabet: list[bytes],
    pair_counts: str,
    data: st.DataObject,
    merges: int,
    min_frequency: int,
) -> None:
    words = data.draw(words_over(alphabet))
    settings: dict[str, Any] = {
        "alphabet": alphabet,
        "vocab_size": len(alphabet) + merges,
        "ties": ties,
        "min_frequency": min_frequency,
        "pair_counts": pair_counts,
    }
    expected = reference.train(words, **settings)
    result = engine(words, **settings)
    assert result.steps == expected.merges
    assert result.tokens == expected.tokens
    assert len(result.tokens) == len(set(result.tokens))


@given(words=words_over(ALPHABET), merges=st.integers(0, 20), min_frequency=st.integers(1, 3))
def test_engine_has_the_habits_of_huggingface(
    words: Words, merges: int, min_frequency: int
) -> None:
    size = len(ALPHABET) + merges
    expected = reference_huggingface.train(
        words, vocab_size=size, alphabet=ALPHABET, min_frequency=min_frequency
    )
    result = engine(
        words, alphabet=ALPHABET, vocab_size=size, ties="huggingface", min_frequency=min_frequency
    )
    assert result.steps == expected.merges


@given(
    words=st.dictionaries(
        st.lists(st.sampled_from(["a", "b", "</w>"]), min_size=1, max_size=5).map("".join),
        st.integers(1, 5),
        min_size=1,
        max_size=6,
    ),
    merges=st.integers(1, 12),
)
def test_the_reference_has_the_habits_of_the_real_trainer(
    words: dict[str, int], merges: int
) -> None:
    """With an end-of-word suffix, ``tokenizers`` itself meets strings that are there already."""
    alphabet = sorted(set("".join(words)))
    symbols = [(*word[:-1], word[-1] + "</w>") for word in words]
    known = [*alphabet, *sorted({word[-1] for word in symbols})]
    size = len(known) + merges
    tokenizer = tokenizers.Tokenizer(tokenizers.models.BPE())
    tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.WhitespaceSplit()
    tokenizer.train_from_iterator(
        [" ".join([word] * count) for word, count in words.items()],
        tokenizers.trainers.BpeTrainer(
            vocab_size=size, end_of_word_suffix="</w>", show_progress=False
        ),
    )
    model = json.loads(tokenizer.to_str())["model"]
    # Its ids of suffixed characters follow the order of its hash map: take them from its result.
    known = sorted(known, key=lambda symbol: model["vocab"][symbol])
    steps = reference_huggingface.train(
        [
            (tuple(symbol.encode() for symbol in word), count)
            for word, count in zip(symbols, words.values(), strict=True)
        ],
        vocab_size=size,
        alphabet=[symbol.encode() for symbol in known],
    ).merges
    last = {(step.left.decode(), step.right.decode()): i for i, step in enumerate(steps)}
    assert [tuple(merge) for merge in model["merges"]] == sorted(last, key=last.__getitem__)
