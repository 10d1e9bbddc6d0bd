"""The pieces of text that several tokenizers encode by themselves, and where they differ on them.

Tokenizers cut text in different places. The text between two places where all of them cut is a
piece that each encodes by itself; counted like pre-tokens, pieces say which of them make the
difference, exactly and in the memory of a count.
"""

from __future__ import annotations

import heapq
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from bpe._native import scan
from bpe.counts.files import counts_from_ipc, counts_table
from bpe.errors import BadTextsError
from bpe.pretokenizer import Pretokenizer

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    import numpy.typing as npt

    from bpe import Tokenizer
    from bpe.counting import PretokenCounter

    Numbers = npt.NDArray[np.int64]

_ROWS = 1 << 16  # pieces that are encoded at a time
WHOLE = Pretokenizer("none")


class PieceCutter:
    """Cuts texts where all of some pre-tokenizers cut them.

    One that normalizes text first, or does not cut at all, has no say; where none has, the cuts
    are those of GPT-2.

    Attributes:
        counted: how pieces are to be counted: the pre-tokenizer that all have in common, or the
            one that does not cut a piece.
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

    def _ends(self, text: bytes) -> Numbers:
        """Return the ends of the pieces of a text, ascending; the last is its length."""
        ends = _cut_places(self._cuts[0], text)
        for one in self._cuts[1:]:
            ends = np.intersect1d(ends, _cut_places(one, text), assume_unique=True)
        return ends


def _cut_places(pretokenizer: Pretokenizer, text: bytes) -> Numbers:
    """Return the boundaries of pre-tokens, without 0, and the length of the text."""
    if native := pretokenizer.native:
        spans = np.frombuffer(memoryview(scan(native, text)), np.int64)
    else:
        spans = np.array(pretokenizer.spans(text), np.int64).ravel()
    ends = np.unique(np.append(spans, len(text)))
    return ends[ends > 0]


@dataclass
class Difference:
    """Differences of the tokens of two tokenizers over some pieces.

    Attributes:
        fewer: occurrences of pieces of which the second makes fewer tokens.
        more: of which it makes more.
        same: of which it makes as many.
        examples: the pieces that make the greatest difference, that one first: how great it is,
            negative; the piece; how often it occurs; how many more tokens the second makes of it.
    """

    fewer: int = 0
    more: int = 0
    same: int = 0
    examples: list[tuple[int, bytes, int, int]] = field(default_factory=list)

    def add(
        self, pieces: pa.Array, counts: Numbers, lengths: tuple[Numbers, Numbers], examples: int
    ) -> None:
        """Take in pieces that came in no other call.

        Args:
            pieces: each once.
            counts: how often each occurs.
            lengths: how many tokens either makes of each; -1 where it cannot encode it.
            examples: how many to keep.
        """
        first, second = lengths
        known = (first >= 0) & (second >= 0)
        more = np.where(known, second - first, 0)
        self.fewer += int(counts[more < 0].sum())
        self.more += int(counts[more > 0].sum())
        self.same += int(counts[known & (more == 0)].sum())
        effect = np.abs(counts * more)
        rows = np.flatnonzero(effect)
        if len(rows) > examples > 0:  # all that are as great as the last one wanted
            least = np.partition(effect[rows], len(rows) - examples)[len(rows) - examples]
            rows = rows[effect[rows] >= least]
        found = (
            (-int(effect[row]), pieces[row].as_py(), int(counts[row]), int(more[row]))
            for row in rows.tolist()
        )
        self.examples = heapq.nsmallest(examples, [*self.examples, *found])


def add_differences(
    found: Sequence[Difference], message: bytes, tokenizers: Sequence[Tokenizer], *, examples: int
) -> None:
    """Add how each further tokenizer differs from the first, over counted pieces.

    Args:
        found: of each further tokenizer.
        message: the pieces and how often each occurs, as Arrow IPC; no piece is in two messages.
        tokenizers: that are compared.
        examples: how many to keep.
    """
    for batch in counts_table(counts_from_ipc(message)).to_batches(max_chunksize=_ROWS):
        pieces, counts = batch.column(0), batch.column(1).to_numpy()
        first, *others = (_lengths(tokenizer, pieces) for tokenizer in tokenizers)
        for difference, lengths in zip(found, others, strict=True):
            difference.add(pieces, counts, (first, lengths), examples)


def _lengths(tokenizer: Tokenizer, pieces: pa.Array) -> Numbers:
    """Return how many tokens each piece has; -1 where it cannot be encoded."""
    try:
        lists = tokenizer.encode_arrow(pieces)
    except BadTextsError as error:
        unknown = np.zeros(len(pieces), bool)
        unknown[list(error.rows)] = True
        known = _lengths(tokenizer, pieces.filter(pa.array(~unknown)))
        lengths = np.full(len(pieces), -1, np.int64)
        lengths[~unknown] = known
        return lengths
    return np.asarray(pc.list_value_length(lists).to_numpy(), np.int64)
