"""Texts cut in Python, for patterns that the core does not know."""

from __future__ import annotations

from array import array
from typing import TYPE_CHECKING

from bpe.special import SpecialCutter

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from bpe.pretokenize import Pretokenizer


def cut_texts(
    texts: Iterable[bytes], *, pretokenizer: Pretokenizer, whole: Mapping[bytes, int]
) -> tuple[bytes, array[int], array[int]]:
    """Cut texts as the core's ``encode_pieces`` takes them.

    Args:
        texts: the rows.
        pretokenizer: how what lies between whole tokens is cut.
        whole: the tokens that are cut out first, with their ids.

    Returns:
        All texts in one, normalized; int64 triples (begin, end, id of a whole token or -1) of bytes
        in it; for each row the number of pieces up to and including it.
    """
    cutter, ids = SpecialCutter(list(whole)), list(whole.values())
    data, pieces, row_ends = bytearray(), array("q"), array("q")
    for text in texts:
        for begin, end, which in cutter.cut(text):
            start, part = len(data), text[begin:end]
            if which is not None:
                data += part
                pieces.extend((start, len(data), ids[which]))
                continue
            part = pretokenizer.normalize(part)
            data += part
            for first, last in pretokenizer.spans(part):
                pieces.extend((start + first, start + last, -1))
        row_ends.append(len(pieces) // 3)
    return bytes(data), pieces, row_ends
