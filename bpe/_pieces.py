"""Texts cut in Python: at tokens that stay whole, into what the core cuts or takes as it is."""

from __future__ import annotations

from array import array
from typing import TYPE_CHECKING

import pyarrow as pa

from bpe.normalize import normalize_column
from bpe.special import SpecialCutter

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from bpe.pretokenize import Pretokenizer

_TEXT, _WHOLE = -1, -2  # as the core knows them


def cut_texts(
    texts: pa.LargeBinaryArray, *, pretokenizer: Pretokenizer, whole: Mapping[bytes, int]
) -> tuple[bytes, array[int], array[int]]:
    """Cut texts as the core's ``encode_pieces`` takes them.

    Args:
        texts: the rows.
        pretokenizer: how what lies between whole tokens is normalized and cut; a native one is
            left to the core, which cuts its pieces.
        whole: the tokens that are cut out first, with their ids.

    Returns:
        All texts in one, normalized; int64 triples (begin, end, what) of bytes in it, where what
        is the id of a whole token, -1, or -2 for a pre-token that is never split; for each row the
        number of pieces up to and including it.
    """
    rows = _cut_at_tokens(texts.to_pylist(), whole)
    normal = _normalized((part for row in rows for part, id_ in row if id_ < 0), pretokenizer)
    data, pieces, row_ends = bytearray(), array("q"), array("q")
    kinds: dict[bytes, int] = {}
    for row in rows:
        for part, id_ in row:
            start = len(data)
            if id_ >= 0:
                data += part
                pieces.extend((start, len(data), id_))
                continue
            text = next(normal)
            data += text
            if pretokenizer.is_native:
                pieces.extend((start, len(data), _TEXT))
                continue
            for first, last in pretokenizer.spans(text):
                kind = _TEXT
                if pretokenizer.never_split:
                    kind = _kind(text[first:last], pretokenizer, kinds)
                pieces.extend((start + first, start + last, kind))
        row_ends.append(len(pieces) // 3)
    return bytes(data), pieces, row_ends


def _cut_at_tokens(
    texts: Iterable[bytes], whole: Mapping[bytes, int]
) -> list[list[tuple[bytes, int]]]:
    """The parts of each row, with the id of a whole token or -1."""
    cutter, ids = SpecialCutter(list(whole)), list(whole.values())
    return [
        [
            (text[begin:end], _TEXT if which is None else ids[which])
            for begin, end, which in cutter.cut(text)
        ]
        for text in texts
    ]


def _normalized(texts: Iterable[bytes], pretokenizer: Pretokenizer) -> Iterator[bytes]:
    """The texts, changed as a column: most columns need no change."""
    if not pretokenizer.normalizer:
        return iter(texts)
    column = pa.array(texts, pa.large_binary())
    return iter(
        normalize_column(column, pretokenizer.normalizer).cast(pa.large_binary()).to_pylist()
    )


def _kind(pretoken: bytes, pretokenizer: Pretokenizer, known: dict[bytes, int]) -> int:
    """Whether a pre-token is never split; most are seen more than once."""
    if pretoken not in known:
        known[pretoken] = _WHOLE if pretokenizer.is_whole(pretoken) else _TEXT
    return known[pretoken]
