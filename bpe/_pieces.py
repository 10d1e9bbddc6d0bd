"""Texts cut in Python: at tokens that stay whole, into what the core cuts or takes as it is."""

from __future__ import annotations

from array import array
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

import pyarrow as pa

from bpe._arrow import text_column
from bpe._native import Counter
from bpe.normalize import normalize_column
from bpe.special import SpecialCutter

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from bpe.pretokenize import Pretokenizer

_TEXT, _WHOLE = -1, -2  # as the core knows them

Part = tuple[bytes, int]
"""Text, and what it is: the id of a whole token, text, or a pre-token that is never split."""


class Pieces(NamedTuple):
    """Texts as the core's ``encode_pieces`` takes them.

    Attributes:
        data: all texts in one, normalized.
        pieces: int64 triples (begin, end, what) of bytes in it, where what is the id of a whole
            token, -1 for text, or -2 for a pre-token that is never split.
        row_ends: for each row the number of pieces up to and including it.
        cut: whether text is still to be cut into pre-tokens.
    """

    data: bytes
    pieces: array[int]
    row_ends: array[int]
    cut: bool


def cut_texts(
    texts: pa.LargeBinaryArray, *, pretokenizer: Pretokenizer, whole: Mapping[bytes, int]
) -> Pieces:
    """Cut texts at whole tokens, normalize what lies between, and cut it as far as need be.

    Args:
        texts: the rows.
        pretokenizer: how what lies between whole tokens is normalized and cut; what the core can
            do of that is left to it.
        whole: the tokens that are cut out first, with their ids.
    """
    rows = _normalized(_cut_at_tokens(texts.to_pylist(), whole), pretokenizer)
    cut = pretokenizer.name is not None
    if pretokenizer.never_split and cut:
        parts = [_cut_at_wholes(row, pretokenizer) for row in rows]
        rest = [text for row in parts for text, what in row if what == _TEXT]
        # A piece may match alone what it does not match beside its neighbours; hardly any does.
        cut = not _holds_whole(rest, pretokenizer)
        rows = parts if cut else rows
    if not cut:
        known: dict[bytes, int] = {}
        rows = [_pretokens(row, pretokenizer, known) for row in rows]
    pieces, row_ends = array("q"), array("q")
    end = 0
    for row in rows:
        for text, what in row:
            pieces.extend((end, end + len(text), what))
            end += len(text)
        row_ends.append(len(pieces) // 3)
    data = b"".join(text for row in rows for text, _ in row)
    return Pieces(data, pieces, row_ends, cut)


def _cut_at_tokens(texts: Iterable[bytes], whole: Mapping[bytes, int]) -> list[list[Part]]:
    """Rows as whole tokens and text."""
    cutter, ids = SpecialCutter(list(whole)), list(whole.values())
    return [
        [
            (text[begin:end], _TEXT if which is None else ids[which])
            for begin, end, which in cutter.cut(text)
        ]
        for text in texts
    ]


def _normalized(rows: list[list[Part]], pretokenizer: Pretokenizer) -> list[list[Part]]:
    """The rows with their text normalized as one column: most columns need no change."""
    if not pretokenizer.normalizer:
        return rows
    texts = [text for row in rows for text, what in row if what == _TEXT]
    column = normalize_column(pa.array(texts, pa.large_binary()), pretokenizer.normalizer)
    normal = iter(column.cast(pa.large_binary()).to_pylist())
    return [[(next(normal) if what == _TEXT else text, what) for text, what in row] for row in rows]


def _cut_at_wholes(row: list[Part], pretokenizer: Pretokenizer) -> list[Part]:
    """A row with its text cut where a pattern matches that is never split."""

    def parts() -> Iterator[Part]:
        for text, what in row:
            position = 0
            if what == _TEXT:
                for begin, end in pretokenizer.whole_spans(text):
                    yield text[position:begin], _TEXT
                    yield text[begin:end], _WHOLE
                    position = end
            yield text[position:], what

    return [(text, what) for text, what in parts() if text]


def _holds_whole(texts: list[bytes], pretokenizer: Pretokenizer) -> bool:
    """Whether one of the pre-tokens of texts is never split."""
    counter = Counter(pretokenizer.name or "", [], False)
    counter.add(text_column(pa.array(texts, pa.large_binary())))
    (run,) = counter.drain(1)
    ends = memoryview(run.offsets).cast("q").tolist()
    data = bytes(memoryview(run.data))
    return any(pretokenizer.is_whole(data[begin:end]) for begin, end in pairwise(ends))


def _pretokens(row: list[Part], pretokenizer: Pretokenizer, known: dict[bytes, int]) -> list[Part]:
    """A row with its text cut into pre-tokens; ``known`` remembers which are never split."""
    parts: list[Part] = []
    for text, what in row:
        if what != _TEXT:
            parts.append((text, what))
            continue
        for begin, end in pretokenizer.spans(text):
            pretoken = text[begin:end]
            if pretoken not in known:
                known[pretoken] = _WHOLE if pretokenizer.is_whole(pretoken) else _TEXT
            parts.append((pretoken, known[pretoken]))
    return parts
