"""Texts cut in Python: at tokens that stay whole, into what the core cuts or takes as it is."""

from __future__ import annotations

from array import array
from typing import TYPE_CHECKING

from bpe.special import SpecialCutter

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from bpe.pretokenize import Pretokenizer

_TEXT, _WHOLE = -1, -2  # as the core knows them


def cut_texts(
    texts: Iterable[bytes], *, pretokenizer: Pretokenizer, whole: Mapping[bytes, int]
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
    cutter, ids = SpecialCutter(list(whole)), list(whole.values())
    data, pieces, row_ends = bytearray(), array("q"), array("q")
    kinds: dict[bytes, int] = {}
    for text in texts:
        for begin, end, which in cutter.cut(text):
            start, part = len(data), text[begin:end]
            if which is not None:
                data += part
                pieces.extend((start, len(data), ids[which]))
                continue
            part = pretokenizer.normalize(part)
            data += part
            if pretokenizer.is_native:
                pieces.extend((start, len(data), _TEXT))
                continue
            for first, last in pretokenizer.spans(part):
                kind = _TEXT
                if pretokenizer.never_split:
                    kind = _kind(part[first:last], pretokenizer, kinds)
                pieces.extend((start + first, start + last, kind))
        row_ends.append(len(pieces) // 3)
    return bytes(data), pieces, row_ends


def _kind(pretoken: bytes, pretokenizer: Pretokenizer, known: dict[bytes, int]) -> int:
    """Whether a pre-token is never split; most are seen more than once."""
    if pretoken not in known:
        known[pretoken] = _WHOLE if pretokenizer.is_whole(pretoken) else _TEXT
    return known[pretoken]
