"""From counts to what the core trains on: words, their symbols, and what is never split."""

from __future__ import annotations

from array import array
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from bpe._arrow import text_column, values_of
from bpe._native import Trainer, malformed_rows
from bpe.byte_alphabet import HUGGINGFACE_ORDER
from bpe.core_encoder import WordEncoder, word_encoder
from bpe.counts import PretokenCounts
from bpe.errors import TrainingError
from bpe.models import BYTE_TOKENS, ByteLevel, CharacterLevel, Model, WordPiece
from bpe.parts import Merges, Parts
from bpe.pretokenizer import Pretokenizer
from bpe.ties import needs_order, sort_never_split
from bpe.token_table import TokenTable

_CHUNK_BYTES = 1 << 22  # of words that are turned into ids or characters at a time
_CODE_POINTS = 0x110000
_MOST_SYMBOLS = 1 << 62  # of a corpus
_MOST_CHARACTERS = (1 << 32) - 1  # of a word

NO_SYMBOL = (1 << 32) - 1
"""For an id with which nothing merges."""

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
        return _offsets(self.pretokens)

    def chunks(self) -> Iterator[tuple[int, int]]:
        """Ranges of words, begin and end, of few bytes each, so that little is copied at a time."""
        offsets = self.offsets
        begin = 0
        while begin < len(self.pretokens):
            end = bisect_right(offsets, offsets[begin] + _CHUNK_BYTES, begin + 2) - 1
            yield begin, end
            begin = end

    @cached_property
    def weights(self) -> memoryview:
        """Return the counts as the core takes them."""
        return values_of(self.counts)


