"""Pruning: drop rare pre-tokens, and record what was dropped."""

from __future__ import annotations

from dataclasses import asdict, dataclass

import pyarrow as pa
import pyarrow.compute as pc

from bpe._arrow import int64_array
from bpe._native import SortedCounts, prune_run
from bpe.errors import CountsError

MAX_COUNT = 2**63 - 1
_PAIRS = 1 << 16


@dataclass(frozen=True, kw_only=True)
class Pruned:
    """Losses of counts by pruning, in the units of the counts.

    Exact after one pruning. Sums of several are upper bounds: both may have dropped the same
    pre-token, and their most frequent pairs may differ.

    Attributes:
        below: pre-tokens with lower counts were dropped; the greater limit of a sum.
        distinct_pretokens: the number of those dropped.
        occurrences: the sum of their counts.
        bytes: of all occurrences.
        max_pair: the greatest count of a pair of adjacent bytes in them, at every position: what
            any pair can have lost. Of runs: of adjacent ids, which share 65,536 sums; it bounds
            pairs of superwords as `CutRuns.max_pair` does.
        max_end: the same for the last byte and the end of the word; 0 of runs.
    """

    below: int
    distinct_pretokens: int
    occurrences: int
    bytes: int
    max_pair: int
    max_end: int

    def __add__(self, other: Pruned) -> Pruned:
        sums = {name: value + getattr(other, name) for name, value in asdict(self).items()}
        return Pruned(**sums | {"below": max(self.below, other.below)})

    def __mul__(self, times: int) -> Pruned:
        products = {name: value * times for name, value in asdict(self).items()}
        return Pruned(**products | {"distinct_pretokens": self.distinct_pretokens})


@dataclass(frozen=True)
class Losses:
    """Losses by pruning sorted counts; the losses of all shards of a corpus add up.

    Attributes:
        distinct_pretokens: the number of those dropped.
        occurrences: the sum of their counts.
        bytes: of all occurrences.
        at: int64 counts of each pair of bytes (65,536), then of each last byte (256). Of runs:
            each of the 65,536 is the sum for the pairs of ids whose hash it is, and none are last.
    """

    distinct_pretokens: int
    occurrences: int
    bytes: int
    at: pa.Int64Array

    def __add__(self, other: Losses) -> Losses:
        return Losses(
            self.distinct_pretokens + other.distinct_pretokens,
            self.occurrences + other.occurrences,
            self.bytes + other.bytes,
            pc.add_checked(self.at, other.at),
        )

    def pruned(self, below: int) -> Pruned:
        """Return the losses in the form of a manifest."""
        return Pruned(
            below=below,
            distinct_pretokens=self.distinct_pretokens,
            occurrences=self.occurrences,
            bytes=self.bytes,
            max_pair=pc.max(self.at[:_PAIRS]).as_py(),
            max_end=pc.max(self.at[_PAIRS:]).as_py(),
        )


def prune(counts: SortedCounts, below: int, *, id_bytes: int = 0) -> tuple[SortedCounts, Losses]:
    """Return the pre-tokens with counts of at least ``below``, and the losses.

    Args:
        counts: the pre-tokens.
        below: the limit.
        id_bytes: of each id in the keys of runs; 0 for pre-tokens.

    Raises:
        CountsError: ``below`` is not positive, or a number exceeds 2^63 - 1.
    """
    if type(below) is not int or below < 1:
        raise CountsError(f"pre-tokens are pruned below a count of 1 or more, not {below!r}")
    try:
        frequent, rows, occurrences, size, at = prune_run(counts, min(below, MAX_COUNT), id_bytes)
    except OverflowError as error:
        raise CountsError(str(error)) from error
    return frequent, Losses(rows, occurrences, size, int64_array(at))
