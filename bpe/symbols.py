"""From counts to what the core trains on: words, their symbols, and what is never split."""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from bpe._arrow import text_column, values_of
from bpe._native import TextColumn, Trainer, malformed_rows
from bpe.byte_alphabet import HUGGINGFACE_ORDER
from bpe.counts import PretokenCounts
from bpe.errors import TrainingError
from bpe.models import ByteLevel, CharacterLevel, Model, WordPiece
from bpe.ties import needs_order, sort_never_split

_CHUNK_BYTES = 1 << 28  # of words that are turned into ids at a time
_CHARACTER_BYTES = 1 << 24  # of words that are turned into characters at a time
_CODE_POINTS = 0x110000

_Array: TypeAlias = npt.NDArray[Any]


@dataclass(frozen=True)
class TrainingWords:
    """Words to train on.

    Attributes:
        pretokens: the words; in the order of the corpus if the tie rule needs it.
        counts: how often each occurs.
        never_split: the tokens of the pre-tokens that are never split, with their counts: the
            most frequent first, then by the tie rule.
    """

    pretokens: pa.LargeBinaryArray
    counts: pa.Int64Array
    never_split: list[tuple[bytes, int]]

    @classmethod
    def of(cls, counts: PretokenCounts, *, model: Model, ties: str) -> TrainingWords:
        """Return the words of counts.

        Raises:
            TrainingError: the tie rule needs an order that the counts do not track, or the model
                is of characters and a pre-token that is never split is not UTF-8.
        """
        pretokens, numbers = counts.pretokens, counts.counts
        if needs_order(ties):
            if counts.order_span is None:
                raise TrainingError(
                    f"ties {ties!r} needs counts that track order: count with `track_order`"
                )
            order = counts.first_seen_rows()
            pretokens, numbers = pretokens.take(order), numbers.take(order)
        if not counts.pretokenizer.never_split:
            return cls(pretokens, numbers, [])
        mask = pa.array(map(counts.pretokenizer.is_never_split, pretokens.to_pylist()), pa.bool_())
        is_split = pc.invert(mask)
        never_split = [
            (_never_split_token(model, pretoken), count)
            for pretoken, count in zip(
                pretokens.filter(mask).to_pylist(), numbers.filter(mask).to_pylist(), strict=True
            )
        ]
        sort_never_split(never_split, ties=ties)
        return cls(pretokens.filter(is_split), numbers.filter(is_split), never_split)

    @property
    def occurrences(self) -> int:
        """Return the sum of the counts."""
        return int(pc.sum(self.counts).as_py() or 0)

    @property
    def size(self) -> int:
        """Bytes of all occurrences."""
        counts = np.frombuffer(self.weights, np.int64)
        return sum(
            _product(np.diff(self.offsets[begin : end + 1]), counts[begin:end])
            for begin, end in self.chunks()
        )

    @property
    def offsets(self) -> _Array:
        """Return the offsets of words in the data of the column, and the end of the last; int64."""
        ends = self.pretokens.buffers()[1] or bytes(8)
        return np.frombuffer(ends, np.int64)[self.pretokens.offset :][: len(self.pretokens) + 1]

    @cached_property
    def column(self) -> TextColumn:
        """Return the words as the core takes them."""
        return text_column(self.pretokens)

    def chunks(self, size: int = _CHUNK_BYTES) -> Iterator[tuple[int, int]]:
        """Ranges of words, begin and end, of few bytes each, so that little is copied at a time."""
        offsets = self.offsets
        begin = 0
        while begin < len(self.pretokens):
            end = bisect_right(offsets, offsets[begin] + size, begin + 2) - 1
            yield begin, end
            begin = end

    @cached_property
    def weights(self) -> memoryview:
        """Return the counts as the core takes them."""
        return values_of(self.counts)


def _never_split_token(model: Model, pretoken: bytes) -> bytes:
    if not isinstance(model, ByteLevel):
        try:
            pretoken.decode()
        except UnicodeDecodeError:
            raise _not_utf8(model, pretoken) from None
    return model.as_token(pretoken)


def _not_utf8(model: Model, pretoken: bytes) -> TrainingError:
    return TrainingError(
        f"the pre-token {pretoken!r:.80} is not UTF-8, and the symbols of {type(model).__name__} "
        "are characters: clean the corpus, or train a byte-level model"
    )


