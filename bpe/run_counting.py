"""Counting runs of tokens, from which superwords are learnt."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import regex

from bpe._arrow import text_column
from bpe._native import Counter, Encoder, SortedCounts, TextColumn
from bpe.core_encoder import make_encoder
from bpe.counting import count_blocks
from bpe.counts.pretokens import PretokenCounts
from bpe.counts.runs import CutRuns, Runs
from bpe.errors import CountsError
from bpe.models import ByteLevel
from bpe.regex.search import TimedSearch
from bpe.segments import TextCutter
from bpe.tokenizer import Tokenizer

_ID = (1 << 30) - 1  # the bits of an id, below its mark

_Array: TypeAlias = npt.NDArray[Any]

MERGE_PATTERN = r"\p{L}"
"""By default, runs consist of tokens that hold a letter."""


def count_runs(
    texts: Iterable[str | bytes] | pa.Array | pa.ChunkedArray,
    *,
    tokenizer: Tokenizer,
    merge_pattern: str = MERGE_PATTERN,
    max_run: int | None = None,
) -> PretokenCounts:
    """Count the runs of tokens in texts; each text is one document.

    A run is the longest sequence of two or more pre-tokens that follow each other, where each is
    one token that also encodes to itself as a text of its own, and that ``merge_pattern`` matches
    somewhere. Documents, special and added tokens, and matches that are never split end a run.
    ("Faster Superword Tokenization", arXiv 2604.05192, section 3.)

    Args:
        texts: as for :func:`bpe.count_pretokens`.
        tokenizer: byte-level, without superwords. All of its special tokens are cut out of texts.
        merge_pattern: a regular expression of ``regex``, searched for in each token.
        max_run: longer runs are cut into consecutive pieces of so many tokens; a last piece of one
            token is left out. The pairs at the cuts are not counted; ``cut`` of the counts says
            what that may change. None for no limit.

    Returns:
        Counts whose keys are ids, as :class:`bpe.counts.Runs` says; their ``totals.pretokens`` are
        the occurrences of runs.

    Raises:
        CountsError: the tokenizer, the pattern or the limit is unsuitable, or a text is null, or
            not a str or bytes.
        EncodingError: a str has a lone surrogate.

    Example:
        >>> import bpe
        >>> words = bpe.train(bpe.count_pretokens(["to be or not"] * 2), max_merges=20)
        >>> runs = bpe.count_runs(["to be or not to be", "to be"], tokenizer=words)
        >>> [(len(key) // runs.runs.id_bytes, count) for key, count in runs.items()]
        [(2, 1), (4, 1)]
    """
    counter = RunCounter(tokenizer, merge_pattern=merge_pattern, max_run=max_run)
    totals = count_blocks(texts, lambda block, _: counter.add(block))
    counts, *pairs = counter.drain(1)
    return PretokenCounts(
        sorted_counts=counts,
        pretokenizer=tokenizer.pretokenizer,
        special_tokens=tuple(tokenizer.special_tokens),
        totals=totals,
        runs=counter.runs,
        cut=CutRuns.of(pairs[0]) if pairs else None,
    )


class RunCounter:
    """Counts runs, and drains them as `bpe.counting.PretokenCounter` does.

    The caller bounds memory: check ``nbytes`` between blocks, and drain. Threads may share a
    counter; they take turns.

    Args:
        tokenizer: whose tokens runs consist of.
        merge_pattern: as for :func:`count_runs`.
        max_run: as for :func:`count_runs`.

    Raises:
        CountsError: the tokenizer, the pattern or the limit is unsuitable.
    """

    def __init__(
        self,
        tokenizer: Tokenizer,
        *,
        merge_pattern: str = MERGE_PATTERN,
        max_run: int | None = None,
    ) -> None:
        self.runs = runs_of(tokenizer, merge_pattern=merge_pattern, max_run=max_run)
        self._cutter = TextCutter(tokenizer.pretokenizer, flags=tokenizer.token_flags)
        cut_out = tokenizer.parts.cut_tokens
        self._cut_out = {content.encode(): id_ for content, id_ in cut_out.items()}
        self._encoder = _marking_encoder(tokenizer, merge_pattern)
        self._counter, self._pairs = (
            Counter(pretokenizer=["none"], special_tokens=[], track_order=False) for _ in range(2)
        )

    def __len__(self) -> int:
        """Distinct runs since the last drain."""
        return len(self._counter)

    @property
    def nbytes(self) -> int:
        """Bytes of memory for the counts; while they grow, half as much again."""
        return self._counter.nbytes + self._pairs.nbytes

    def add(self, texts: pa.Array) -> int:
        """Count the runs of a block of documents; the block boundaries do not matter.

        Args:
            texts: string, large_string, binary or large_binary without nulls.

        Returns:
            The number of runs in the texts.

        Raises:
            EncodingError: a pre-token has 2^32 - 1 bytes or more.
            PatternTimeoutError: a pattern backtracks too long on a text; then none is counted.
            TypeError: the texts are of another type.
            ValueError: a text is null.
        """
        column = text_column(texts)
        flat, ends, *_ = self._cutter.encode(
            self._encoder, column, lambda: texts.cast(pa.large_binary()), self._cut_out
        )
        ids = np.frombuffer(memoryview(flat), np.uint32)
        return self._add_runs(ids, np.frombuffer(memoryview(ends), np.int64)[:-1])

    def _add_runs(self, ids: _Array, rows: _Array) -> int:
        """Count the runs of encoded texts, and return how many they are.

        Args:
            ids: with a mark on each pre-token that is an eligible token.
            rows: where each text begins.
        """
        marked = ids > _ID
        joined = np.zeros(len(ids), np.bool_)  # each to the one before
        np.logical_and(marked[1:], marked[:-1], out=joined[1:])
        joined[rows[rows < len(ids)]] = False
        in_run = joined.copy()
        in_run[:-1] |= joined[1:]
        in_runs = (ids[in_run] & _ID).astype("<u2" if self.runs.id_bytes == 2 else "<u4")
        begins = np.flatnonzero(~joined[in_run])
        sizes = np.diff(begins, append=len(in_runs))
        if (most := self.runs.max_run) is not None:
            # A pair begins at each token of a long run but its last one.
            is_first = np.repeat(sizes > most, sizes)
            is_first[begins + sizes - 1] = False
            first = np.flatnonzero(is_first)
            self._count(
                self._pairs, in_runs[np.stack([first, first + 1], axis=1)], np.full(len(first), 2)
            )
            pieces = -(-sizes // most)
            within = np.arange(pieces.sum()) - np.repeat(np.cumsum(pieces) - pieces, pieces)
            sizes = np.minimum(np.repeat(sizes, pieces) - within * most, most)
            is_run = sizes > 1
            in_runs, sizes = in_runs[np.repeat(is_run, sizes)], sizes[is_run]
        self._count(self._counter, in_runs, sizes)
        return len(sizes)

    def _count(self, counter: Counter, ids: _Array, sizes: _Array) -> None:
        """Count sequences of ids, of these sizes."""
        ends = np.concatenate([[0], np.cumsum(sizes, dtype=np.int64)]) * self.runs.id_bytes
        counter.add(TextColumn(ids.tobytes(), ends.data, 8, 0, len(sizes)))

    def drain(self, shards: int) -> list[SortedCounts]:
        """Sorted counts for each shard; the counter is empty afterwards.

        Where long runs are cut, one run more, for :meth:`bpe.counts.CutRuns.of`: the counts of the
        pairs of tokens in these.
        """
        pairs = [] if self.runs.max_run is None else self._pairs.drain(1)
        return [*self._counter.drain(shards), *pairs]


def runs_of(tokenizer: Tokenizer, *, merge_pattern: str, max_run: int | None) -> Runs:
    """Return the description of counts of runs.

    Raises:
        CountsError: the tokenizer, the pattern or the limit is unsuitable.
    """
    if not isinstance(tokenizer.model, ByteLevel):
        raise CountsError(
            f"runs are of byte-level tokens, the tokenizer's are {type(tokenizer.model).__name__}: "
            "train one with ByteLevel()"
        )
    if tokenizer.superwords:
        raise CountsError(
            "the tokenizer has superwords already: count runs with the tokenizer of words that "
            "they were learnt from"
        )
    try:
        regex.compile(merge_pattern)
    except (regex.error, TypeError) as error:
        raise CountsError(
            f"the merge pattern {merge_pattern!r:.60} does not compile: {error}"
        ) from None
    return Runs(
        tokenizer=tokenizer.text_sha256,
        merge_pattern=merge_pattern,
        max_run=max_run,
        id_bytes=2 if tokenizer.max_id < 1 << 16 else 4,
    )


def _eligible_marks(tokenizer: Tokenizer, merge_pattern: str) -> bytes:
    """Return a byte for each id: 1 for those of the tokens that runs consist of.

    Args:
        tokenizer: of words.
        merge_pattern: a regular expression, searched for in each token; a byte that is not part of
            well-formed UTF-8 is neither letter, number, mark nor space.

    Raises:
        PatternTimeoutError: it backtracks too long on a token.
    """
    search = regex.compile(merge_pattern).search

    def is_searched(token: bytes) -> bool:
        text = token.decode("utf-8", "surrogateescape")
        return TimedSearch(len(token)).run(merge_pattern, partial(search, text)) is not None

    special = {*tokenizer.special_tokens.values(), *tokenizer.added_tokens.values()}
    tokens = {
        id_: token
        for id_, token in enumerate(tokenizer.tokens)
        if token is not None and id_ not in special and is_searched(token)
    }
    encoded = tokenizer.encode_batch(pa.array(list(tokens.values()), pa.large_binary()))
    marks = bytearray(tokenizer.max_id + 1)
    for id_, ids in zip(tokens, encoded, strict=True):
        marks[id_] = ids == [id_]
    return bytes(marks)


def _marking_encoder(tokenizer: Tokenizer, merge_pattern: str) -> Encoder:
    """Return the core's encoder that marks eligible tokens; the tokenizer keeps it."""
    encoders: dict[str, Encoder] = vars(tokenizer).setdefault("_marking_encoders", {})
    if merge_pattern not in encoders:
        marks = _eligible_marks(tokenizer, merge_pattern)
        encoders[merge_pattern] = make_encoder(tokenizer.parts, marks=marks)
    return encoders[merge_pattern]
