"""The contents of counts, read shard by shard."""

from __future__ import annotations

import heapq
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from bpe._native import add_counts
from bpe.counts.files import counts_table
from pipelines.count.directory import read_counts, read_shard
from pipelines.report.writing_systems import kind_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from bpe.counts.manifest import CountsManifest

_Row = TypeVar("_Row", bound=tuple[Any, ...])
_Group = TypeVar("_Group", int, str)
_ROWS = 65536  # read at a time
_TOP = 40


class Sums(NamedTuple):
    """Sums over some pre-tokens, runs or tokens.

    Attributes:
        distinct: how many there are.
        times: their occurrences.
        bytes: the bytes, or tokens of runs, of all occurrences.
        unused: how many of them do not occur.
    """

    distinct: int = 0
    times: int = 0
    bytes: int = 0
    unused: int = 0


def add_to_sums(
    sums: dict[_Group, Sums], groups: Iterable[_Group], counts: Iterable[int], sizes: Iterable[int]
) -> dict[_Group, Sums]:
    """Add the occurrences and sizes of some keys to the sums of their groups; return all sums."""
    for group, count, size in zip(groups, counts, sizes, strict=True):
        distinct, times, bytes_, unused = sums.get(group, (0, 0, 0, 0))
        sums[group] = Sums(distinct + 1, times + count, bytes_ + count * size, unused + (not count))
    return sums


@dataclass(kw_only=True)
class CountedFacts:
    """The contents of counts, of pre-tokens or of runs.

    Attributes:
        directory: the directory of the counts.
        manifest: the manifest; one for all sets of shards.
        is_appended: whether files were appended.
        are_many: whether there are several sets of shards: one pre-token may be in each.
        lengths: by length: of a pre-token in bytes, of a run in tokens.
        powers: by n of those that occur 2^n to 2^(n+1) - 1 times.
        kinds: by the kind of `kind_of`; empty of runs.
        frequent: (occurrences, key of the counts), the most frequent ones first.
        longest: (length, occurrences, key), the longest first.
    """

    directory: str
    manifest: CountsManifest
    is_appended: bool
    are_many: bool
    lengths: dict[int, Sums] = field(default_factory=dict)
    powers: dict[int, Sums] = field(default_factory=dict)
    kinds: dict[str, Sums] = field(default_factory=dict)
    frequent: list[tuple[int, bytes]] = field(default_factory=list)
    longest: list[tuple[int, int, bytes]] = field(default_factory=list)

    @property
    def id_bytes(self) -> int | None:
        """Return the bytes of each id in a run; None of pre-tokens."""
        return None if self.manifest.runs is None else self.manifest.runs.id_bytes

    @property
    def distinct(self) -> int:
        """Return the number of distinct pre-tokens or runs."""
        return sum(one.distinct for one in self.lengths.values())

    def add(self, keys: list[bytes], counts: list[int]) -> None:
        """Add some keys and their counts; no key may be added twice."""
        sizes = [len(key) // (self.id_bytes or 1) for key in keys]
        self.frequent = _top(self.frequent, zip(counts, keys, strict=True))
        self.longest = _top(self.longest, zip(sizes, counts, keys, strict=True))
        add_to_sums(self.lengths, sizes, counts, sizes)
        add_to_sums(self.powers, [count.bit_length() - 1 for count in counts], counts, sizes)
        if self.id_bytes is None:
            add_to_sums(self.kinds, map(kind_of, keys), counts, sizes)


def _top(rows: list[_Row], more: Iterable[_Row]) -> list[_Row]:
    """Return the greatest rows among the previous rows and some more rows."""
    return heapq.nlargest(_TOP, [*rows, *heapq.nlargest(_TOP, more)])


def read_counted_facts(directory: str, *, advance: Callable[[int, int], object]) -> CountedFacts:
    """Read counts, one shard after the other.

    Args:
        directory: the directory of the counts.
        advance: called after each shard with the number of shards read, and of all.

    Raises:
        bpe.errors.CountsError: a part is missing, damaged, or differs from the manifest.
    """
    counts = read_counts(directory)
    facts = CountedFacts(
        directory=directory,
        manifest=counts.manifest,
        is_appended=bool(counts.appended),
        are_many=len(counts.sets) > 1 or counts.grouped is not None,
    )
    shards = counts.shards
    for shard, files in enumerate(shards):
        table = counts_table(add_counts(read_shard(files, shard, len(shards))))
        table = table.select(["pretoken", "count"])
        for batch in table.to_batches(max_chunksize=_ROWS):
            facts.add(*(column.to_pylist() for column in batch.columns))
        advance(shard + 1, len(shards))
    return facts
