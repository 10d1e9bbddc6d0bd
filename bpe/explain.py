"""How a pre-token becomes tokens, for people to look at."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

from bpe.models import ByteLevel, WordPiece

if TYPE_CHECKING:
    from collections.abc import Container, Mapping

    from bpe.tokenizer import Tokenizer


class MergeStep(NamedTuple):
    """A pre-token on its way from single symbols to tokens.

    Attributes:
        symbols: what it consists of now.
        merge: the two symbols that were merged to get here; None at the start, and where nothing
            was merged: the whole pre-token was looked up, or is put together from WordPieces.
    """

    symbols: tuple[bytes, ...]
    merge: tuple[bytes, bytes] | None


class Explainer:
    """Says how a tokenizer makes tokens of pre-tokens; see :meth:`bpe.Tokenizer.explain`."""

    def __init__(self, tokenizer: Tokenizer) -> None:
        of = tokenizer.token_bytes
        special = set(tokenizer.special_tokens.values())
        self._model = tokenizer.model
        self._is_whole = tokenizer.pretokenizer.is_whole
        self._whole_words = tokenizer.ignore_merges
        self._tokens = {
            token
            for id_, token in enumerate(tokenizer.tokens)
            if token is not None and id_ not in special
        }
        self._ranks = {
            (of(left), of(right)): rank for rank, (left, right, _) in enumerate(tokenizer.merges)
        }

    def steps(self, pretoken: bytes) -> list[MergeStep]:
        """From single symbols to tokens."""
        model = self._model
        never_split = self._is_whole(pretoken)
        symbols, whole = model.symbols(pretoken), model.whole(pretoken)
        unknown = b"" if isinstance(model, ByteLevel) else (model.unknown or "").encode()
        if (never_split or self._whole_words) and len(symbols) > 1 and whole in self._tokens:
            return [MergeStep(symbols, None), MergeStep((whole,), None)]
        if never_split and unknown:
            return [MergeStep(symbols, None), MergeStep((unknown,), None)]
        if isinstance(model, WordPiece):
            return word_piece_steps(pretoken, self._tokens, model)
        if unknown:
            symbols = tuple(symbol if symbol in self._tokens else unknown for symbol in symbols)
        return merge_steps(symbols, self._ranks)


def merge_steps(
    start: tuple[bytes, ...], ranks: Mapping[tuple[bytes, bytes], int]
) -> list[MergeStep]:
    """All steps from single symbols to tokens, the lowest rank first, leftmost first.

    Args:
        start: the symbols.
        ranks: the rank of each merge.
    """
    symbols = list(start)
    steps = [MergeStep(start, None)]
    while True:
        known = [(ranks[pair], i) for i, pair in enumerate(pairwise(symbols)) if pair in ranks]
        if not known:
            return steps
        _, i = min(known)
        merge = (symbols[i], symbols[i + 1])
        symbols[i : i + 2] = [merge[0] + merge[1]]
        steps.append(MergeStep(tuple(symbols), merge))


def word_piece_steps(word: bytes, tokens: Container[bytes], model: WordPiece) -> list[MergeStep]:
    """A word, then what is left of it after each token that is taken from its front.

    Args:
        word: a pre-token.
        tokens: those that texts can become.
        model: the prefix of what continues a word, and what an unknown word becomes.
    """
    steps = [MergeStep((word,) if word else (), None)]
    unknown = [*steps, MergeStep((model.unknown.encode(),), None)]
    prefix = model.prefix.encode()
    if len(word.decode("utf-8", "surrogateescape")) > model.max_characters:
        return unknown
    taken: tuple[bytes, ...] = ()
    rest = word
    while rest:
        start = prefix if taken else b""
        sizes = range(len(rest), 0, -1)
        size = next((size for size in sizes if start + rest[:size] in tokens), None)
        if size is None:
            return unknown
        taken, rest = (*taken, start + rest[:size]), rest[size:]
        if rest:  # else the last step shows it already
            steps.append(MergeStep((*taken, prefix + rest), None))
    return steps
