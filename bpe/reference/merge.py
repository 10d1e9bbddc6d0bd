"""Applying merges to one word: the heart of byte-pair encoding, in ten lines."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

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
    symbols: Symbols,
    ranks: Mapping[Pair, int],
    *,
    prefix: bytes = b"",
    is_dropped: Callable[[], bool] | None = None,
) -> Iterator[MergeStep]:
    """Merge the adjacent pair of lowest rank, leftmost first, until no pair has a rank.

    Sennrich, Haddow and Birch, "Neural Machine Translation of Rare Words with Subword Units"
    (2016), section 3.2, with the order of the merges kept while encoding. Dropout: Provilkov,
    Emelianenko and Voita, "BPE-Dropout: Simple and Effective Subword Regularization" (2020),
    algorithm 1.

    Args:
        symbols: of one word.
        ranks: the rank of each merge.
        prefix: what a merge drops from the beginning of the right symbol (WordPiece).
        is_dropped: whether a pair is dropped this time; merging ends when all are. Asked of the
            pairs in order, up to the first that is not: the paper draws all, with the same
            probabilities.
    """
    yield MergeStep(symbols, None)
    while True:
        known = sorted(
            (ranks[pair], i) for i, pair in enumerate(itertools.pairwise(symbols)) if pair in ranks
        )
        i = next((i for _, i in known if is_dropped is None or not is_dropped()), None)
        if i is None:
            return
        pair = (symbols[i], symbols[i + 1])
        symbols = (*symbols[:i], join(pair, prefix=prefix), *symbols[i + 2 :])
        yield MergeStep(symbols, pair)


def apply_merges(symbols: Symbols, ranks: Mapping[Pair, int], **settings: Any) -> Symbols:
    """Return the symbols after the last step; settings as for `merge_steps`.

    >>> apply_merges((b"a", b"a", b"a", b"a", b"a"), {(b"a", b"a"): 0, (b"aa", b"aa"): 1})
    (b'aaaa', b'a')
    >>> apply_merges((b"a", b"b"), {(b"a", b"b"): 0}, is_dropped=lambda: True)
    (b'a', b'b')
    """
    *_, last = merge_steps(symbols, ranks, **settings)
    return last.symbols


def join(pair: Pair, *, prefix: bytes = b"") -> bytes:
    """Return the string of two symbols that become one."""
    left, right = pair
    return left + right.removeprefix(prefix)
