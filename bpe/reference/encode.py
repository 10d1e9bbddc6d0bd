"""Encoding and decoding, as in the textbook: cut, merge, look up; and join again."""

from __future__ import annotations

import itertools
from collections.abc import (
    Callable,
    Collection,
    Container,
    Iterable,
    Iterator,
    Mapping,
    Sequence,
)
from dataclasses import dataclass, field
from typing import Any

from bpe.models import BYTE_TOKENS, ByteLevel, CharacterLevel, Model, WordPiece
from bpe.normalizer import MARK, PREPENDING
from bpe.reference.merge import MergeStep, Pair, Symbols, merge_steps


@dataclass(frozen=True, kw_only=True)
class WordEncoder:
    """An encoder of pre-tokens into tokens; no merge crosses their borders.

    Attributes:
        tokens: those that text can produce, and the unknown token.
        ranks: the rank of each merge; the smallest is applied first.
        model: what a pre-token consists of.
        ignore_merges: whether a pre-token that is a token is encoded as it, whatever the merges.
        is_never_split: whether nothing merges in a pre-token.
        dropout: how often a merge is dropped.
    """

    tokens: Container[bytes]
    ranks: Mapping[Pair, int]
    model: Model = field(default_factory=ByteLevel)
    ignore_merges: bool = False
    is_never_split: Callable[[bytes], bool] = lambda _: False
    dropout: float = 0.0

    def steps(self, pretoken: bytes) -> Iterator[MergeStep]:
        """From single symbols to tokens, without dropout; unknown bytes stay as they are."""
        model, token = self.model, self.model.as_token(pretoken)
        symbols, never_split = model.symbols(pretoken), self.is_never_split(pretoken)
        if (never_split or (self.ignore_merges and not self.dropout)) and token in self.tokens:
            found: bytes | None = token
        elif never_split and not (isinstance(model, ByteLevel) or model.byte_fallback):
            found = (model.unknown or "").encode() or token
        else:
            found = None
        if found is not None:
            yield from [MergeStep(symbols, None)] if symbols != (found,) else []
            yield MergeStep((found,), None)
        elif isinstance(model, WordPiece):
            yield from word_piece_steps(pretoken, self.tokens, model)
        else:
            known = model.known(symbols, self.tokens)
            yield from merge_steps(known, {} if self.dropout else self.ranks)

    def symbols(self, pretoken: bytes, random: SplitMix64) -> Symbols:
        """Return the tokens of a pre-token; ``random`` is of the whole text."""
        *_, last = self.steps(pretoken)
        if not self.dropout or isinstance(self.model, WordPiece):
            return last.symbols
        return merge_with_dropout(last.symbols, self.ranks, dropout=self.dropout, random=random)


def encode(
    pretokens: Iterable[bytes],
    *,
    ids: Mapping[bytes, int],
    seed: int = 0,
    whole: Container[bytes] = (),
    **settings: Any,
) -> list[int]:
    """Return the ids of a text that is cut into pre-tokens.

    Args:
        pretokens: the pieces of the text.
        ids: of each token that text can produce, and of the unknown token.
        seed: of the random numbers.
        whole: pre-tokens in which nothing merges.
        **settings: of `WordEncoder`.

    Raises:
        KeyError: a character has no token, and the model no unknown token.

    >>> ids = {b"a": 0, b"b": 1, b"ab": 2}
    >>> encode([b"abb", b"ba"], ids=ids, ranks={(b"a", b"b"): 0})
    [2, 1, 1, 0]
    """
    random = row_random(seed)
    words = WordEncoder(tokens=ids, is_never_split=whole.__contains__, **settings)
    return [ids[token] for pretoken in pretokens for token in words.symbols(pretoken, random)]


def row_random(seed: int) -> SplitMix64:
    """Return the random numbers of a text; its seed is the first that the given seed makes."""
    return SplitMix64(SplitMix64(seed).next())


