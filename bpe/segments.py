"""Texts as the core takes them, for the encoder and the counters of pre-tokens and of runs.

A text is cut at tokens, the text between is normalized, and this is cut into pre-tokens: at
matches that are never split, and then by the pre-tokenizer. The core does as much of it as it can.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from bpe._arrow import binary_rows, int64_array, text_column
from bpe._native import Buffer, Encoder, SpecialMatcher, TextColumn
from bpe.errors import EncodingError, PatternTimeoutError, UnknownCharacterError
from bpe.normalizer import before_marks, normalize_column
from bpe.pretokenizer import Pretokenizer
from bpe.special_tokens import TokenFlags, normalized_tokens, special_matcher

TEXT, NEVER_SPLIT = -1, -2  # as the core knows them

_MATCHERS = 4  # sets of tokens that calls allow, whose matchers are kept

_Numbers: TypeAlias = npt.NDArray[np.int64]


class Segments(NamedTuple):
    """Texts in segments, in order.

    Attributes:
        data: the bytes of each segment, large_binary.
        what: of each, the id of a token, `TEXT` or `NEVER_SPLIT`.
        rows: the number of the text that each is of, ascending.
    """

    data: pa.LargeBinaryArray
    what: _Numbers
    rows: _Numbers

    @classmethod
    def of(cls, texts: pa.Array) -> Segments:
        """Return each text as one segment."""
        texts = texts.cast(pa.large_binary())
        return cls(texts, np.full(len(texts), TEXT, np.int64), np.arange(len(texts)))

    def cut_at(self, matcher: SpecialMatcher, ids: Collection[int]) -> Segments:
        """Return the segments with their text cut at the tokens of a matcher, which have ids."""
        parts, what, places = matcher.split(text_column(self.data), self.what.data, list(ids))
        rows = self.rows[int64_array(places).to_numpy()]
        return Segments(binary_rows(*parts), int64_array(what).to_numpy(), rows)

    def normalized(self, steps: Sequence[str]) -> Segments:
        """Return the segments with their text normalized as one column."""
        if not steps:
            return self
        is_text = self.what == TEXT
        is_first = np.diff(self.rows, prepend=-1) > 0
        data = self.data.filter(pa.array(is_text))
        data = normalize_column(data, steps, first=pa.array(is_first[is_text]))
        if not is_text.all():
            data = pc.replace_with_mask(self.data, pa.array(is_text), data)
        return self._replace(data=data)

    def pretokens(self, pretokenizer: Pretokenizer) -> Segments:
        """Return the segments with their text cut into pre-tokens; an error names the row."""
        is_never_split = functools.cache(pretokenizer.is_never_split)
        data: list[bytes] = []
        what: list[int] = []
        rows: list[int] = []
        numbers = zip(self.what.tolist(), self.rows.tolist(), strict=True)
        for text, (kind, row) in zip(self.data.to_pylist(), numbers, strict=True):
            pieces = [text]
            if kind == TEXT:
                try:
                    pieces = [text[begin:end] for begin, end in pretokenizer.spans(text)]
                except PatternTimeoutError as error:
                    raise PatternTimeoutError(str(error), reasons={row: str(error)}) from None
            for piece in pieces:
                data.append(piece)
                what.append(NEVER_SPLIT if kind == TEXT and is_never_split(piece) else kind)
                rows.append(row)
        return Segments(
            pa.array(data, pa.large_binary()), np.array(what, np.int64), np.array(rows, np.int64)
        )

    def columns(self, rows: int) -> tuple[TextColumn, memoryview, memoryview]:
        """Return the segments of so many texts as the core's ``encode_segments`` takes them."""
        row_ends = np.searchsorted(self.rows, np.arange(rows), side="right")
        return text_column(self.data), self.what.data, row_ends.data


