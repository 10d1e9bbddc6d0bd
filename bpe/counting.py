"""Counting pre-tokens: of texts, and of Arrow columns block by block."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

import pyarrow as pa
import pyarrow.compute as pc

from bpe._arrow import text_array, text_column, values_of
from bpe._native import Counter, SortedCounts, add_counts
from bpe.counts.manifest import Totals
from bpe.counts.pretokens import PretokenCounts, text_bytes
from bpe.errors import CountsError, PatternTimeoutError
from bpe.pretokenizer import Pretokenizer
from bpe.segments import TextCutter
from bpe.special_tokens import check_special_tokens

_BLOCK_BYTES = 4 << 20
_BLOCK_ROWS = 1 << 14


def count_pretokens(
    texts: Iterable[str | bytes] | pa.Array | pa.ChunkedArray,
    *,
    pretokenizer: str | Pretokenizer = "gpt2",
    pattern: str | Sequence[str] | None = None,
    normalizer: Sequence[str] = (),
    never_split: Sequence[str] = (),
    special_tokens: Sequence[str] = (),
    track_order: bool = False,
) -> PretokenCounts:
    """Count the pre-tokens of texts; each text is one document.

    Args:
        texts: str or bytes (which may be malformed UTF-8), or an Arrow array of strings.
        pretokenizer: a name of :data:`bpe.PRETOKENIZERS`, or a Pretokenizer, alone.
        pattern: a regular expression instead, or several, applied one after the other.
        normalizer: steps of :data:`bpe.normalizer.NORMALIZERS`, applied before the text is cut.
        never_split: names of :data:`bpe.pretokenizer.NEVER_SPLIT` or regular expressions.
        special_tokens: cut out of the texts first, and not counted.
        track_order: record where each pre-token occurs first, for ``ties="first-seen"``.

    Raises:
        CountsError: a text is null, or not a str or bytes; the message names its row.
        EncodingError: a str has a lone surrogate.
        PatternTimeoutError: a pattern backtracks too long on a text; the message names its row.
        PretokenizerError, SpecialTokenError: the arguments are wrong.
        TypeError: an Arrow array is not of texts.

    Example:
        >>> dict(count_pretokens(["to be or not to be"], pretokenizer="words").items())
        {b'be': 2, b'not': 1, b'or': 1, b'to': 2}
    """
    cut = Pretokenizer.of(pretokenizer, pattern, normalizer=normalizer, never_split=never_split)
    special = check_special_tokens(special_tokens)
    counter = PretokenCounter(cut, special_tokens=special, track_order=track_order)

    def add(block: pa.Array, first: int) -> int:
        rows = range(first, first + len(block)) if track_order else None
        return counter.add(block, None if rows is None else pa.array(rows, pa.int64()))

    totals = count_blocks(texts, add)
    return PretokenCounts(
        sorted_counts=add_counts(counter.drain(1)),
        pretokenizer=cut,
        special_tokens=special,
        totals=totals,
        order_span=totals.documents if track_order else None,
    )


def count_blocks(
    texts: Iterable[str | bytes] | pa.Array | pa.ChunkedArray, add: Callable[[pa.Array, int], int]
) -> Totals:
    """Count texts in blocks; ``add`` takes a block and the number of its first text.

    Raises as :func:`count_pretokens`.
    """
    documents = size = pretokens = 0
    for block in text_blocks(texts):
        try:
            pretokens += add(block, documents)
        except PatternTimeoutError as error:
            raise error.shifted(documents) from None
        documents += len(block)
        size += pc.sum(pc.binary_length(block)).as_py() or 0
    return Totals(documents=documents, bytes=size, pretokens=pretokens)


def text_blocks(
    texts: Iterable[str | bytes] | pa.Array | pa.ChunkedArray,
) -> Iterator[pa.Array]:
    """Yield the texts as Arrow arrays without nulls; raises as :func:`count_pretokens`."""
    if isinstance(texts, (str, bytes)):
        raise CountsError("texts is a single text: give a list, [text]")
    if isinstance(texts, (pa.Array, pa.ChunkedArray)):
        column = text_array(pa.chunked_array([texts]) if isinstance(texts, pa.Array) else texts)
        if column.null_count:
            null = pc.index(pc.is_null(column), pa.scalar(True)).as_py()
            raise CountsError(f"text {null} is null: drop it, or fill it with an empty string")
        for chunk in column.chunks:
            for first in range(0, len(chunk), _BLOCK_ROWS):
                yield chunk.slice(first, _BLOCK_ROWS)
        return
    held: list[bytes] = []
    size = 0
    for row, text in enumerate(texts):
        held.append(text_bytes(text, f"text {row}"))
        size += len(held[-1])
        if size >= _BLOCK_BYTES:
            yield pa.array(held, pa.large_binary())
            held, size = [], 0
    if held:
        yield pa.array(held, pa.large_binary())


class PretokenCounter:
    """Counts pre-tokens, and drains them as sorted counts, one object for each shard.

    The caller bounds memory: check ``nbytes`` between blocks, and drain. Threads may share a
    counter; they take turns.

    Args:
        pretokenizer: how text is cut.
        special_tokens: cut out of the text first, and not counted.
        track_order: record where each pre-token occurs first.
    """

    def __init__(
        self,
        pretokenizer: Pretokenizer,
        *,
        special_tokens: Sequence[str] = (),
        track_order: bool = False,
    ) -> None:
        self._cutter = TextCutter(pretokenizer, flags={})
        # Which token it is does not matter here.
        self._special = {token.encode(): 0 for token in check_special_tokens(special_tokens)}
        self._track_order = track_order
        special = [*self._special] if self._cutter.takes_text else []
        self._counter = Counter(pretokenizer.native or ["none"], special, track_order)

    def __len__(self) -> int:
        """Distinct pre-tokens since the last drain."""
        return len(self._counter)

    @property
    def nbytes(self) -> int:
        """Bytes of memory for the counts; while they grow, half as much again."""
        return self._counter.nbytes

    def add(self, texts: pa.Array, places: pa.Int64Array | None = None) -> int:
        """Count the texts of a block; the block boundaries do not matter.

        Args:
            texts: string, large_string, binary or large_binary without nulls.
            places: required if order is tracked: the place of each document in the corpus, any
                ascending numbers from 0; each text is one document.

        Returns:
            The number of pre-tokens in the texts.

        Raises:
            PatternTimeoutError: a pattern backtracks too long on a text; then none is counted.
            TypeError: the texts are of another type.
            ValueError: a text is null, or there is not one place, 0 or more, for each text.
        """
        if places is not None and (places.type != pa.int64() or places.null_count):
            raise ValueError(f"places must be int64 without nulls, not {places.type}")
        given = 0 if places is None else len(places)
        if self._track_order and given != len(texts):
            raise ValueError(
                f"tracking order needs one place for each of {len(texts)} rows, got {given}"
            )
        column = text_column(texts)
        if not self._cutter.takes_text:
            segments = self._cutter.segments(texts, self._special)
            is_text = segments.what < 0
            column = text_column(segments.data.filter(pa.array(is_text)))
            if places is not None:
                places = places.take(pa.array(segments.rows[is_text]))
        return self._counter.add(column, None if places is None else values_of(places))

    def drain(self, shards: int) -> list[SortedCounts]:
        """Sorted counts for each shard; the counter is empty afterwards.

        A pre-token belongs to the shard ``stable_hash(pretoken) % shards``.
        """
        return self._counter.drain(shards)
