"""Applying merges to one word: the heart of byte-pair encoding, in ten lines."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from typing import NamedTuple

Symbols = tuple[bytes, ...]
Pair = tuple[bytes, bytes]


class MergeStep(NamedTuple):
    """A pre-token on its way from single symbols to tokens.

    Attributes:
        symbols: what it consists of now.
        merge: the two symbols that this step merged; None at the start, and if nothing was merged
            (the pre-token is a token itself, or WordPiece).
    """

    symbols: Symbols
    merge: Pair | None


def merge_steps(
    symbols: Symbols, ranks: Mapping[Pair, int], *, prefix: bytes = b""
) -> Iterator[MergeStep]:
    """Merge the adjacent pair of lowest rank, leftmost first, until no pair has a rank.

    Sennrich, Haddow and Birch, "Neural Machine Translation of Rare Words with Subword Units"
    (2016), section 3.2, with the order of the merges kept while encoding.

    Args:
        symbols: of one word.
        ranks: the rank of each merge.
        prefix: what a merge drops from the beginning of the right symbol (WordPiece).
    """
    yield MergeStep(symbols, None)
    while True:
        known = [
            (ranks[pair], i) for i, pair in enumerate(itertools.pairwise(symbols)) if pair in ranks
        ]
        if not known:
            return
        _, i = min(known)
        pair = (symbols[i], symbols[i + 1])
        symbols = (*symbols[:i], join(pair, prefix=prefix), *symbols[i + 2 :])
        yield MergeStep(symbols, pair)


def apply_merges(symbols: Symbols, ranks: Mapping[Pair, int], *, prefix: bytes = b"") -> Symbols:
    """Return the symbols after the last step.

    >>> apply_merges((b"a", b"a", b"a", b"a", b"a"), {(b"a", b"a"): 0, (b"aa", b"aa"): 1})
    (b'aaaa', b'a')
    """
    *_, last = merge_steps(symbols, ranks, prefix=prefix)
    return last.symbols


def join(pair: Pair, *, prefix: bytes = b"") -> bytes:
    """Return the string of two symbols that become one."""
    left, right = pair
    return left + right.removeprefix(prefix)
