"""Texts as the core takes them, for the encoder and the counter of runs.

A text is cut at tokens, the text between is normalized, and this is cut into pre-tokens: at
matches that are never split, and then by the pre-tokenizer. The core does as much of it as it can.
`bpe.counting` drops the tokens, and so cuts whole columns, which is faster.
"""

from __future__ import annotations

import functools
from array import array
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import pyarrow as pa

from bpe._arrow import text_column
from bpe._native import Buffer, Encoder, TextColumn
from bpe.errors import EncodingError, PatternTimeoutError, UnknownCharacterError
from bpe.normalizer import before_marks, normalize_column
from bpe.pretokenizer import Pretokenizer
from bpe.special_tokens import SpecialCutter, TokenFlags, found_in_normalized

TEXT, NEVER_SPLIT = -1, -2  # as the core knows them

_MATCHERS = 4  # sets of tokens that calls allow, whose matchers are kept

Part = tuple[bytes, int]
"""Bytes, and what they are: the id of a token, `TEXT` or `NEVER_SPLIT`."""


class Pieces(NamedTuple):
    """Texts as the core's ``encode_pieces`` takes them.

    Attributes:
        data: all texts in one, normalized.
        pieces: int64 triples (begin, end, what) of bytes in it, where what is the id of a token,
            -1 for text, or -2 for a pre-token that is never split.
        row_ends: for each row the number of pieces up to and including it.
    """

    data: bytes
    pieces: array[int]
    row_ends: array[int]

    @classmethod
    def of(cls, rows: Sequence[Sequence[Part]]) -> Pieces:
        """Return the pieces of rows of parts."""
        pieces, row_ends, end = array("q"), array("q"), 0
        for row in rows:
            for text, what in row:
                pieces.extend((end, end + len(text), what))
                end += len(text)
            row_ends.append(len(pieces) // 3)
        return cls(b"".join(text for row in rows for text, _ in row), pieces, row_ends)


class TextCutter:
    """Cuts texts.

    Args:
        pretokenizer: how text is normalized and cut.
        flags: how tokens are found, by name.
    """

    def __init__(self, pretokenizer: Pretokenizer, *, flags: Mapping[str, TokenFlags]) -> None:
        self._pretokenizer = pretokenizer
        self._flags = flags
        self._steps = pretokenizer.normalizer
        found = found_in_normalized(flags, self._steps)
        self._normalized = {token.encode(): text.encode() for token, text in found.items()}
        self._normalized_flags = {text: flags[token] for token, text in found.items()}
        self._matcher = functools.lru_cache(_MATCHERS)(
            lambda tokens: SpecialCutter(tokens, flags=flags).matcher
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
        native = self._pretokenizer.is_native
        pieces: Pieces | None = None
        if not native:
            pieces = Pieces.of(self.pretokens(texts().to_pylist(), cut_out))
        elif self._steps and cut_out:
            pieces = Pieces.of(self.segments(texts().to_pylist(), cut_out))
        elif self._steps:
            column = text_column(normalize_column(texts(), self._steps))
        try:
            if pieces is not None:
                encoded = core.encode_pieces(*pieces, cut=native, **options)
            else:
                matcher = self._matcher(tuple(cut_out))
                encoded = core.encode(column, matcher, list(cut_out.values()), **options)
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

    def segments(self, texts: Sequence[bytes], cut_out: Mapping[bytes, int]) -> list[list[Part]]:
        """Texts as tokens and normalized text.

        Args:
            texts: as they are.
            cut_out: the tokens to cut at, with their ids.
        """
        later = {
            text: cut_out[token] for token, text in self._normalized.items() if token in cut_out
        }
        first = {token: id_ for token, id_ in cut_out.items() if token not in self._normalized}
        rows = _cut_at_tokens([[(text, TEXT)] for text in texts], first, self._flags)
        before = len(before_marks(self._steps)) if later else 0
        if later:
            rows = _normalized(rows, self._steps[:before])
            rows = _cut_at_tokens(rows, later, self._normalized_flags)
        return _normalized(rows, self._steps[before:])

    def pretokens(self, texts: Sequence[bytes], cut_out: Mapping[bytes, int]) -> list[list[Part]]:
        """Texts as tokens and pre-tokens; an error names the row."""
        never_split = functools.cache(self._pretokenizer.is_never_split)

        def cut(text: bytes, what: int) -> Iterator[Part]:
            if what != TEXT:
                yield text, what
                return
            for begin, end in self._pretokenizer.spans(text):
                pretoken = text[begin:end]
                yield pretoken, NEVER_SPLIT if never_split(pretoken) else TEXT

        done = []
        for number, row in enumerate(self.segments(texts, cut_out)):
            try:
                done.append([part for text, what in row for part in cut(text, what)])
            except PatternTimeoutError as error:  # noqa: PERF203 - which of them
                raise error.of_row(number) from None
        return done


def _described(data: bytes) -> str:
    try:
        text = data.decode()
    except UnicodeDecodeError:
        return f"{data!r:.60}, which is not UTF-8,"
    if len(text) == 1:
        return f"the character {text!r} (U+{ord(text):04X})"
    return f"{text!r:.60}, which is never split,"


def _cut_at_tokens(
    rows: list[list[Part]], cut_out: Mapping[bytes, int], flags: Mapping[str, TokenFlags]
) -> list[list[Part]]:
    """Rows with their text cut at tokens."""
    cutter, ids = SpecialCutter(list(cut_out), flags=flags), list(cut_out.values())
    return [
        [
            part
            for text, what in row
            for part in (
                [(text, what)]
                if what != TEXT
                else (
                    (text[begin:end], TEXT if which is None else ids[which])
                    for begin, end, which in cutter.cut(text)
                )
            )
        ]
        for row in rows
    ]


def _normalized(rows: list[list[Part]], steps: Sequence[str]) -> list[list[Part]]:
    """Return the rows with their text normalized as one column: most columns need no change."""
    if not steps:
        return rows
    texts = [text for row in rows for text, what in row if what == TEXT]
    first = [number == 0 for row in rows for number, (_, what) in enumerate(row) if what == TEXT]
    column = normalize_column(pa.array(texts, pa.large_binary()), steps, first=first)
    normal = iter(column.cast(pa.large_binary()).to_pylist())
    return [[(next(normal) if what == TEXT else text, what) for text, what in row] for row in rows]
