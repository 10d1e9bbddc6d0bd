"""Encoding: texts to token ids in the core, after Python has cut what the core cannot."""

from __future__ import annotations

import functools
import struct
from array import array
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import pyarrow as pa

from bpe._arrow import list_array, text_column
from bpe._native import TextColumn
from bpe.errors import (
    BadTextsError,
    EncodingError,
    PatternTimeoutError,
    UnknownCharacterError,
)
from bpe.normalizer import before_marks, normalize_column
from bpe.special_tokens import SpecialCutter, found_in_normalized

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence

    from bpe._native import Buffer, Encoder
    from bpe.dropout import Noise
    from bpe.pretokenizer import Pretokenizer
    from bpe.special_tokens import TokenFlags


class TextEncoder:
    """Encodes texts: cuts special and added tokens out, then cuts and merges the rest.

    Args:
        core: merges, and cuts by names and tables of patterns.
        pretokenizer: how text is cut.
        special_tokens: cut out if a call allows them, with their ids.
        added_tokens: always cut out, with their ids.
        token_flags: how these tokens are found.
    """

    def __init__(
        self,
        core: Encoder,
        pretokenizer: Pretokenizer,
        *,
        special_tokens: Mapping[str, int],
        added_tokens: Mapping[str, int],
        token_flags: Mapping[str, TokenFlags],
    ) -> None:
        self._core = core
        self._pretokenizer = pretokenizer
        self._special_tokens = special_tokens
        self._search = TokenSearch(token_flags, pretokenizer)
        self._added = {content.encode(): id_ for content, id_ in added_tokens.items()}

    def text(
        self, data: bytes, *, allowed_special: Collection[str] | str, noise: Noise
    ) -> list[int]:
        """The ids of one text; raises as :meth:`Tokenizer.encode`."""
        row = TextColumn(data, struct.pack("=qq", 0, len(data)), 8, 0, 1)
        ids, _ = self._encode(
            row,
            lambda: pa.array([data], pa.large_binary()),
            self._cut_tokens(allowed_special),
            noise,
            CacheUse(),
            id_type=pa.uint32(),
        )
        return memoryview(ids).cast("I").tolist()

    def array(
        self,
        texts: pa.Array | pa.ChunkedArray,
        *,
        allowed_special: Collection[str] | str,
        noise: Noise,
        use: CacheUse,
        id_type: pa.DataType,
    ) -> pa.ListArray | pa.ChunkedArray:
        """The ids of a column; raises as :meth:`Tokenizer.encode_arrow`."""
        cut_out = self._cut_tokens(allowed_special)
        if not isinstance(texts, pa.ChunkedArray):
            return self._array(texts, cut_out, noise, use, id_type=id_type, first=0)
        chunks, first = [], 0
        for chunk in texts.chunks:
            of_chunk = noise.slice(first, len(chunk))
            chunks.append(self._array(chunk, cut_out, of_chunk, use, id_type=id_type, first=first))
            first += len(chunk)
        return pa.chunked_array(chunks, type=pa.list_(id_type))

    def _array(
        self,
        texts: pa.Array,
        cut_out: Mapping[bytes, int],
        noise: Noise,
        use: CacheUse,
        *,
        id_type: pa.DataType,
        first: int,
    ) -> pa.ListArray:
        is_bytes = pa.types.is_binary(texts.type) or pa.types.is_large_binary(texts.type)
        has_nulls = texts.null_count > 0 and not pa.types.is_null(texts.type)
        filled = texts.fill_null(b"" if is_bytes else "") if has_nulls else texts
        try:
            ids, offsets = self._encode(
                text_column(filled),
                lambda: filled.cast(pa.large_binary()),
                cut_out,
                noise,
                use,
                id_type=id_type,
            )
        except BadTextsError as error:
            raise error.shifted(first) from None
        return list_array(ids, offsets, id_type=id_type, texts=texts)

    def _cut_tokens(self, allowed_special: Collection[str] | str) -> dict[bytes, int]:
        """The tokens that are cut out of a text, with their ids."""
        special = self._special_tokens
        if isinstance(allowed_special, str):
            if allowed_special != "all":
                raise EncodingError(
                    f"allowed_special is a collection of special tokens or 'all', not "
                    f"{allowed_special!r}"
                )
            allowed_special = special.keys()
        for content in allowed_special:
            if content not in special:
                raise EncodingError(
                    f"{content!r} is not a special token of this tokenizer, which has "
                    f"{', '.join(map(repr, special)) or 'none'}"
                )
        if not allowed_special:
            return self._added
        allowed = {token.encode(): special[token] for token in sorted(set(allowed_special))}
        return self._added | allowed

    def _encode(
        self,
        column: TextColumn,
        texts: Callable[[], pa.LargeBinaryArray],
        cut_out: Mapping[bytes, int],
        noise: Noise,
        use: CacheUse,
        *,
        id_type: pa.DataType,
    ) -> tuple[Buffer, Buffer]:
        """Ids and offsets (int64); ``texts`` returns the rows for Python to cut."""
        narrow = id_type == pa.uint16()
        prepared = prepare(
            column,
            texts,
            pretokenizer=self._pretokenizer,
            cut_out=cut_out,
            search=self._search,
        )
        try:
            if not isinstance(prepared, Pieces):
                ids, offsets, unencodable, (asked, misses) = self._core.encode(
                    prepared,
                    list(cut_out.values()),
                    narrow=narrow,
                    dropout=noise.dropout,
                    seeds=noise.seeds,
                )
            else:
                ids, offsets, unencodable, (asked, misses) = self._core.encode_pieces(
                    prepared.data,
                    prepared.pieces,
                    prepared.row_ends,
                    cut=prepared.cut,
                    narrow=narrow,
                    dropout=noise.dropout,
                    seeds=noise.seeds,
                )
        except ValueError as error:  # a pre-token of 4 GiB, or dropout without merges
            raise EncodingError(str(error)) from None
        if unencodable:
            reasons = {
                row: f"{_described(data)} has no token, and the tokenizer has no unknown token: "
                "remove it, train on texts that hold it, or train with an unknown token"
                for row, data in unencodable
            }
            raise UnknownCharacterError(next(iter(reasons.values())), reasons=reasons)
        use.add(hits=asked - misses, misses=misses)
        return ids, offsets