@dataclass(frozen=True)
class Alphabet:
    """The symbols that words consist of before anything is merged.

    Attributes:
        symbols: their strings, in the order of their ids.
        add: gives words to a trainer with these symbols.
    """

    symbols: list[bytes]
    add: Callable[[Trainer, TrainingWords], None]


def make_alphabet(
    words: TrainingWords,
    *,
    model: Model,
    ties: str,
    initial: Iterable[str],
    coverage: Fraction = Fraction(1),
) -> Alphabet:
    """Return the alphabet of words.

    Args:
        words: that are trained on.
        model: what their symbols are.
        ties: ``huggingface`` orders bytes in its own way.
        initial: characters that are in the alphabet even if no word has them.
        coverage: the share of characters that the alphabet covers: the most frequent ones.

    Raises:
        TrainingError: a word is not UTF-8 and the model is of characters, or ``initial`` holds
            something other than characters.
    """
    added = _code_points(initial)
    if isinstance(model, ByteLevel):
        if added:
            raise TrainingError(
                "initial_alphabet is for models of characters: byte-level models have all 256 bytes"
            )
        return _bytes(HUGGINGFACE_ORDER if ties == "huggingface" else range(256))
    first, later = _characters(words, model, weighed=coverage != 1)
    if isinstance(model, CharacterLevel):
        occurring = {*first, *later} if coverage == 1 else _covered(first + later, coverage)
        characters = {*occurring, *added}
        return _of_characters(characters, characters, model)
    return _of_characters({*first, *added}, {*later, *added}, model)


def _code_points(initial: Iterable[str]) -> list[int]:
    points = []
    for character in initial:
        if not isinstance(character, str) or len(character) != 1:
            raise TrainingError(f"initial_alphabet holds {character!r:.60}, not one character")
        if "\ud800" <= character <= "\udfff":
            raise TrainingError(f"initial_alphabet holds {character!r}, a lone surrogate")
        points.append(ord(character))
    return points


@dataclass(frozen=True)
class _Characters:
    """The characters of some words one after the other.

    Attributes:
        points: their code points, uint32.
        starts: where each word begins among them, and where the last one ends, int64.
        counts: of the words, int64.
    """

    points: _Array
    starts: _Array
    counts: _Array

    @classmethod
    def chunks(cls, words: TrainingWords, model: Model) -> Iterator[_Characters]:
        """Yield all words, few at a time.

        Raises:
            TrainingError: a word is not UTF-8.
        """
        malformed = memoryview(malformed_rows(words.column)).cast("q")
        if len(malformed):
            raise _not_utf8(model, words.pretokens[malformed[0]].as_py())
        data, offsets = words.pretokens.buffers()[2], words.offsets
        counts = np.frombuffer(words.weights, np.int64)
        for begin, end in words.chunks(_CHARACTER_BYTES):
            first, last = int(offsets[begin]), int(offsets[end])
            text = data.slice(first, last - first).to_pybytes() if data else b""
            # How many characters begin before each byte.
            lead = np.frombuffer(text, np.uint8) & 0xC0 != 0x80
            before = np.zeros(len(text) + 1, np.uint32)
            np.cumsum(lead, out=before[1:])
            points = np.frombuffer(text.decode().encode("utf-32-le"), np.uint32)
            starts = before[offsets[begin : end + 1] - first].astype(np.int64)
            yield cls(points, starts, counts[begin:end])

    @property
    def indices(self) -> _Array:
        """Of each character in a table of those that begin words, then of the others."""
        indices: _Array = self.points + np.uint32(_CODE_POINTS)
        indices[self.starts[:-1]] -= _CODE_POINTS  # no word is empty
        return indices

    @property
    def weights(self) -> _Array:
        """Return the count of the word of each character."""
        return np.repeat(self.counts, np.diff(self.starts))

    def parts(self, symbols: _Array, end: int | None, model: Model) -> tuple[_Array, ...]:
        """Return the words between characters without a symbol, with which nothing merges.

        Args:
            symbols: of each character, -1 for none; int32.
            end: the symbol after each word, if there is one.
            model: characters without a symbol become a token for each byte, or an unknown one,
                which they may share with their neighbours.

        Returns:
            The symbols of the parts (uint32), where each begins (int64) and how often it occurs;
            and how many tokens the other characters of a word become, at each of them.
        """
        starts, points = self.starts, self.points
        if end is not None:
            symbols = np.insert(symbols, starts[1:], end)
            starts = starts + np.arange(len(starts))
        if symbols.min(initial=0) >= 0:
            none = np.zeros(0, np.int64)
            return symbols.view(np.uint32), starts, self.counts, none, none
        if end is not None:
            points = np.insert(points, self.starts[1:], 0)
        weights = np.repeat(self.counts, np.diff(starts))
        first = np.zeros(len(symbols), np.bool_)
        first[starts[:-1]] = True
        covered = symbols >= 0
        begins = first | (covered != np.concatenate([[False], covered[:-1]]))
        sums = np.concatenate([[0], np.cumsum(covered, dtype=np.int64)])
        begin = np.flatnonzero(covered & begins)
        lone = ~covered
        tokens = np.ones(len(points), np.int64)
        if model.byte_fallback:
            tokens += (points >= 0x80).astype(np.int64) + (points >= 0x800) + (points >= 0x10000)
        elif model.fuse_unknown:
            lone &= begins
        return (
            symbols[covered].view(np.uint32),
            np.append(sums[begin], sums[-1]),
            weights[begin],
            tokens[lone],
            weights[lone],
        )


