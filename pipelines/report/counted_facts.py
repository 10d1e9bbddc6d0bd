"""The contents of counts, read in bounded memory."""

from __future__ import annotations

import heapq
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeVar

from bpe.counts.files import counts_table
from pipelines.encode.parts import opened
from pipelines.parquet_writer import batches_of
from pipelines.report.writing_systems import kind_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    import pyarrow as pa

    from bpe.counts import PretokenCounts, Runs
    from bpe.counts.manifest import CountsManifest

_Row = TypeVar("_Row", bound=tuple[Any, ...])
_ROWS = 65536  # read at a time
_TOP = 40
_COLUMNS = ["pretoken", "count"]


@dataclass(kw_only=True)
class CountedFacts:
    """The contents of counts, of pre-tokens or of runs.

    Attributes:
        id_bytes: of each id in a run; None of pre-tokens.
        lengths: occurrences of each length: of a pre-token in bytes, of a run in tokens.
        distinct_lengths: distinct pre-tokens or runs of each length.
        frequencies: for each n: distinct ones that occur 2^n to 2^(n+1) - 1 times, and the
            occurrences of these.
        kinds: for each kind of `kind_of`: distinct pre-tokens, occurrences, bytes of these; empty
            of runs.
        frequent: (occurrences, key of the counts), the most frequent ones first.
        longest: (length, occurrences, key), the longest first.
    """

    id_bytes: int | None = None
    lengths: Counter[int] = field(default_factory=Counter)
    distinct_lengths: Counter[int] = field(default_factory=Counter)
    frequencies: dict[int, tuple[int, int]] = field(default_factory=dict)
    kinds: dict[str, tuple[int, int, int]] = field(default_factory=dict)
    frequent: list[tuple[int, bytes]] = field(default_factory=list)
    longest: list[tuple[int, int, bytes]] = field(default_factory=list)

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


def counted_facts(batches: Iterable[pa.RecordBatch], runs: Runs | None) -> CountedFacts:
    """Return the contents of counts.

    Args:
        batches: their rows, with the columns ``pretoken`` and ``count``.
        runs: how the counted runs were found; None if the counts are of pre-tokens.
    """
    facts = CountedFacts(id_bytes=None if runs is None else runs.id_bytes)
    for batch in batches:
        facts.add(*(column.to_pylist() for column in batch.columns))
    return facts


def batches_of_memory(counts: PretokenCounts) -> list[pa.RecordBatch]:
    """Return counts in memory in batches of rows."""
    table = counts_table(counts.sorted_counts).select(_COLUMNS)
    return list(table.to_batches(max_chunksize=_ROWS))


def read_batches(
    directory: str, manifest: CountsManifest, *, advance: Callable[[int, int], object]
) -> Iterator[pa.RecordBatch]:
    """Read all counts in batches of rows, so that memory is bounded.

    Args:
        directory: the directory of the counts.
        manifest: the manifest of the counts.
        advance: called after each part with the number of parts read, and of all.

    Raises:
        InputError: a part is missing, damaged, or differs from the manifest.
    """
    for done, part in enumerate(manifest.parts):
        advance(done, len(manifest.parts))
        with opened(directory, part) as file:
            yield from batches_of(file, _ROWS, columns=_COLUMNS)
    advance(len(manifest.parts), len(manifest.parts))
