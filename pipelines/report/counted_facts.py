"""The contents of counts, read shard by shard."""

from __future__ import annotations

import heapq
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeVar

from bpe._native import add_counts
from bpe.counts.files import counts_table
from pipelines.count.directory import read_counts, read_shard
from pipelines.report.writing_systems import kind_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from bpe.counts.manifest import CountsManifest

_Row = TypeVar("_Row", bound=tuple[Any, ...])
_ROWS = 65536  # read at a time
_TOP = 40


@dataclass(kw_only=True)
class CountedFacts:
    """The contents of counts, of pre-tokens or of runs.

    Attributes:
        directory: the directory of the counts.
        manifest: the manifest; one for all sets of shards.
        is_appended: whether files were appended.
        are_many: whether there are several sets of shards: one pre-token may be in each.
        lengths: occurrences of each length: of a pre-token in bytes, of a run in tokens.
        distinct_lengths: distinct pre-tokens or runs of each length.
        frequencies: for each n: distinct ones that occur 2^n to 2^(n+1) - 1 times, and the
            occurrences of these.
        kinds: for each kind of `kind_of`: distinct pre-tokens, occurrences, bytes of these; empty
            of runs.
        frequent: (occurrences, key of the counts), the most frequent ones first.
        longest: (length, occurrences, key), the longest first.
    """

    directory: str
    manifest: CountsManifest
    is_appended: bool
    are_many: bool
    lengths: Counter[int] = field(default_factory=Counter)
    distinct_lengths: Counter[int] = field(default_factory=Counter)
    frequencies: dict[int, tuple[int, int]] = field(default_factory=dict)
    kinds: dict[str, tuple[int, int, int]] = field(default_factory=dict)
    frequent: list[tuple[int, bytes]] = field(default_factory=list)
    longest: list[tuple[int, int, bytes]] = field(default_factory=list)

    @property
    def id_bytes(self) -> int | None:
        """Return the bytes of each id in a run; None of pre-tokens."""
        return None if self.manifest.runs is None else self.manifest.runs.id_bytes

    @property
    def distinct(self) -> int:
        """Return the number of distinct pre-tokens or runs."""
        return self.distinct_lengths.total()

    def add(self, keys: list[bytes], counts: list[int]) -> None:
        """Add some keys and their counts; no key may be added twice."""
        sizes = [len(key) // (self.id_bytes or 1) for key in keys]
        self.frequent = _top(self.frequent, zip(counts, keys, strict=True))
        self.longest = _top(self.longest, zip(sizes, counts, keys, strict=True))
        for key, count, size in zip(keys, counts, sizes, strict=True):
            self.lengths[size] += count
            self.distinct_lengths[size] += 1
            power = count.bit_length() - 1
            distinct, times = self.frequencies.get(power, (0, 0))
            self.frequencies[power] = (distinct + 1, times + count)
            if self.id_bytes is None:
                kind = kind_of(key)
                distinct, times, bytes_ = self.kinds.get(kind, (0, 0, 0))
                self.kinds[kind] = (distinct + 1, times + count, bytes_ + count * size)


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