def _described(data: bytes) -> str:
    try:
        text = data.decode()
    except UnicodeDecodeError:
        return f"{data!r:.60}, which is not UTF-8,"
    if len(text) == 1:
        return f"the character {text!r} (U+{ord(text):04X})"
    return f"{text!r:.60}, which is never split,"


_TEXT, _NEVER_SPLIT = -1, -2  # as the core knows them

Part = tuple[bytes, int]
"""Bytes, and what they are: the id of a token, ``_TEXT`` or ``_NEVER_SPLIT``."""


class Pieces(NamedTuple):
    """Texts as the core's ``encode_pieces`` takes them.

    Attributes:
        data: all texts in one, normalized.
        pieces: int64 triples (begin, end, what) of bytes in it, where what is the id of a token,
            -1 for text, or -2 for a pre-token that is never split.
        row_ends: for each row the number of pieces up to and including it.
        cut: whether the core still has to cut text into pre-tokens.
    """

    data: bytes
    pieces: array[int]
    row_ends: array[int]
    cut: bool


def prepare(
    column: TextColumn,
    texts: Callable[[], pa.LargeBinaryArray],
    *,
    pretokenizer: Pretokenizer,
    cut_out: Mapping[bytes, int],
    search: TokenSearch,
) -> TextColumn | Pieces:
    """Texts as the core can take them: normalized, and cut where it cannot do so itself.

    Args:
        column: the rows.
        texts: returns the same rows for Python to cut.
        pretokenizer: how text is normalized and cut.
        cut_out: the tokens to cut at, with their ids.
        search: finds them.
    """
    if not pretokenizer.is_native or (pretokenizer.normalizer and cut_out):
        return cut_texts(texts(), pretokenizer=pretokenizer, cut_out=cut_out, search=search)
    if pretokenizer.normalizer:
        return text_column(normalize_column(texts(), pretokenizer.normalizer))
    return column