def _characters(
    words: TrainingWords, model: Model, *, weighed: bool
) -> tuple[Counter[int], Counter[int]]:
    """Return how often each code point begins a word, and how often one continues it.

    Only whether they do, where they need not be ``weighed``: that is much faster.

    Raises:
        OverflowError: there are more than 2^62 characters.
        TrainingError: a word is not UTF-8.
    """
    counted = np.zeros(2 * _CODE_POINTS, np.int64)
    total = 0
    for characters in _Characters.chunks(words, model):
        total += _product(np.diff(characters.starts), characters.counts)
        if total > 1 << 62:
            raise OverflowError(
                "the corpus has more than 2^62 symbols: divide the counts by a common factor"
            )
        if weighed:
            np.add.at(counted, characters.indices, characters.weights)
        else:
            counted[characters.indices] = 1

    def occurring(column: _Array) -> Counter[int]:
        points = np.flatnonzero(column)
        return Counter(dict(zip(points.tolist(), column[points].tolist(), strict=True)))

    return occurring(counted[:_CODE_POINTS]), occurring(counted[_CODE_POINTS:])


def _product(sizes: _Array, counts: _Array) -> int:
    """Return the exact sum of sizes, which are of one chunk, times counts."""
    high, low = np.divmod(counts, 1 << 31)
    return (int(np.dot(sizes, high)) << 31) + int(np.dot(sizes, low))


def _covered(counts: Counter[int], coverage: Fraction) -> list[int]:
    """Return the fewest characters that make up this share; of equals the smallest."""
    wanted = coverage * counts.total()
    chosen, covered = [], 0
    for point, count in sorted(counts.items(), key=lambda one: (-one[1], one[0])):
        if covered >= wanted:
            break
        chosen.append(point)
        covered += count
    return chosen


def _bytes(order: Sequence[int]) -> Alphabet:
    symbol_of_byte = bytes(map(order.index, range(256)))

    def add(trainer: Trainer, words: TrainingWords) -> None:
        trainer.add_words(words.column, counts=words.weights, symbol_of_byte=symbol_of_byte)

    return Alphabet([bytes([byte]) for byte in order], add)


def _of_characters(
    first: Iterable[int], later: Iterable[int], model: CharacterLevel | WordPiece
) -> Alphabet:
    """Return the alphabet of characters.

    Args:
        first: the code points that a word begins with.
        later: those that follow.
        model: it has a prefix for those that follow, or an end of the word.
    """
    prefix = model.prefix
    strings = {*map(chr, first), *(prefix + chr(point) for point in later)}
    if model.end_of_word:
        strings.add(model.end_of_word)
    symbols = {string: symbol for symbol, string in enumerate(sorted(strings))}
    symbol_of = np.full(2 * _CODE_POINTS, -1, np.int32)
    for begin, before, points in ((0, "", first), (_CODE_POINTS, prefix, later)):
        for point in points:
            symbol_of[begin + point] = symbols[before + chr(point)]
    every = np.arange(len(symbols), dtype="u4")

    def add(trainer: Trainer, words: TrainingWords) -> None:
        apart = 0
        for characters in _Characters.chunks(words, model):
            ids, offsets, counts, *lone = characters.parts(
                symbol_of[characters.indices], symbols.get(model.end_of_word), model
            )
            trainer.add_token_words(
                ids=ids.data, offsets=offsets.data, counts=counts.data, symbol_of_id=every.data
            )
            apart += _product(*lone)
        trainer.add_apart(min(apart, 1 << 63))

    return Alphabet([string.encode() for string in symbols], add)