class TextCutter:
    """Cuts texts.

    Args:
        pretokenizer: how text is normalized and cut.
        flags: how tokens are found, by name.

    Attributes:
        is_native: whether the core cuts normalized text.
        takes_text: whether the core takes text as it is, and cuts it at tokens, too.
    """

    def __init__(self, pretokenizer: Pretokenizer, *, flags: Mapping[str, TokenFlags]) -> None:
        self._pretokenizer = pretokenizer
        self._steps = pretokenizer.normalizer
        self.is_native = pretokenizer.is_native
        self.takes_text = self.is_native and not self._steps
        found = normalized_tokens(flags, before_marks(self._steps))
        self._normalized = {token.encode(): text.encode() for token, text in found.items()}
        self._normalized_flags = {text: flags[token] for token, text in found.items()}
        self._matcher = functools.lru_cache(_MATCHERS)(
            functools.partial(special_matcher, flags=flags)
        )

    def encode(
        self,
        core: Encoder,
        column: TextColumn,
        texts: Callable[[], pa.LargeBinaryArray],
        cut_out: Mapping[bytes, int],
        **options: Any,
    ) -> tuple[Buffer, Buffer, tuple[int, int]]:
        """Return the ids of texts: normalized, and cut here where the core cannot do so itself.

        Args:
            core: the encoder.
            column: the rows.
            texts: returns the same rows for Python to cut.
            cut_out: the tokens to cut at, with their ids.
            **options: of the core's encoder.

        Returns:
            Ids; offsets (int64, rows + 1); the pre-tokens that were asked of the cache of words,
            and how many of these it did not know.

        Raises:
            EncodingError: a pre-token has 4 GiB, or dropout is asked of a model without merges.
            UnknownCharacterError: rows hold what has no token.
            PatternTimeoutError: a pattern backtracks too long on a text.
        """
        later = self._normalized.keys() & cut_out.keys()
        if self.takes_text and len(later) in (0, len(cut_out)):
            matcher = self._matcher(tuple(cut_out))
            encode = functools.partial(core.encode, column, matcher, list(cut_out.values()))
        else:
            columns = self.segments(texts(), cut_out).columns(len(column))
            encode = functools.partial(core.encode_segments, *columns, cut=self.is_native)
        try:
            encoded = encode(**options)
        except ValueError as error:
            raise EncodingError(str(error)) from None
        ids, offsets, unencodable, use = encoded
        if unencodable:
            reasons = {
                row: f"{_described(data)} has no token, and the tokenizer has no unknown token: "
                "remove it, train on texts that hold it, or train with an unknown token"
                for row, data in unencodable
            }
            raise UnknownCharacterError(next(iter(reasons.values())), reasons=reasons)
        return ids, offsets, use

    def segments(self, texts: pa.Array, cut_out: Mapping[bytes, int]) -> Segments:
        """Return texts as tokens and normalized text; as pre-tokens, if the core cannot cut it.

        Args:
            texts: string, large_string, binary or large_binary without nulls.
            cut_out: the tokens to cut at, with their ids.

        Raises:
            PatternTimeoutError: a pattern backtracks too long on a text.
        """
        later = {
            text: cut_out[token] for token, text in self._normalized.items() if token in cut_out
        }
        first = {token: id_ for token, id_ in cut_out.items() if token not in self._normalized}
        segments, steps = Segments.of(texts), self._steps
        if first:
            segments = segments.cut_at(self._matcher(tuple(first)), first.values())
        if later:
            before = before_marks(steps)
            matcher = special_matcher(later, self._normalized_flags)
            segments = segments.normalized(before).cut_at(matcher, later.values())
            steps = steps[len(before) :]
        segments = segments.normalized(steps)
        return segments if self.is_native else segments.pretokens(self._pretokenizer)


def _described(data: bytes) -> str:
    try:
        text = data.decode()
    except UnicodeDecodeError:
        return f"{data!r:.60}, which is not UTF-8,"
    if len(text) == 1:
        return f"the character {text!r} (U+{ord(text):04X})"
    return f"{text!r:.60}, which is never split,"