def cut_texts(
    texts: pa.LargeBinaryArray,
    *,
    pretokenizer: Pretokenizer,
    cut_out: Mapping[bytes, int],
    search: TokenSearch,
) -> Pieces:
    """Cut texts at tokens, normalize what lies between, and cut that if the core cannot.

    Args:
        texts: the rows.
        pretokenizer: normalizes and cuts what lies between.
        cut_out: the tokens to cut at, with their ids.
        search: finds them.

    Raises:
        PatternTimeoutError: a pattern backtracks too long on a text.
    """
    rows = search.rows(texts.to_pylist(), cut_out)
    cut = pretokenizer.is_native
    if not cut:
        rows = _pretokens(rows, pretokenizer)
    pieces, row_ends = array("q"), array("q")
    end = 0
    for row in rows:
        for text, what in row:
            pieces.extend((end, end + len(text), what))
            end += len(text)
        row_ends.append(len(pieces) // 3)
    data = b"".join(text for row in rows for text, _ in row)
    return Pieces(data, pieces, row_ends, cut)


class TokenSearch:
    """Finds tokens in texts, and normalizes what lies between.

    Args:
        flags: how tokens are found, by name.
        pretokenizer: normalizes.
    """

    def __init__(self, flags: Mapping[str, TokenFlags], pretokenizer: Pretokenizer) -> None:
        self._flags = flags
        self._steps = pretokenizer.normalizer
        found = found_in_normalized(flags, self._steps)
        self._normalized = {token.encode(): text.encode() for token, text in found.items()}
        self._normalized_flags = {text: flags[token] for token, text in found.items()}

    def rows(self, texts: Iterable[bytes], cut_out: Mapping[bytes, int]) -> list[list[Part]]:
        """Texts as tokens and normalized text.

        Args:
            texts: as they are.
            cut_out: the tokens to cut at, with their ids.
        """
        later = {
            text: cut_out[token] for token, text in self._normalized.items() if token in cut_out
        }
        first = {token: id_ for token, id_ in cut_out.items() if token not in self._normalized}
        rows = _cut_at_tokens([[(text, _TEXT)] for text in texts], first, self._flags)
        before = len(before_marks(self._steps)) if later else 0
        if later:
            rows = _normalized(rows, self._steps[:before])
            rows = _cut_at_tokens(rows, later, self._normalized_flags)
        return _normalized(rows, self._steps[before:])


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
                if what != _TEXT
                else (
                    (text[begin:end], _TEXT if which is None else ids[which])
                    for begin, end, which in cutter.cut(text)
                )
            )
        ]
        for row in rows
    ]


def _normalized(rows: list[list[Part]], steps: Sequence[str]) -> list[list[Part]]:
    """The rows with their text normalized as one column: most columns need no change."""
    if not steps:
        return rows
    texts = [text for row in rows for text, what in row if what == _TEXT]
    first = [number == 0 for row in rows for number, (_, what) in enumerate(row) if what == _TEXT]
    column = normalize_column(pa.array(texts, pa.large_binary()), steps, first=first)
    normal = iter(column.cast(pa.large_binary()).to_pylist())
    return [[(next(normal) if what == _TEXT else text, what) for text, what in row] for row in rows]


def _pretokens(rows: list[list[Part]], pretokenizer: Pretokenizer) -> list[list[Part]]:
    """Rows with their text cut into pre-tokens; an error names the row."""
    whole = functools.cache(pretokenizer.is_never_split)

    def cut(text: bytes, what: int) -> Iterator[Part]:
        if what != _TEXT:
            yield text, what
            return
        for begin, end in pretokenizer.spans(text):
            pretoken = text[begin:end]
            yield pretoken, _NEVER_SPLIT if whole(pretoken) else _TEXT

    done = []
    for number, row in enumerate(rows):
        try:
            done.append([part for text, what in row for part in cut(text, what)])
        except PatternTimeoutError as error:  # noqa: PERF203 - which of them
            raise error.of_row(number) from None
    return done


@dataclass(kw_only=True)
class CacheUse:
    """Hits and misses of the encoder's cache of words; calls add to them.

    The cache starts with the tokens of the vocabulary, and its contents depend on what was encoded
    before. So only the sum of the two is the same from run to run.

    Attributes:
        hits: pre-tokens found in the cache.
        misses: pre-tokens that were merged; with dropout, all.
    """

    hits: int = 0
    misses: int = 0

    @property
    def pretokens(self) -> int:
        """All pre-tokens."""
        return self.hits + self.misses

    def add(self, *, hits: int, misses: int) -> None:
        """Add the numbers of another call."""
        self.hits += hits
        self.misses += misses
