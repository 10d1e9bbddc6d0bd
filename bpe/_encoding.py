"""Encoding: texts to token ids in the core."""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa

from bpe._arrow import list_array, text_column
from bpe._native import TextColumn
from bpe.errors import BadTextsError, EncodingError, UnknownCharacterError
from bpe.segments import TextCutter

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping

    from bpe._native import Buffer, Encoder
    from bpe.dropout import Noise
    from bpe.parts import Parts


class TextEncoder:
    """Encodes texts: cuts special and added tokens out, then cuts and merges the rest.

    Args:
        core: merges, and cuts by names and tables of patterns.
        parts: of the tokenizer. Special tokens are cut out if a call allows them, added ones in
            every call.
    """

    def __init__(self, core: Encoder, parts: Parts) -> None:
        self._core = core
        self._special_tokens = parts.special_tokens
        self._cutter = TextCutter(parts.pretokenizer, flags=parts.token_flags)
        self._added = {content.encode(): id_ for content, id_ in parts.added_tokens.items()}

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
        ids, offsets, unencodable, (asked, misses) = self._cutter.encode(
            self._core,
            column,
            texts,
            cut_out,
            narrow=id_type == pa.uint16(),
            dropout=noise.dropout,
            seeds=noise.seeds,
        )
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
