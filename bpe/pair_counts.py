"""The number of pairs in a row of equal symbols (``native/train/pair_counts.h``)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import pairwise

from bpe.errors import TrainingError
from bpe.names import PAIR_COUNTS


def check_pair_counts(pair_counts: str, *, ties: str) -> None:
    """Refuse unknown ways to count pairs, and one that the tie rule contradicts.

    Raises:
        TrainingError: the message names the valid ones.
    """
    if pair_counts not in PAIR_COUNTS:
        raise TrainingError(
            f"unknown `pair_counts` {pair_counts!r:.60}: use one of {', '.join(PAIR_COUNTS)}"
        )
    if ties == "huggingface" and pair_counts != "overlapping":
        raise TrainingError(
            f"ties 'huggingface' counts overlapping pairs, as Hugging Face's trainer does, not "
            f"{pair_counts}: use one of the other rules, or pair counts 'overlapping'"
        )


def count_pairs(
    words: Iterable[tuple[Sequence[bytes], int]], pair_counts: str = "overlapping"
) -> Counter[tuple[bytes, bytes]]:
    """Return how often each pair of symbols occurs in words, which have counts, before any merge.

    Args:
        words: their symbols.
        pair_counts: one of `PAIR_COUNTS`.
    """
    pairs: Counter[tuple[bytes, bytes]] = Counter()
    for symbols, count in words:
        merged = False  # whether a merge takes the pair before
        for left, right in pairwise(symbols):
            is_equal = pair_counts == "disjoint" and left == right
            merged = is_equal and not merged
            if merged or not is_equal:
                pairs[left, right] += count
    return pairs
