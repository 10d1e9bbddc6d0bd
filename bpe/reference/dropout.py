"""BPE-dropout, as in the paper: every merge that could be made may be dropped, each time anew."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from bpe.reference.merge import Pair, Symbols

_MASK = 2**64 - 1


class SplitMix64:
    """Steele, Lea and Flood, "Fast Splittable Pseudorandom Number Generators" (2014).

    >>> random = SplitMix64(1234567)
    >>> [random.next() for _ in range(2)]
    [6457827717110365317, 3203168211198807973]
    """

    def __init__(self, seed: int) -> None:
        self._state = seed

    def next(self) -> int:
        """A number from 0 to 2^64 - 1."""
        self._state = (self._state + 0x9E3779B97F4A7C15) & _MASK
        z = self._state
        z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9 & _MASK
        z = (z ^ (z >> 27)) * 0x94D049BB133111EB & _MASK
        return z ^ (z >> 31)

    def uniform(self) -> float:
        """A multiple of 2^-53 from 0 to 1, 1 left out."""
        return (self.next() >> 11) * 2.0**-53


def merge_with_dropout(
    symbols: Symbols, ranks: Mapping[Pair, int], *, dropout: float, random: SplitMix64
) -> Symbols:
    """Merge, of the pairs that are not dropped this time, the one of lowest rank, leftmost first.

    Provilkov, Emelianenko and Voita, "BPE-Dropout: Simple and Effective Subword Regularization"
    (2020), algorithm 1; it ends the first time that all are dropped. The pairs are asked in their
    order, and none after the first that is kept: the paper asks all, which changes no probability.

    >>> ranks = {(b"a", b"b"): 0, (b"ab", b"c"): 1}
    >>> merge_with_dropout((b"a", b"b", b"c"), ranks, dropout=0, random=SplitMix64(0))
    (b'abc',)
    >>> merge_with_dropout((b"a", b"b", b"c"), ranks, dropout=1, random=SplitMix64(0))
    (b'a', b'b', b'c')
    """
    word = list(symbols)
    while True:
        known = sorted(
            (ranks[pair], i) for i, pair in enumerate(itertools.pairwise(word)) if pair in ranks
        )
        i = next((i for _, i in known if random.uniform() >= dropout), None)
        if i is None:
            return tuple(word)
        word[i : i + 2] = [word[i] + word[i + 1]]
