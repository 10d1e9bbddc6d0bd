"""From counts to what the core trains on: words, their symbols, and what is never split."""

from __future__ import annotations

from array import array
from bisect import bisect_right
from collections import Counter
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from bpe._arrow import text_column
from bpe._native import character_counts
from bpe.byte_alphabet import HUGGINGFACE_ORDER
from bpe.errors import TrainingError
from bpe.models import ByteLevel, CharacterLevel, Model
from bpe.ties import needs_order, sort_never_split

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from bpe._native import Buffer, TextColumn, Trainer
    from bpe.counts import PretokenCounts

_ROWS = 1 << 16  # at a time, since decimals take 16 bytes
_CHUNK_BYTES = 1 << 28  # of words that are turned into ids at a time


@dataclass(frozen=True)
class TrainingWords:
    """What is trained on.

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
        """The words of counts.

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
        """The sum of the counts."""
        return int(pc.sum(self.counts).as_py() or 0)

    @property
    def size(self) -> int:
        """Bytes of all occurrences."""
        return sum(map(self._size, range(0, len(self.counts), _ROWS)))

    def _size(self, begin: int) -> int:
        lengths = pc.binary_length(self.pretokens.slice(begin, _ROWS)).cast(pa.uint32())
        counts = self.counts.slice(begin, _ROWS).cast(pa.decimal128(19, 0))
        sizes = pc.multiply(lengths.cast(pa.decimal128(10, 0)), counts)
        return int(pc.sum(sizes).as_py() or 0)

    @cached_property
    def column(self) -> TextColumn:
        """The words as the core takes them."""
        return text_column(self.pretokens)

    def chunks(self) -> Iterator[tuple[int, int]]:
        """Ranges of words, begin and end, of few bytes each, so that little is copied at a time."""
        offsets = memoryview(self.pretokens.buffers()[1]).cast("q")[self.pretokens.offset :]
        begin = 0
        while begin < len(self.pretokens):
            end = bisect_right(offsets, offsets[begin] + _CHUNK_BYTES, begin + 2) - 1
            yield begin, end
            begin = end

    @cached_property
    def weights(self) -> memoryview:
        """The counts as the core takes them."""
        values = memoryview(self.counts.buffers()[1])
        return values[self.counts.offset * 8 :][: len(self.counts) * 8]


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
    """The alphabet of words.

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
    first, later = _characters(words, model)
    if isinstance(model, CharacterLevel):
        occurring = {*first, *later} if coverage == 1 else _covered(first + later, coverage)
        return _characters_and_end(sorted({*occurring, *added}), model)
    return _word_pieces(sorted({*first, *added}), sorted({*later, *added}), model.prefix)


def _code_points(initial: Iterable[str]) -> list[int]:
    points = []
    for character in initial:
        if not isinstance(character, str) or len(character) != 1:
            raise TrainingError(f"initial_alphabet holds {character!r:.60}, not one character")
        if "\ud800" <= character <= "\udfff":
            raise TrainingError(f"initial_alphabet holds {character!r}, a lone surrogate")
        points.append(ord(character))
    return points


def _characters(words: TrainingWords, model: Model) -> tuple[Counter[int], Counter[int]]:
    """How often each code point begins a word, and how often one continues it."""
    points, *counts, malformed = character_counts(words.column, counts=words.weights)
    if malformed is not None:
        raise _not_utf8(model, words.pretokens[malformed].as_py())
    code_points = memoryview(points).cast("I").tolist()

    def occurring(column: Buffer) -> Counter[int]:
        numbers = zip(code_points, memoryview(column).cast("Q").tolist(), strict=True)
        return Counter({point: count for point, count in numbers if count})

    first, later = map(occurring, counts)
    return first, later


def _covered(counts: Counter[int], coverage: Fraction) -> list[int]:
    """The fewest characters that make up this share; of equally frequent ones the smallest."""
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


def _characters_and_end(characters: Sequence[int], model: CharacterLevel) -> Alphabet:
    end_of_word, uncovered = model.end_of_word, ""
    if model.byte_fallback:
        uncovered = "bytes"
    elif model.unknown is not None:
        uncovered = "fused" if model.fuse_unknown else "unknown"
    strings = sorted({*map(chr, characters), *([end_of_word] if end_of_word else [])})
    symbols = {string: symbol for symbol, string in enumerate(strings)}
    table = _table(characters, [symbols[chr(point)] for point in characters])

    def add(trainer: Trainer, words: TrainingWords) -> None:
        trainer.add_character_words(
            words.column,
            counts=words.weights,
            first=table,
            rest=table,
            end=symbols[end_of_word] if end_of_word else None,
            uncovered=uncovered,
        )

    return Alphabet([string.encode() for string in strings], add)


def _word_pieces(first: Sequence[int], later: Sequence[int], prefix: str) -> Alphabet:
    strings = sorted({*map(chr, first), *(prefix + chr(point) for point in later)})
    symbols = {string: symbol for symbol, string in enumerate(strings)}

    def add(trainer: Trainer, words: TrainingWords) -> None:
        trainer.add_character_words(
            words.column,
            counts=words.weights,
            first=_table(first, [symbols[chr(point)] for point in first]),
            rest=_table(later, [symbols[prefix + chr(point)] for point in later]),
            end=None,
        )

    return Alphabet([string.encode() for string in strings], add)


def _table(characters: Sequence[int], symbols: Sequence[int]) -> array[int]:
    """Pairs (code point, symbol), one after the other."""
    return array("I", [number for pair in zip(characters, symbols, strict=True) for number in pair])
