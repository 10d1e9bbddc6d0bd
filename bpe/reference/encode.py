"""Encoding, as in the textbook: cut, merge, look up."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bpe.models import ByteLevel, WordPiece
from bpe.reference import word_piece
from bpe.reference.dropout import SplitMix64, merge_with_dropout
from bpe.reference.merge import Pair, apply_merges

if TYPE_CHECKING:
    from collections.abc import Container, Iterable, Mapping

    from bpe.models import Model

_BYTES = ByteLevel()


def encode(
    pretokens: Iterable[bytes],
    *,
    ids: Mapping[bytes, int],
    ranks: Mapping[Pair, int],
    model: Model = _BYTES,
    ignore_merges: bool = False,
    whole: Container[bytes] = (),
    dropout: float = 0.0,
    seed: int = 0,
) -> list[int]:
    """The ids of a text that is cut into pre-tokens.

    Args:
        pretokens: the pieces of the text; no merge crosses their borders.
        ids: the id of each token that text can make, and of the unknown token.
        ranks: the rank of each merge; the smallest is applied first.
        model: what a pre-token consists of.
        ignore_merges: whether a pre-token that is a token is that token, whatever the merges.
        whole: pre-tokens in which nothing merges.
        dropout: how often a merge is dropped.
        seed: of the random numbers.

    Raises:
        KeyError: a character has no token, and the model no unknown token.

    >>> ids = {b"a": 0, b"b": 1, b"ab": 2}
    >>> encode([b"abb", b"ba"], ids=ids, ranks={(b"a", b"b"): 0})
    [2, 1, 1, 0]
    """
    random = SplitMix64(SplitMix64(seed).next())
    encoded = []
    for pretoken in pretokens:
        look_up = pretoken in whole or (ignore_merges and dropout == 0)
        if look_up and model.whole(pretoken) in ids:
            encoded.append(ids[model.whole(pretoken)])
        elif pretoken in whole and not isinstance(model, ByteLevel):
            encoded.append(ids[_known(pretoken, ids, model)])
        elif isinstance(model, WordPiece):
            encoded += word_piece.encode(pretoken, ids=ids, model=model)
        else:
            symbols = tuple(_known(symbol, ids, model) for symbol in model.symbols(pretoken))
            if dropout > 0:
                symbols = merge_with_dropout(symbols, ranks, dropout=dropout, random=random)
            else:
                symbols = apply_merges(symbols, ranks)
            encoded += [ids[symbol] for symbol in symbols]
    return encoded


def _known(symbol: bytes, ids: Mapping[bytes, int], model: Model) -> bytes:
    """A symbol that has a token, else the unknown token if the model names one."""
    if symbol in ids or isinstance(model, ByteLevel) or model.unknown is None:
        return symbol
    return model.unknown.encode()
