"""Training, as in the textbook: count all pairs, merge the most frequent, begin again."""

from __future__ import annotations

import itertools
from collections import Counter
from typing import TYPE_CHECKING, Any

from bpe.reference.merge import Pair, Symbols, apply_merges
from bpe.training import TrainedMerge

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping, Sequence

Words = list[tuple[Symbols, int]]
"""Each distinct word as its symbols, with its count."""


def train(
    words: Words,
    *,
    vocab_size: int,
    ties: str,
    alphabet: Sequence[bytes],
    min_frequency: int = 1,
    forbidden: Collection[bytes] = (),
) -> list[TrainedMerge]:
    """Learn merges from words and their counts until the vocabulary has ``vocab_size`` strings.

    Args:
        words: their order matters only to ``first-seen``.
        vocab_size: strings in the vocabulary, the alphabet included, special tokens not.
        ties: which of the most frequent pairs is merged (``huggingface`` has a module of its own).
        alphabet: the single symbols, in the order of their ids.
        min_frequency: a pair that occurs fewer times is never merged.
        forbidden: strings that no merge may make.
    """
    ids = {symbol: i for i, symbol in enumerate(alphabet)}
    ranks: dict[Pair, int] = {}
    merges: list[TrainedMerge] = []
    while len(ids) < vocab_size:
        counts = count_pairs(words)
        candidates = [pair for pair in counts if pair[0] + pair[1] not in forbidden]
        most = max((counts[pair] for pair in candidates), default=0)
        if most < max(min_frequency, 1):
            break
        left, right = choose([pair for pair in candidates if counts[pair] == most], ties, ids)
        ids.setdefault(left + right, len(ids))
        ranks[left, right] = len(ranks)
        # A merge that makes a string that was there before may bring an older pair back:
        # applying all ranks, not the new pair alone, keeps training what encoding will do.
        words = [(apply_merges(symbols, ranks), count) for symbols, count in words]
        merges.append(TrainedMerge(left, right, most, tokens(words)))
    return merges


def split(word: bytes) -> Symbols:
    """A word as single bytes, the symbols of a byte-level tokenizer."""
    return tuple(bytes([byte]) for byte in word)


def count_pairs(words: Words) -> Counter[Pair]:
    """Count adjacent symbols at every position: ``aaaa`` holds (a, a) three times."""
    counts: Counter[Pair] = Counter()
    for symbols, count in words:
        for pair in itertools.pairwise(symbols):
            counts[pair] += count
    return counts


def tokens(words: Words) -> int:
    """The length of the corpus in tokens."""
    return sum(len(symbols) * count for symbols, count in words)


def choose(tied: list[Pair], ties: str, ids: Mapping[bytes, int]) -> Pair:
    """One of equally frequent pairs, which are listed in the order in which they occur first."""
    rules: dict[str, Callable[[], Any]] = {
        "bytes-min": lambda: min(tied),
        "bytes-max": lambda: max(tied),
        "id-min": lambda: min(tied, key=lambda pair: (ids[pair[0]], ids[pair[1]])),
        "first-seen": lambda: tied[0],
    }
    pair: Pair = rules[ties]()
    return pair
