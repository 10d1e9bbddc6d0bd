"""The trainer gives the merges of the textbook algorithm, whatever the ties."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

import bpe
from bpe import PretokenCounts, train
from bpe.formats.byte_alphabet import HUGGINGFACE_ORDER
from bpe.reference import huggingface as reference_huggingface
from bpe.reference import train as reference
from bpe.reference.train import Words, split

if TYPE_CHECKING:
    from bpe.training import TrainedMerge

TIES = ("bytes-min", "bytes-max", "id-min", "first-seen", "huggingface")
BYTES = [bytes([byte]) for byte in range(256)]


def reference_merges(
    words: Words, *, vocab_size: int, ties: str, min_frequency: int = 1
) -> list[TrainedMerge]:
    """The merges of ``bpe.reference`` for a byte-level vocabulary."""
    if ties == "huggingface":
        steps = reference_huggingface.train(
            words,
            vocab_size=vocab_size,
            alphabet=[bytes([byte]) for byte in HUGGINGFACE_ORDER],
            min_frequency=min_frequency,
        )
    else:
        steps = reference.train(
            words, vocab_size=vocab_size, ties=ties, alphabet=BYTES, min_frequency=min_frequency
        )
    return steps


def trained(
    words: dict[bytes, int], *, vocab_size: int, ties: str, min_frequency: int = 1
) -> list[TrainedMerge]:
    """The merges of ``bpe.train`` on words in their order."""
    counts = PretokenCounts.from_items(words.items(), track_order=True)
    tokenizer = train(counts, vocab_size=vocab_size, ties=ties, min_frequency=min_frequency)
    assert tokenizer.training is not None
    return list(tokenizer.training.merges)


def words_of(alphabet: bytes) -> st.SearchStrategy[dict[bytes, int]]:
    """Few letters and small counts, so that ties, overlaps and repeated strings abound."""
    word = st.lists(st.sampled_from(alphabet), min_size=1, max_size=24).map(bytes)
    return st.dictionaries(word, st.integers(1, 6), min_size=1, max_size=10)


@pytest.mark.parametrize("ties", TIES)
@given(
    words=st.one_of(words_of(b"a"), words_of(b"ab"), words_of(b"abc"), words_of(bytes(range(256)))),
    merges=st.integers(0, 24),
    min_frequency=st.integers(1, 3),
)
def test_trainer_is_the_reference(
    ties: str, words: dict[bytes, int], merges: int, min_frequency: int
) -> None:
    size = 256 + merges
    by_symbols = [(split(word), count) for word, count in words.items()]
    expected = reference_merges(by_symbols, vocab_size=size, ties=ties, min_frequency=min_frequency)
    assert trained(words, vocab_size=size, ties=ties, min_frequency=min_frequency) == expected


@pytest.mark.parametrize("ties", TIES)
@given(words=words_of(b"ab"), merges=st.integers(1, 24))
def test_training_ends_where_encoding_does(ties: str, words: dict[bytes, int], merges: int) -> None:
    """The tokens left after the last merge are the tokens that the tokenizer makes of the words."""
    counts = PretokenCounts.from_items(words.items(), track_order=True)
    tokenizer = train(counts, vocab_size=256 + merges, ties=ties)
    assert tokenizer.training is not None
    encoded = sum(len(tokenizer.encode(word)) * count for word, count in words.items())
    assert encoded == tokenizer.training.tokens


@pytest.mark.parametrize("ties", TIES)
def test_real_text(ties: str) -> None:
    texts = [Path(argparse.__file__).read_text(encoding="utf-8")[:30_000]]
    counts = bpe.count_pretokens(texts, track_order=True)
    assert counts.first_positions is not None
    ordered = sorted(
        zip(
            counts.first_positions.to_pylist(),
            counts.pretokens.to_pylist(),
            counts.counts.to_pylist(),
            strict=True,
        )
    )
    words = [(split(word), count) for _, word, count in ordered]
    expected = reference_merges(words, vocab_size=256 + 60, ties=ties)
    tokenizer = train(counts, vocab_size=256 + 60, ties=ties)
    assert tokenizer.training is not None
    assert list(tokenizer.training.merges) == expected
