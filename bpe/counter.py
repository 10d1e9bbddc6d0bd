"""Counting the pre-tokens of Arrow columns, by the core or through a pattern."""

from __future__ import annotations

from array import array
from typing import TYPE_CHECKING

import pyarrow as pa

from bpe._arrow import int64_bytes, text_column
from bpe._native import Counter, CountRun
from bpe.normalize import normalize_column
from bpe.special import SpecialCutter, check_special_tokens

if TYPE_CHECKING:
    from collections.abc import Sequence

    from bpe.pretokenize import Pretokenizer


_ROWS = 1024  # texts that are prepared at a time


class PretokenCounter:
    """Counts pre-tokens until they are drained as sorted runs, one for each shard.

    Memory is bounded by the caller: look at ``nbytes`` between blocks and drain. Threads may share
    a counter; they take turns.

    Args:
        pretokenizer: how text is cut; a pattern runs in Python, a name in the core.
        special_tokens: cut out of the text before, and not counted.
        track_order: keep where each pre-token was first seen.
    """

    def __init__(
        self,
        pretokenizer: Pretokenizer,
        *,
        special_tokens: Sequence[str] = (),
        track_order: bool = False,
    ) -> None:
        self._pretokenizer = pretokenizer
        special = [token.encode("utf-8") for token in check_special_tokens(special_tokens)]
        self._cutter = SpecialCutter(special)
        # The core can do everything, or cut what is left when the rest is done.
        self._direct = pretokenizer.is_native and not pretokenizer.normalizer
        self._track_order = track_order
        self._counter = Counter(
            pretokenizer.name or "", special if self._direct else [], track_order
        )

    def __len__(self) -> int:
        """Distinct pre-tokens since the last drain."""
        return len(self._counter)

    @property
    def nbytes(self) -> int:
        """Bytes held in memory for the counts; while they grow, half as much again."""
        return self._counter.nbytes

    def add(self, texts: pa.Array, places: pa.Int64Array | None = None) -> int:
        """Count the texts of a block; how the corpus is cut into blocks does not matter.

        Args:
            texts: string, large_string, binary or large_binary without nulls.
            places: needed where order is tracked: the place of each document in the corpus, any
                numbers from 0 that ascend with its order; each text is one document.

        Returns:
            How many pre-tokens the texts have.

        Raises:
            TypeError: the texts are of another type.
            ValueError: a text is null, or there is not one place, 0 or more, for each text.
        """
        if places is not None and (places.type != pa.int64() or places.null_count):
            raise ValueError(f"places must be int64 without nulls, not {places.type}")
        if self._direct:
            numbers = None if places is None else int64_bytes(places)
            return self._counter.add(text_column(texts), numbers)
        given = 0 if places is None else len(places)
        if self._track_order and given != len(texts):
            raise ValueError(
                f"tracking order needs one place for each of {len(texts)} rows, got {given}"
            )
        if places is None or not self._track_order:
            places = pa.array(range(len(texts)), pa.int64())
        return sum(
            self._add_parts(texts.slice(row, _ROWS), places.slice(row, _ROWS))
            for row in range(0, len(texts), _ROWS)
        )

    def drain(self, shards: int) -> list[CountRun]:
        """All counts as one run for each shard, sorted by bytes; the counter is empty afterwards.

        A pre-token belongs to the shard ``stable_hash(pretoken) % shards``.
        """
        return self._counter.drain(shards)

    def _add_parts(self, texts: pa.Array, places: pa.Int64Array) -> int:
        """Count texts that are first cut at special tokens and normalized."""
        parts, rows = self._cutter.split_column(texts)
        parts = normalize_column(parts, self._pretokenizer.normalizer)
        if self._pretokenizer.name is None:
            return self._add_pieces(parts.cast(pa.large_binary()), places.take(rows))
        whole = b""
        if self._pretokenizer.never_split:
            parts, inner, whole = self._cut_wholes(parts.cast(pa.large_binary()))
            rows = rows.take(inner)
        return self._counter.add(text_column(parts), int64_bytes(places.take(rows)), whole)

    def _cut_wholes(
        self, texts: pa.LargeBinaryArray
    ) -> tuple[pa.LargeBinaryArray, pa.Int64Array, bytes]:
        """Texts cut at what is never split.

        Returns:
            The parts, the text that each comes from, and a byte for each: 1 if it is never split.
        """
        parts: list[bytes] = []
        rows, whole = array("q"), bytearray()
        for row, text in enumerate(texts.to_pylist()):
            position = 0
            for begin, end in self._pretokenizer.whole_spans(text):
                parts += (text[position:begin], text[begin:end])
                whole += b"\0\1"
                position = end
            parts.append(text[position:])
            whole.append(0)
            rows.extend([row] * (len(parts) - len(rows)))
        return pa.array(parts, pa.large_binary()), pa.array(rows, pa.int64()), bytes(whole)

    def _add_pieces(self, texts: pa.LargeBinaryArray, places: pa.Int64Array) -> int:
        """Count texts that Python cuts; neighbours of one place are parts of one document."""
        data, spans = bytearray(), array("q")
        documents, row_ends = array("q"), array("q")
        for text, place in zip(texts.to_pylist(), places.to_pylist(), strict=True):
            for begin, end in self._pretokenizer.spans(text):
                spans.extend((len(data) + begin, len(data) + end))
            data += text
            if documents and documents[-1] == place:
                row_ends.pop()
            else:
                documents.append(place)
            row_ends.append(len(spans) // 2)
        return self._counter.add_pieces(bytes(data), spans, row_ends, documents)
