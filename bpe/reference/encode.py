"""Encoding, as in the textbook: cut, merge, look up."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bpe.reference.merge import Pair, apply_merges

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping


def encode(
    pretokens: Iterable[bytes],
    *,
    ids: Mapping[bytes, int],
    ranks: Mapping[Pair, int],
    ignore_merges: bool = False,
) -> list[int]:
    """The ids of a text that is cut into pre-tokens.

    Args:
        pretokens: the pieces of the text; no merge crosses their borders.
        ids: the id of each token that text can make; every single byte is one.
        ranks: the rank of each merge; the smallest is applied first.
        ignore_merges: whether a pre-token that is a token is that token, whatever the merges.

    >>> ids = {b"a": 0, b"b": 1, b"ab": 2}
    >>> encode([b"abb", b"ba"], ids=ids, ranks={(b"a", b"b"): 0})
    [2, 1, 1, 0]
    """
    encoded = []
    for pretoken in pretokens:
        if ignore_merges and pretoken in ids:
            encoded.append(ids[pretoken])
        else:
            symbols = tuple(bytes([byte]) for byte in pretoken)
            encoded += [ids[symbol] for symbol in apply_merges(symbols, ranks)]
    return encoded