def _offsets(words: pa.LargeBinaryArray) -> _Array:
    ends = words.buffers()[1] or bytes(8)
    return np.frombuffer(ends, np.int64)[words.offset :][: len(words) + 1]


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
        ids_of: gives the ids that words consist of.
        symbol_of_id: the symbol of each id; `NO_SYMBOL` for one with which nothing merges.
    """

    symbols: list[bytes]
    ids_of: WordEncoder
    symbol_of_id: array[int]

    def add(self, trainer: Trainer, words: TrainingWords) -> None:
        """Give words to a trainer with these symbols."""
        size = int(words.offsets[-1] - words.offsets[0])
        trainer.reserve(symbols=size, words=len(words.pretokens))
        for begin, end in words.chunks():
            ids, offsets = self.ids_of(words.pretokens.slice(begin, end - begin))
            trainer.add_words(
                ids=ids,
                offsets=offsets,
                counts=words.weights[begin * 8 : end * 8],
                symbol_of_id=self.symbol_of_id,
            )


def ids_of_width(width: int) -> WordEncoder:
    """Return what takes words as ids of so many bytes each, little-endian."""

    def ids_of(words: pa.LargeBinaryArray) -> tuple[memoryview, memoryview]:
        offsets = _offsets(words)
        first, end = int(offsets[0]), int(offsets[-1])
        ids = np.frombuffer(words.buffers()[2], f"<u{width}", (end - first) // width, first)
        return ids.astype(np.uint32).data, ((offsets - first) // width).data

    return ids_of


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
    added = _checked(initial)
    if isinstance(model, ByteLevel):
        if added:
            raise TrainingError(
                "initial_alphabet is for models of characters: byte-level models have all 256 bytes"
            )
        return _bytes(HUGGINGFACE_ORDER if ties == "huggingface" else range(256))
    first, later = _characters(words, model)
    if isinstance(model, CharacterLevel):
        end = [model.end_of_word] if model.end_of_word else []
        return _of_characters({*_covered(first + later, coverage), *added, *end}, model)
    continuing = (model.prefix + character for character in {*later, *added})
    return _of_characters({*first, *added, *continuing}, model)


def _checked(initial: Iterable[str]) -> list[str]:
    characters = list(initial)
    for character in characters:
        if not isinstance(character, str) or len(character) != 1:
            raise TrainingError(f"initial_alphabet holds {character!r:.60}, not one character")
        if "\ud800" <= character <= "\udfff":
            raise TrainingError(f"initial_alphabet holds {character!r}, a lone surrogate")
    return characters


def _characters(words: TrainingWords, model: Model) -> tuple[Counter[str], Counter[str]]:
    """Return how often each character begins a word, and how often it continues one.

    Raises:
        TrainingError: a word is not UTF-8.
    """
    malformed = memoryview(malformed_rows(text_column(words.pretokens))).cast("q")
    if len(malformed):
        raise _not_utf8(model, words.pretokens[malformed[0]].as_py())
    counted = np.zeros((2, _CODE_POINTS), np.int64)
    counts, total = np.frombuffer(words.weights, np.int64), 0
    for begin, end in words.chunks():
        texts = words.pretokens.slice(begin, end - begin).cast(pa.large_string())
        sizes = pc.utf8_length(texts).to_numpy()
        total += _product(sizes, counts[begin:end])
        one = pa.ListArray.from_arrays(pa.array([0, len(texts)], pa.int32()), texts)
        joined = pc.binary_join(one, pa.scalar("", pa.large_string()))[0].as_py()
        points = np.frombuffer(joined.encode("utf-32-le"), np.uint32)
        continues = np.ones(len(points), np.int64)
        continues[np.cumsum(sizes) - sizes] = 0  # no word is empty
        np.add.at(counted, (continues, points), np.repeat(counts[begin:end], sizes))
    if total > _MOST_SYMBOLS:
        raise TrainingError(
            "cannot train on these counts: the corpus has more than 2^62 symbols: divide the "
            "counts by a common factor"
        )
    first, later = (
        Counter({chr(point): int(row[point]) for point in np.flatnonzero(row)}) for row in counted
    )
    return first, later


def _product(sizes: _Array, counts: _Array) -> int:
    """Return the exact sum of sizes, which are of one chunk, times counts."""
    high, low = np.divmod(counts, 1 << 31)
    return (int(np.dot(sizes, high)) << 31) + int(np.dot(sizes, low))


def _covered(counts: Counter[str], coverage: Fraction) -> list[str]:
    """Return the fewest characters that make up this share; of equals the smallest."""
    wanted = coverage * counts.total()
    chosen, covered = [], 0
    for character, count in sorted(counts.items(), key=lambda one: (-one[1], one[0])):
        if covered >= wanted:
            break
        chosen.append(character)
        covered += count
    return chosen


def _bytes(order: Sequence[int]) -> Alphabet:
    symbols = [bytes([byte]) for byte in order]
    return Alphabet(symbols, ids_of_width(1), array("I", map(order.index, range(256))))


def _of_characters(strings: Iterable[str], model: CharacterLevel | WordPiece) -> Alphabet:
    """Return the alphabet of these strings, with which the core's encoder cuts words."""
    ordered = sorted(strings)
    spelled = ordered
    others = [*BYTE_TOKENS] if model.byte_fallback else []
    if isinstance(model, WordPiece):
        # The prefix, and the unknown token, of a character that no word holds: else a word could
        # begin with what spells a symbol that continues one, or with the unknown token.
        held = {string[-1] for string in ordered}
        absent = next(chr(point) for point in range(0xE000, _CODE_POINTS) if chr(point) not in held)
        prefix = absent if model.prefix else ""
        spelled = [prefix + string[-1] if len(string) > 1 else string for string in ordered]
        model = WordPiece(prefix=prefix, unknown=absent, max_characters=_MOST_CHARACTERS)
    others += [model.unknown.encode()] if model.unknown is not None else []
    symbols = [string.encode() for string in spelled]
    parts = Parts(
        tokens=TokenTable.of([*dict.fromkeys([*symbols, *others])]),
        merges=Merges(),
        pretokenizer=Pretokenizer("none"),
        model=model,
    )
    symbol_of_id = array("I", [*range(len(symbols)), *([NO_SYMBOL] * len(others))])
    return Alphabet([string.encode() for string in ordered], word_encoder(parts), symbol_of_id)
