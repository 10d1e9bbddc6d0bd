"""Counting the pre-tokens of Arrow columns, by the core or through a pattern."""

from __future__ import annotations

from array import array
from typing import TYPE_CHECKING

import pyarrow as pa

from bpe._arrow import int64_bytes, text_column
from bpe._native import Counter, CountRun
from bpe.special import SpecialCutter, check_special_tokens

if TYPE_CHECKING:
    from collections.abc import Sequence

    from bpe.pretokenize import Pretokenizer


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
        self._counter = Counter(pretokenizer.scheme, special, track_order)

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
        column = text_column(texts)
        if places is not None and (places.type != pa.int64() or places.null_count):
            raise ValueError(f"places must be int64 without nulls, not {places.type}")
        numbers = None if places is None else int64_bytes(places)
        if self._pretokenizer.is_native and not self._pretokenizer.normalizer:
            return self._counter.add(column, numbers)
        total = 0
        for row, text in enumerate(texts):
            data, spans = self._cut(text.as_buffer().to_pybytes())
            place = None if numbers is None else numbers[8 * row : 8 * row + 8]
            row_ends = array("q", [len(spans) // 2])
            total += self._counter.add_pieces(data, spans, row_ends, place)
        return total

    def drain(self, shards: int) -> list[CountRun]:
        """All counts as one run for each shard, sorted by bytes; the counter is empty afterwards.

        A pre-token belongs to the shard ``stable_hash(pretoken) % shards``.
        """
        return self._counter.drain(shards)

    def _cut(self, text: bytes) -> tuple[bytes, array[int]]:
        """A text normalized, and begin and end of each of its pre-tokens."""
        data, spans = bytearray(), array("q")
        for begin, end, special in self._cutter.cut(text):
            if special is None:
                part = self._pretokenizer.normalize(text[begin:end])
                for first, last in self._pretokenizer.spans(part):
                    spans.extend((len(data) + first, len(data) + last))
                data += part
        return bytes(data), spans
