"""Encoding and decoding, as in the textbook: cut, merge, look up; and join again."""

from __future__ import annotations

from collections.abc import Callable, Collection, Container, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

from bpe.models import BYTE_TOKENS, ByteLevel, CharacterLevel, Model, WordPiece
from bpe.normalizer import MARK, PREPENDING
from bpe.reference.merge import MergeStep, Pair, Symbols, apply_merges, merge_steps


@dataclass(frozen=True, kw_only=True)
class WordEncoder:
    """An encoder of pre-tokens into tokens; no merge crosses their borders.

    Attributes:
        tokens: those that text can produce, and the unknown token.
        ranks: the rank of each merge; the smallest is applied first.
        model: what a pre-token consists of.
        ignore_merges: whether a pre-token that is a token is encoded as it, whatever the merges;
            not with dropout.
        is_never_split: whether nothing merges in a pre-token.
        is_dropped: whether a merge is dropped this time; None without dropout.
    """

    tokens: Container[bytes]
    ranks: Mapping[Pair, int]
    model: Model = field(default_factory=ByteLevel)
    ignore_merges: bool = False
    is_never_split: Callable[[bytes], bool] = lambda _: False
    is_dropped: Callable[[], bool] | None = None

    def steps(self, pretoken: bytes) -> Iterator[MergeStep]:
        """From single symbols to tokens; unknown bytes stay as they are."""
        model, token = self.model, self.model.as_token(pretoken)
        symbols, never_split = model.symbols(pretoken), self.is_never_split(pretoken)
        is_looked_up = never_split or (self.ignore_merges and self.is_dropped is None)
        if is_looked_up and token in self.tokens:
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
            yield from merge_steps(known, self.ranks, is_dropped=self.is_dropped)


def encode(
    segments: Sequence[Sequence[bytes]],
    *,
    ids: Mapping[bytes, int],
    superwords: Mapping[Pair, int] = MappingProxyType({}),
    alone: Container[bytes] = (),
    whole: Container[bytes] = (),
    dropout: float = 0.0,
    seed: int = 0,
    **settings: Any,
) -> list[list[int]]:
    """Return the ids of each segment of a text.

    Superwords: Liu et al., "SuperBPE: Space Travel for Language Models" (arXiv 2503.13423).

    Args:
        segments: pre-tokens that follow each other; those between tokens that are cut out.
        ids: of each token that text can produce, and of the unknown token.
        superwords: the ranks of the merges across pre-tokens.
        alone: the tokens that superwords alone make; no pre-token is looked up as one.
        whole: pre-tokens in which nothing merges, and which no superword takes.
        dropout: how often a merge is dropped; first those of all pre-tokens, then those of runs.
        seed: of the random numbers; their seed is the first number that it makes.
        **settings: of `WordEncoder`.

    Raises:
        KeyError: a character has no token, and the model no unknown token.

    >>> ids = {b"a": 0, b"b": 1, b"ab": 2}
    >>> encode([[b"abb", b"ba"]], ids=ids, ranks={(b"a", b"b"): 0})
    [[2, 1, 1, 0]]
    >>> encode([[b"a", b"b"]], ids=ids, ranks={}, superwords={(b"a", b"b"): 0}, alone={b"ab"})
    [[2]]
    """
    random = SplitMix64(SplitMix64(seed).next())
    is_dropped = (lambda: random.uniform() < dropout) if dropout else None
    known = {token: id_ for token, id_ in ids.items() if token not in alone}
    tokens = {id_: token for token, id_ in ids.items()}
    parts = {ids[token] for pair in superwords for token in pair}
    word = WordEncoder(
        tokens=known, is_never_split=whole.__contains__, is_dropped=is_dropped, **settings
    )
    encoded = [
        [[known[token] for token in [*word.steps(pretoken)][-1].symbols] for pretoken in segment]
        for segment in segments
    ]
    for segment, words in zip(segments, encoded, strict=True):
        never_split = [pretoken in whole and pretoken in known for pretoken in segment]
        for run in runs(words, of=parts, never_split=never_split):
            symbols = tuple(tokens[words[number][0]] for number in run)
            merged = apply_merges(symbols, superwords, is_dropped=is_dropped)
            words[run.start] = [ids[symbol] for symbol in merged]
            for number in run[1:]:
                words[number] = []
    return [[id_ for word in words for id_ in word] for words in encoded]


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