def word_piece_steps(word: bytes, tokens: Container[bytes], model: WordPiece) -> list[MergeStep]:
    """Return the steps by which tokens are taken from the front of a word; the last has tokens.

    Devlin et al., "BERT" (2019): ``WordpieceTokenizer.tokenize`` of its published code.

    Args:
        word: a pre-token; a byte that is not part of well-formed UTF-8 is a character that no
            token has.
        tokens: those that text can produce, and the unknown token.
        model: the prefix of what continues a word, the unknown token, the longest word.

    >>> tokens, model = {b"un", b"##aff", b"##able"}, WordPiece()
    >>> [step.symbols for step in word_piece_steps(b"unaffable", tokens, model)][1:]
    [(b'un', b'##affable'), (b'un', b'##aff', b'##able')]
    >>> [step.symbols for step in word_piece_steps(b"unaffected", tokens, model)][-1]
    (b'[UNK]',)
    """
    steps = [MergeStep((word,) if word else (), None)]
    unknown = [*steps, MergeStep((model.unknown.encode(),), None)]
    if len(word.decode("utf-8", "surrogateescape")) > model.max_characters:
        return unknown
    prefix = model.prefix.encode()
    taken: Symbols = ()
    left = word
    while left:
        start = prefix if taken else b""
        sizes = range(len(left), 0, -1)
        size = next((size for size in sizes if start + left[:size] in tokens), None)
        if size is None:
            return unknown
        taken, left = (*taken, start + left[:size]), left[size:]
        if left:  # else the last step shows it already
            steps.append(MergeStep((*taken, prefix + left), None))
    return steps


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
        """Return a number from 0 to 2^64 - 1."""
        self._state = (self._state + 0x9E3779B97F4A7C15) & _MASK
        z = self._state
        z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9 & _MASK
        z = (z ^ (z >> 27)) * 0x94D049BB133111EB & _MASK
        return z ^ (z >> 31)

    def uniform(self) -> float:
        """Return a multiple of 2^-53 that is at least 0 and less than 1."""
        return (self.next() >> 11) * 2.0**-53


def merge_with_dropout(
    symbols: Symbols, ranks: Mapping[Pair, int], *, dropout: float, random: SplitMix64
) -> Symbols:
    """Merge, of the pairs that are not dropped this time, the one of lowest rank, leftmost first.

    Provilkov, Emelianenko and Voita, "BPE-Dropout: Simple and Effective Subword Regularization"
    (2020), algorithm 1; it ends when all pairs are dropped at once. Pairs are drawn in order, up to
    the first that is not dropped: the paper draws all, with the same probabilities.

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


def runs(
    words: Sequence[Sequence[object]], *, of: Container[object], never_split: Sequence[bool]
) -> Iterator[range]:
    """Return the positions of the longest sequences of pre-tokens that are one token each.

    Args:
        words: the tokens of each pre-token, or their ids.
        of: the set.
        never_split: whether each pre-token is never split: it is in no run.

    >>> list(runs([[1], [2], [3, 1], [1]], of={1, 2}, never_split=[False] * 4))
    [range(0, 2), range(3, 4)]
    """
    begin = 0
    for number in range(len(words) + 1):
        if number < len(words):
            tokens = words[number]
            if len(tokens) == 1 and tokens[0] in of and not never_split[number]:
                continue
        if begin < number:
            yield range(begin, number)
        begin = number + 1


def decode(
    tokens: Sequence[bytes],
    *,
    model: Model,
    special: Container[bytes] = (),
    normalizer: Collection[str] = (),
) -> bytes:
    """Return the text of tokens.

    Args:
        tokens: their bytes.
        model: what marks the beginning or end of a word.
        special: tokens that hold no such mark.
        normalizer: the steps before encoding; marks of spaces are undone for a model of characters.

    >>> decode([b"low", b"er</w>", b"and</w>"], model=CharacterLevel())
    b'lower and'
    >>> decode([b"un", b"##aff", b"##able", b"men"], model=WordPiece())
    b'unaffable men'
    """
    if isinstance(model, CharacterLevel):
        bytes_of = {token: bytes([byte]) for byte, token in enumerate(BYTE_TOKENS)}
        end, text = model.end_of_word.encode(), b""
        for number, token in enumerate(tokens):
            is_end = bool(end) and token.endswith(end) and token not in special
            part = token.removesuffix(end) if is_end else token
            if model.byte_fallback:
                part = bytes_of.get(part, part)
            if "mark-spaces" in normalizer:
                part = part.replace(MARK.encode(), b" ")
            if number == 0 and not PREPENDING.isdisjoint(normalizer):
                part = part.removeprefix(b" ")
            text += part + (b" " if is_end and number + 1 < len(tokens) else b"")
        return text
    if isinstance(model, WordPiece):
        prefix = model.prefix.encode()
        first, rest = tokens[:1], tokens[1:]
        return b"".join(first) + b"".join(
            token.removeprefix(prefix) if token.startswith(prefix) else b" " + token
            for token in rest
        )
    return b"".join(tokens)
