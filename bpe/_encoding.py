"""From texts to token ids: what the core does itself, and what is cut in Python before."""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa

from bpe._arrow import text_column
from bpe._lists import list_array
from bpe._native import TextColumn
from bpe._pieces import cut_texts
from bpe.cache import CacheUse
from bpe.errors import EncodingError, UnknownCharacterError
from bpe.normalize import normalize_column

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping

    from bpe._native import Buffer, Encoder
    from bpe.pretokenize import Pretokenizer


@dataclass(frozen=True)
class Noise:
    """BPE-dropout of one call.

    Attributes:
        dropout: how often a merge is dropped, from 0 to 1.
        rows: a seed for each row; none where dropout is 0.
    """

    dropout: float
    rows: pa.UInt64Array | None

    @classmethod
    def of(cls, dropout: float, seeds: Callable[[], pa.UInt64Array]) -> Noise:
        """With the seeds, where there is dropout.

        Raises:
            EncodingError: dropout is not a number from 0 to 1, or as ``seeds`` raises.
        """
        if not isinstance(dropout, int | float) or not 0 <= dropout <= 1:
            raise EncodingError(f"dropout {dropout!r:.60} is not a number from 0 to 1")
        return cls(float(dropout), seeds() if dropout > 0 else None)

    def slice(self, first: int, rows: int) -> Noise:
        """That of some of the rows."""
        return Noise(self.dropout, None if self.rows is None else self.rows.slice(first, rows))

    @property
    def seeds(self) -> memoryview | None:
        """The seeds in memory, uint64."""
        if self.rows is None:
            return None
        return memoryview(self.rows.buffers()[1] or b"")[self.rows.offset * 8 :][
            : len(self.rows) * 8
        ]


def seed_array(seeds: Iterable[int] | pa.Array, *, rows: int) -> pa.UInt64Array:
    """Seeds as they are given to ``encode_arrow``, one for each row.

    Raises:
        EncodingError: they are not that many numbers from 0 to 2^64 - 1.
    """
    try:
        if isinstance(seeds, pa.ChunkedArray):
            seeds = seeds.combine_chunks()
        made = (
            seeds.cast(pa.uint64()) if isinstance(seeds, pa.Array) else pa.array(seeds, pa.uint64())
        )
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError, OverflowError, TypeError) as error:
        raise EncodingError(f"seeds are not numbers from 0 to 2^64 - 1: {error}") from None
    if len(made) != rows or made.null_count:
        raise EncodingError(
            f"{len(made)} seeds, {made.null_count} of them null, for {rows} texts: give one each"
        )
    return made


class TextEncoder:
    """How texts become ids: whole tokens are cut out, the rest is cut and merged.

    Args:
        core: what merges, and cuts what it knows how to.
        pretokenizer: how text is cut.
        special_tokens: cut out where a call allows them, with their ids.
        added_tokens: cut out always.
    """

    def __init__(
        self,
        core: Encoder,
        pretokenizer: Pretokenizer,
        *,
        special_tokens: Mapping[str, int],
        added_tokens: Mapping[str, int],
    ) -> None:
        self._core = core
        self._pretokenizer = pretokenizer
        self._special_tokens = special_tokens
        self._added = {content.encode(): id_ for content, id_ in added_tokens.items()}

    def text(
        self, data: bytes, *, allowed_special: Collection[str] | str, noise: Noise
    ) -> list[int]:
        """The ids of one text; raises as :meth:`Tokenizer.encode`."""
        row = TextColumn(data, struct.pack("=qq", 0, len(data)), 8, 0, 1)
        ids, _ = self._encode(
            row,
            lambda: pa.array([data], pa.large_binary()),
            self._whole(allowed_special),
            noise,
            CacheUse(),
        )
        return memoryview(ids).cast("I").tolist()

    def array(
        self,
        texts: pa.Array | pa.ChunkedArray,
        *,
        allowed_special: Collection[str] | str,
        noise: Noise,
        use: CacheUse,
    ) -> pa.ListArray | pa.ChunkedArray:
        """The ids of a column; raises as :meth:`Tokenizer.encode_arrow`."""
        whole = self._whole(allowed_special)
        if not isinstance(texts, pa.ChunkedArray):
            return self._array(texts, whole, noise, use, first=0)
        chunks, first = [], 0
        for chunk in texts.chunks:
            of_chunk = noise.slice(first, len(chunk))
            chunks.append(self._array(chunk, whole, of_chunk, use, first=first))
            first += len(chunk)
        return pa.chunked_array(chunks, type=pa.list_(pa.uint32()))

    def _array(
        self,
        texts: pa.Array,
        whole: Mapping[bytes, int],
        noise: Noise,
        use: CacheUse,
        *,
        first: int,
    ) -> pa.ListArray:
        is_bytes = pa.types.is_binary(texts.type) or pa.types.is_large_binary(texts.type)
        has_nulls = texts.null_count > 0 and not pa.types.is_null(texts.type)
        filled = texts.fill_null(b"" if is_bytes else "") if has_nulls else texts
        try:
            ids, offsets = self._encode(
                text_column(filled),
                lambda: filled.cast(pa.large_binary()),
                whole,
                noise,
                use,
            )
        except UnknownCharacterError as error:
            rows = tuple(first + row for row in error.rows)
            raise UnknownCharacterError(f"row {rows[0]}: {error}", rows=rows) from None
        return list_array(ids, offsets, texts=texts)

    def _whole(self, allowed_special: Collection[str] | str) -> dict[bytes, int]:
        """The tokens that are cut out of a text whole, with their ids."""
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
        whole: Mapping[bytes, int],
        noise: Noise,
        use: CacheUse,
    ) -> tuple[Buffer, Buffer]:
        """Ids (uint32) and offsets (int64); ``texts`` are the rows where Python sees to them."""
        cut = self._pretokenizer
        pieces = None
        if not cut.is_native or (cut.normalizer and whole):
            pieces = cut_texts(texts(), pretokenizer=cut, whole=whole)
        elif cut.normalizer:
            column = text_column(normalize_column(texts(), cut.normalizer))
        try:
            if pieces is None:
                ids, offsets, unencodable, (asked, misses) = self._core.encode(
                    column, list(whole.values()), dropout=noise.dropout, seeds=noise.seeds
                )
            else:
                ids, offsets, unencodable, (asked, misses) = self._core.encode_pieces(
                    pieces.data,
                    pieces.pieces,
                    pieces.row_ends,
                    cut=pieces.cut,
                    dropout=noise.dropout,
                    seeds=noise.seeds,
                )
        except ValueError as error:  # a pre-token of 4 GiB, or dropout without merges
            raise EncodingError(str(error)) from None
        if unencodable:
            raise UnknownCharacterError(
                f"{_described(unencodable[0][1])} has no token, and the tokenizer no unknown token "
                "for it: leave it out, or train on texts that hold it, or with an unknown token",
                rows=tuple(row for row, _ in unencodable),
            )
        use.add(hits=asked - misses, misses=misses)
        return ids, offsets


def _described(found: bytes) -> str:
    try:
        text = found.decode()
    except UnicodeDecodeError:
        return f"{found!r:.60}, which is not UTF-8,"
    if len(text) == 1:
        return f"the character {text!r} (U+{ord(text):04X})"
    return f"{text!r:.60}, which is never split,"
