"""Which tokens texts can become."""

from __future__ import annotations

from array import array
from itertools import accumulate, chain, pairwise
from typing import TYPE_CHECKING

from bpe.models import CharacterLevel

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from bpe._native import Encoder
    from bpe.models import Model


def unreachable_tokens(
    tokens: Mapping[int, bytes],
    *,
    model: Model,
    is_whole: Callable[[bytes], bool],
    make_encoder: Callable[[Model], Encoder],
) -> list[int]:
    """The ids of the tokens that their own symbols do not merge to.

    Args:
        tokens: those to look at, by id.
        model: theirs.
        is_whole: whether a pre-token is never split: its token stands for it.
        make_encoder: the encoder of a model of the same tokens.
    """
    end = model.end_of_word.encode() if isinstance(model, CharacterLevel) else b""
    tokens = {
        id_: token
        for id_, token in tokens.items()
        if not (token.endswith(end) and is_whole(token.removesuffix(end)))
    }
    if not isinstance(model, CharacterLevel) or not end:
        return _unreachable(tokens, tokens, make_encoder(model))
    # Where the end of a word is a symbol, a token that ends in it is a word by itself. Others stand
    # in the midst of words: they are merged as words without an end.
    ended = {id_: token for id_, token in tokens.items() if token.endswith(end) and token != end}
    open_ = {id_: token for id_, token in tokens.items() if not token.endswith(end)}
    words = {id_: token.removesuffix(end) for id_, token in ended.items()}
    without_end = CharacterLevel(end_of_word="", unknown=model.unknown)
    return sorted(
        _unreachable(words, ended, make_encoder(model))
        + _unreachable(open_, open_, make_encoder(without_end))
    )


def _unreachable(
    words: Mapping[int, bytes], tokens: Mapping[int, bytes], encoder: Encoder
) -> list[int]:
    """The ids that the word of the same id does not encode to."""
    ends = accumulate(map(len, words.values()), initial=0)
    pieces = array("q", chain.from_iterable((begin, end, -1) for begin, end in pairwise(ends)))
    found, rows, *_ = encoder.encode_pieces(
        b"".join(words.values()), pieces, array("q", range(1, len(words) + 1))
    )
    ids, offsets = memoryview(found).cast("I"), memoryview(rows).cast("q")
    return [
        id_
        for id_, (begin, end) in zip(tokens, pairwise(offsets), strict=True)
        if end - begin != 1 or ids[begin] != id_
    ]
