"""Dropping rare pre-tokens, and what there is to say about those that were dropped."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from bpe._native import prune_run
from bpe.errors import CountsError

if TYPE_CHECKING:
    from bpe._native import CountRun

_MAX_COUNT = 2**63 - 1
_PAIRS = 1 << 16


@dataclass(frozen=True, kw_only=True)
class Pruned:
    """What counts lost to pruning, in the units of the counts.

    Where counts are added, so are these: upper bounds, for a pre-token can be dropped on both
    sides, and two pairs can be the most frequent ones. From one pruning they are exact.

    Attributes:
        below: pre-tokens that were counted fewer times were dropped; where counts with different
            limits were added, the greater one.
        distinct_pretokens: how many were dropped.
        occurrences: how often they occurred, taken together.
        bytes: of their occurrences.
        max_pair: what any two adjacent bytes can have lost: the greatest count of a pair of bytes
            over the dropped pre-tokens, at every position.
        max_end: what the end of words that end in the same byte can have lost.
    """

    below: int
    distinct_pretokens: int
    occurrences: int
    bytes: int
    max_pair: int
    max_end: int

    def __post_init__(self) -> None:
        for name, value in asdict(self).items():
            if value < 0:
                raise CountsError(f"pruned: {name} is negative: {value}")

    def __add__(self, other: Pruned) -> Pruned:
        sums = {name: value + getattr(other, name) for name, value in asdict(self).items()}
        return Pruned(**sums | {"below": max(self.below, other.below)})

    def __mul__(self, times: int) -> Pruned:
        products = {name: value * times for name, value in asdict(self).items()}
        return Pruned(**products | {"distinct_pretokens": self.distinct_pretokens})


@dataclass(frozen=True)
class Losses:
    """What a run, or several of one corpus, lost to pruning; those of several runs add up.

    Attributes:
        distinct_pretokens: how many were dropped.
        occurrences: how often they occurred, taken together.
        bytes: of their occurrences.
        at: int64 numbers: how often each pair of bytes occurred (65,536), each last byte (256).
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
        """The same for a manifest."""
        return Pruned(
            below=below,
            distinct_pretokens=self.distinct_pretokens,
            occurrences=self.occurrences,
            bytes=self.bytes,
            max_pair=pc.max(self.at[:_PAIRS]).as_py(),
            max_end=pc.max(self.at[_PAIRS:]).as_py(),
        )


def prune(run: CountRun, below: int) -> tuple[CountRun, Losses]:
    """The pre-tokens of a run that occur at least ``below`` times, and what the others were.

    Raises:
        CountsError: ``below`` is not positive, or a number passes 2^63 - 1.
    """
    if type(below) is not int or below < 1:
        raise CountsError(f"pre-tokens are pruned below a count of 1 or more, not {below!r}")
    try:
        kept, rows, occurrences, size, at = prune_run(run, min(below, _MAX_COUNT))
    except OverflowError as error:
        raise CountsError(str(error)) from error
    numbers = pa.Int64Array.from_buffers(pa.int64(), _PAIRS + 256, [None, pa.py_buffer(at)])
    return kept, Losses(rows, occurrences, size, numbers)
