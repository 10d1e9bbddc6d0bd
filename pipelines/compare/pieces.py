"""Pieces of text that each of several tokenizers encodes independently of the rest.

Tokenizers cut text at different offsets. The text between two offsets where all of them cut is a
piece. Each tokenizer encodes a piece independently of its surroundings, so the difference on a
corpus is the sum over its pieces. Pieces are counted like pre-tokens, in as much memory.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from bpe._native import scan
from bpe.counts.files import counts_table
from bpe.errors import BadTextsError
from bpe.pretokenizer import Pretokenizer

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from bpe import Tokenizer
    from bpe._native import SortedCounts
    from bpe.counting import PretokenCounter
    from pipelines.encode.rows import Numbers

_ROWS = 1 << 16  # pieces that are encoded at a time
WHOLE = Pretokenizer("none")
_EXAMPLES = pa.schema(
    {"piece": pa.large_binary(), "count": pa.int64(), "more": pa.int64(), "effect": pa.int64()}
)
_ORDER = [("effect", "descending"), ("piece", "ascending")]


class PieceCutter:
    """A cutter of texts where all of several pre-tokenizers cut them.

    A pre-tokenizer that normalizes text first, or does not cut at all, is left out. Where all are
    left out, GPT-2's pre-tokenizer cuts.

    Attributes:
        counted: the pre-tokenizer to count pieces with: the one that all have in common, or one
            that does not cut a piece.
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
        """Return the pieces of some texts, in order; joined, they are the texts."""
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
    """Difference in tokens between two tokenizers, over counted pieces.

    Attributes:
        fewer: occurrences of the pieces that have fewer tokens by the second tokenizer.
        more: occurrences of the pieces that have more tokens by the second.
        same: occurrences of the pieces that have equally many tokens by both.
        examples: the pieces of which the second needs most tokens more or less, over all their
            occurrences; the greatest difference is first.
    """

    fewer: int = 0
    more: int = 0
    same: int = 0
    examples: pa.Table = field(default_factory=_EXAMPLES.empty_table)

    def add(
        self, pieces: pa.Array, counts: Numbers, lengths: tuple[Numbers, Numbers], examples: int
    ) -> None:
        """Add pieces, none of which may be in another call.

        Args:
            pieces: each once.
            counts: the occurrences of each.
            lengths: the tokens of each by both tokenizers; -1 if a tokenizer cannot encode it.
            examples: the number of examples to keep.
        """
        first, second = lengths
        known = (first >= 0) & (second >= 0)
        more = np.where(known, second - first, 0)
        self.fewer += int(counts[more < 0].sum())
        self.more += int(counts[more > 0].sum())
        self.same += int(counts[known & (more == 0)].sum())
        columns = [pieces, pa.array(counts), pa.array(more), pa.array(np.abs(counts * more))]
        found = pa.Table.from_arrays(columns, schema=_EXAMPLES).filter(pc.field("effect") > 0)
        if len(found):
            found = pa.concat_tables([self.examples, found])
            self.examples = found.take(pc.select_k_unstable(found, examples, _ORDER))


def add_differences(
    found: Sequence[Difference],
    counts: SortedCounts,
    tokenizers: Sequence[Tokenizer],
    *,
    examples: int,
) -> None:
    """Add the difference of each further tokenizer from the first, over counted pieces.

    Args:
        found: the difference of each further tokenizer, which is added to.
        counts: pieces and their counts; no piece may be in another call.
        tokenizers: the compared ones.
        examples: the number of examples to keep.
    """
    for batch in counts_table(counts).to_batches(max_chunksize=_ROWS):
        pieces, occurrences = batch.column(0), batch.column(1).to_numpy()
        first, *others = (_lengths(tokenizer, pieces) for tokenizer in tokenizers)
        for difference, lengths in zip(found, others, strict=True):
            difference.add(pieces, occurrences, (first, lengths), examples)


def _lengths(tokenizer: Tokenizer, pieces: pa.Array) -> Numbers:
    """Return the number of tokens of each piece; -1 if it cannot be encoded."""
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
