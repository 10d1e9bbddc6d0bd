"""Applying merges to one word: the heart of byte-pair encoding, in ten lines."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

Symbols = tuple[bytes, ...]
Pair = tuple[bytes, bytes]


def apply_merges(symbols: Symbols, ranks: Mapping[Pair, int], *, prefix: bytes = b"") -> Symbols:
    """Merge the adjacent pair of lowest rank, leftmost first, until no pair has a rank.

    Sennrich, Haddow and Birch, "Neural Machine Translation of Rare Words with Subword Units"
    (2016), section 3.2, with the order of the merges kept while encoding.

    Args:
        symbols: of one word.
        ranks: the rank of each merge.
        prefix: what a merge drops from the beginning of the right symbol (WordPiece).

    >>> apply_merges((b"a", b"a", b"a", b"a", b"a"), {(b"a", b"a"): 0, (b"aa", b"aa"): 1})
    (b'aaaa', b'a')
    """
    word = list(symbols)
    while True:
        known = [
            (ranks[pair], i) for i, pair in enumerate(itertools.pairwise(word)) if pair in ranks
        ]
        if not known:
            return tuple(word)
        _, i = min(known)
        word[i : i + 2] = [join((word[i], word[i + 1]), prefix=prefix)]


def join(pair: Pair, *, prefix: bytes = b"") -> bytes:
    """The string of two symbols that become one."""
    left, right = pair
    return left + right.removeprefix(prefix)
