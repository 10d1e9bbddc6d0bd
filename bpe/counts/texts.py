"""Texts to counts of pre-tokens."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from bpe._arrow import text_array
from bpe._native import merge_runs
from bpe.counter import PretokenCounter
from bpe.counts.manifest import Totals
from bpe.counts.pretokens import PretokenCounts, text_bytes
from bpe.errors import CountsError
from bpe.pretokenize import Pretokenizer
from bpe.special import check_special_tokens

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

_BLOCK_BYTES = 4 << 20


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
        pretokenizer: a name of :data:`bpe.PRETOKENIZERS`, or all four in one.
        pattern: a regular expression in its place, or several, applied one after the other.
        normalizer: steps of :data:`bpe.NORMALIZERS`, applied before the text is cut.
        never_split: names of :data:`bpe.NEVER_SPLIT` or regular expressions.
        special_tokens: cut out of the texts before, and not counted.
        track_order: keep where each pre-token was first seen, for ``ties="first-seen"``.

    Raises:
        CountsError: a text is null or no text; the message names its row.
        EncodingError: a str has a lone surrogate.
        PretokenizerError, SpecialTokenError: the arguments are wrong.

    Example:
        >>> dict(count_pretokens(["to be or not to be"], pretokenizer="words").items())
        {b'be': 2, b'not': 1, b'or': 1, b'to': 2}
    """
    cut = Pretokenizer.of(pretokenizer, pattern, normalizer=normalizer, never_split=never_split)
    special = check_special_tokens(special_tokens)
    counter = PretokenCounter(cut, special_tokens=special, track_order=track_order)
    documents = size = pretokens = 0
    for block in _blocks(texts):
        rows = range(documents, documents + len(block))
        pretokens += counter.add(block, pa.array(rows, pa.int64()) if track_order else None)
        documents += len(block)
        size += pc.sum(pc.binary_length(block)).as_py() or 0
    return PretokenCounts(
        run=merge_runs(counter.drain(1)),
        pretokenizer=cut,
        special_tokens=special,
        totals=Totals(documents=documents, bytes=size, pretokens=pretokens),
        order_span=documents if track_order else None,
    )


def _blocks(texts: Iterable[str | bytes] | pa.Array | pa.ChunkedArray) -> Iterator[pa.Array]:
    """The texts as Arrow arrays without nulls."""
    if isinstance(texts, (str, bytes)):
        raise CountsError("texts is a single text: give a list, [text]")
    if isinstance(texts, (pa.Array, pa.ChunkedArray)):
        row = 0
        for block in texts.chunks if isinstance(texts, pa.ChunkedArray) else [texts]:
            if block.null_count:
                null = row + pc.index(pc.is_null(block), pa.scalar(True)).as_py()
                raise CountsError(f"text {null} is null: drop it, or fill it with an empty string")
            yield _text_array(block)
            row += len(block)
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


def _text_array(array: pa.Array) -> pa.Array:
    array = text_array(array)
    kind = array.type
    is_text = (
        pa.types.is_string,
        pa.types.is_large_string,
        pa.types.is_binary,
        pa.types.is_large_binary,
    )
    if not any(check(kind) for check in is_text):
        raise CountsError(f"texts are an Arrow array of {kind}: cast them to large_string first")
    return array
