"""Encoding: texts to token ids in the core."""

from __future__ import annotations

import struct
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import pyarrow as pa

from bpe._arrow import list_array, text_column, values_of
from bpe._native import TextColumn
from bpe.errors import BadTextsError, EncodingError
from bpe.segments import TextCutter

if TYPE_CHECKING:
    from collections.abc import Collection

    from bpe._native import Encoder
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
        self,
        data: bytes,
        *,
        allowed_special: Collection[str] | str,
        dropout: float,
        seeds: pa.UInt64Array | None,
    ) -> list[int]:
        """The ids of one text; raises as :meth:`Tokenizer.encode`."""
        ids, *_ = self._cutter.encode(
            self._core,
            TextColumn(data, struct.pack("=qq", 0, len(data)), 8, 0, 1),
            lambda: pa.array([data], pa.large_binary()),
            self._cut_tokens(allowed_special),
            dropout=dropout,
            seeds=None if seeds is None else values_of(seeds),
        )
        return memoryview(ids).cast("I").tolist()

    def array(
        self,
        texts: pa.Array | pa.ChunkedArray,
        *,
        allowed_special: Collection[str] | str,
        dropout: float,
        seeds: pa.UInt64Array | None,
        id_type: pa.DataType,
        use: CacheUse,
    ) -> pa.ListArray | pa.ChunkedArray:
        """The ids of a column; raises as :meth:`Tokenizer.encode_arrow`."""
        cut_out = self._cut_tokens(allowed_special)
        is_chunked = isinstance(texts, pa.ChunkedArray)
        done: list[pa.ListArray] = []
        asked = missed = first = 0
        for chunk in texts.chunks if is_chunked else [texts]:
            has_nulls = chunk.null_count > 0 and not pa.types.is_null(chunk.type)
            filled = chunk.fill_null(b"") if has_nulls else chunk
            try:
                ids, offsets, (pretokens, misses) = self._cutter.encode(
                    self._core,
                    text_column(filled),
                    partial(filled.cast, pa.large_binary()),
                    cut_out,
                    narrow=id_type == pa.uint16(),
                    dropout=dropout,
                    seeds=None if seeds is None else values_of(seeds.slice(first, len(chunk))),
                )
            except BadTextsError as error:
                raise error.shifted(first) from None
            done.append(list_array(ids, offsets, id_type=id_type, texts=chunk))
            asked, missed, first = asked + pretokens, missed + misses, first + len(chunk)
        use.hits += asked - missed  # nothing is added where there was an error
        use.misses += missed
        return pa.chunked_array(done, type=pa.list_(id_type)) if is_chunked else done[0]

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
