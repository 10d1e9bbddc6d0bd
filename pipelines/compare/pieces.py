"""Where tokenizers differ: pieces of text that all of them cut out, with the tokens of each.

Tokenizers cut text in different places. What lies between two places where all of them cut is a
piece that each encodes by itself; counted like pre-tokens, pieces say which of them make the
difference, exactly and in the memory of a count.
"""

from __future__ import annotations

import heapq
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from bpe._native import scan
from bpe.counts.files import run_from_ipc, run_table
from bpe.errors import UnknownCharacterError
from bpe.pretokenize import Pretokenizer
from bpe.visible import visible

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from bpe import Tokenizer
    from bpe.counter import PretokenCounter

_ROWS = 1 << 16  # pieces that are encoded at a time
WHOLE = Pretokenizer("none")


class PieceCutter:
    """Cuts texts where all of some pre-tokenizers cut them.

    One that normalizes text first, or does not cut at all, has no say; where none has, the cuts
    are those of GPT-2.

    Attributes:
        counted: how pieces are to be counted: the pre-tokenizer that all have in common, or the
            one that takes each piece as it is.
    """

    def __init__(self, pretokenizers: Iterable[Pretokenizer]) -> None:
        heard = {str(one): one for one in pretokenizers if not one.normalizer and one != WHOLE}
        self._cuts = tuple(heard.values()) or (Pretokenizer("gpt2"),)
        self.counted = self._cuts[0] if len(self._cuts) == 1 else WHOLE

    def add(self, texts: pa.Array, counts: PretokenCounter) -> None:
        """Count the pieces of some texts (large_string or large_binary without nulls)."""
        if len(self._cuts) == 1:
            counts.add(texts)
        elif len(texts):
            counts.add(self.pieces(texts))

    def pieces(self, texts: pa.Array) -> pa.LargeBinaryArray:
        """The pieces of some texts, in order; put together they are the texts."""
        _, offsets, data = texts.buffers()
        begins = np.frombuffer(offsets, np.int64)[texts.offset : texts.offset + len(texts) + 1]
        view = memoryview(data) if data is not None else memoryview(b"")
        bounds = [begins[:1]]
        for begin, end in zip(begins[:-1].tolist(), begins[1:].tolist(), strict=True):
            if end > begin:
                bounds.append(self._ends(bytes(view[begin:end])) + begin)
        joined = np.ascontiguousarray(np.concatenate(bounds), np.int64)
        return pa.LargeBinaryArray.from_buffers(
            pa.large_binary(), len(joined) - 1, [None, pa.py_buffer(joined), data]
        )

    def _ends(self, text: bytes) -> np.ndarray[Any, Any]:
        """Where the pieces of a text end, ascending; the last is its length."""
        ends = _cut_places(self._cuts[0], text)
        for one in self._cuts[1:]:
            ends = np.intersect1d(ends, _cut_places(one, text), assume_unique=True)
        return ends


def _cut_places(pretokenizer: Pretokenizer, text: bytes) -> np.ndarray[Any, Any]:
    """Where pre-tokens begin or end, without 0, and the length of the text."""
    if pretokenizer.scheme:
        spans = np.frombuffer(memoryview(scan(pretokenizer.scheme, text)), np.int64)
    else:
        spans = np.array(pretokenizer.spans(text), np.int64).ravel()
    places = np.unique(np.append(spans, len(text)))
    return places[places > 0]


@dataclass(frozen=True, kw_only=True)
class Example:
    """A piece of which two tokenizers make different numbers of tokens.

    Attributes:
        piece: its bytes.
        count: how often it occurs.
        more: tokens that the second makes of it beyond those of the first; negative where fewer.
    """

    piece: bytes
    count: int
    more: int

    @property
    def effect(self) -> tuple[int, bytes]:
        """The order of examples: the least is the greatest total difference."""
        return -abs(self.count * self.more), self.piece


@dataclass(frozen=True, kw_only=True)
class Difference:
    """How the tokens of two tokenizers differ over some pieces.

    Attributes:
        fewer: occurrences of pieces of which the second makes fewer tokens.
        more: of which it makes more.
        same: of which it makes as many.
        examples: the pieces that make the greatest difference, that one first.
    """

    fewer: int = 0
    more: int = 0
    same: int = 0
    examples: tuple[Example, ...] = ()

    def joined(self, other: Difference, examples: int) -> Difference:
        """Both together, with so many examples."""
        both = (*self.examples, *other.examples)
        return Difference(
            fewer=self.fewer + other.fewer,
            more=self.more + other.more,
            same=self.same + other.same,
            examples=tuple(heapq.nsmallest(examples, both, key=lambda one: one.effect)),
        )


def find_differences(
    run: bytes, tokenizers: Sequence[Tokenizer], *, examples: int
) -> list[Difference]:
    """How each further tokenizer differs from the first, over counted pieces.

    Args:
        run: the pieces and how often each occurs, as Arrow IPC bytes; no piece is in two runs.
        tokenizers: that are compared.
        examples: how many to keep.
    """
    table = run_table(run_from_ipc(run))
    found = [Difference()] * (len(tokenizers) - 1)
    for batch in table.to_batches(max_chunksize=_ROWS):
        pieces, counts = batch.column(0), batch.column(1).to_numpy()
        lengths = [_lengths(tokenizer, pieces) for tokenizer in tokenizers]
        for i, of in enumerate(lengths[1:]):
            both = (of >= 0) & (lengths[0] >= 0)
            more = np.where(both, of - lengths[0], 0)
            found[i] = found[i].joined(
                _difference(pieces, counts, more, both, examples=examples), examples
            )
    return found


def _difference(
    pieces: pa.Array,
    counts: np.ndarray[Any, Any],
    more: np.ndarray[Any, Any],
    both: np.ndarray[Any, Any],
    *,
    examples: int,
) -> Difference:
    effect = np.abs(counts * more)
    rows = np.flatnonzero(effect)
    if examples and len(rows) > examples:  # all that are as great as the last one wanted
        least = np.partition(effect[rows], len(rows) - examples)[len(rows) - examples]
        rows = rows[effect[rows] >= least]
    kept = (
        Example(piece=pieces[row].as_py(), count=int(counts[row]), more=int(more[row]))
        for row in (rows.tolist() if examples else ())
    )
    return Difference(
        fewer=int(counts[more < 0].sum()),
        more=int(counts[more > 0].sum()),
        same=int(counts[both & (more == 0)].sum()),
        examples=tuple(heapq.nsmallest(examples, kept, key=lambda one: one.effect)),
    )


def _lengths(tokenizer: Tokenizer, pieces: pa.Array) -> np.ndarray[Any, Any]:
    """How many tokens each piece has; -1 where it has characters without one."""
    try:
        lists = tokenizer.encode_arrow(pieces)
    except UnknownCharacterError as error:
        unknown = np.zeros(len(pieces), bool)
        unknown[list(error.rows)] = True
        known = _lengths(tokenizer, pieces.filter(pa.array(~unknown)))
        lengths = np.full(len(pieces), -1, np.int64)
        lengths[~unknown] = known
        return lengths
    return np.asarray(pc.list_value_length(lists).to_numpy(), np.int64)


def describe_example(example: Example, tokenizers: Sequence[Tokenizer]) -> dict[str, Any]:
    """An example as JSON values, with its tokens in both tokenizers."""
    return {
        "piece": visible(example.piece),
        "count": example.count,
        "more_tokens": example.count * example.more,
        "tokens": [
            [visible(one.token_bytes(id_)) for id_ in islice(one.encode(example.piece), 100)]
            for one in tokenizers
        ],
    }
