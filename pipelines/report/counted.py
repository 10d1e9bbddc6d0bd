"""What is in counts: how long pre-tokens are, how often they occur, and of what they are."""

from __future__ import annotations

import heapq
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq

from pipelines.errors import InputError
from pipelines.files import storage
from pipelines.files.storage import join
from pipelines.report.kinds import kind_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from bpe.counts import PretokenCounts
    from bpe.counts.manifest import CountsManifest

_ROWS = 65536  # read at a time
_TOP = 40


@dataclass(kw_only=True)
class CountedFacts:
    """What the counts hold.

    Attributes:
        lengths: for each length in bytes: distinct pre-tokens, occurrences.
        frequencies: for each n: distinct pre-tokens that occur 2^n to 2^(n+1) - 1 times, and the
            occurrences of these.
        kinds: for each kind of `kind_of`: distinct pre-tokens, occurrences, bytes of these.
        frequent: (occurrences, pre-token), the most frequent ones first.
        longest: (length in bytes, occurrences, pre-token), the longest first.
    """

    lengths: Counter[int] = field(default_factory=Counter)
    distinct_lengths: Counter[int] = field(default_factory=Counter)
    frequencies: dict[int, tuple[int, int]] = field(default_factory=dict)
    kinds: dict[str, tuple[int, int, int]] = field(default_factory=dict)
    frequent: list[tuple[int, bytes]] = field(default_factory=list)
    longest: list[tuple[int, int, bytes]] = field(default_factory=list)

    @property
    def distinct(self) -> int:
        """How many distinct pre-tokens there are."""
        return self.distinct_lengths.total()

    def add(self, pretokens: list[bytes], counts: list[int]) -> None:
        """Take some pre-tokens in, of which none came before."""
        self._best_of(pretokens, counts)
        for pretoken, count in zip(pretokens, counts, strict=True):
            size = len(pretoken)
            self.lengths[size] += count
            self.distinct_lengths[size] += 1
            power = count.bit_length() - 1
            distinct, times = self.frequencies.get(power, (0, 0))
            self.frequencies[power] = (distinct + 1, times + count)
            kind = kind_of(pretoken)
            distinct, times, bytes_ = self.kinds.get(kind, (0, 0, 0))
            self.kinds[kind] = (distinct + 1, times + count, bytes_ + count * size)

    def _best_of(self, pretokens: list[bytes], counts: list[int]) -> None:
        """Keep the most frequent and the longest of these and those before."""
        frequent = heapq.nlargest(_TOP, zip(counts, pretokens, strict=True))
        self.frequent = heapq.nlargest(_TOP, [*self.frequent, *frequent])
        sized = zip(map(len, pretokens), counts, pretokens, strict=True)
        self.longest = heapq.nlargest(_TOP, [*self.longest, *heapq.nlargest(_TOP, sized)])


def counted_facts(counts: PretokenCounts) -> CountedFacts:
    """What counts in memory hold."""
    facts = CountedFacts()
    for first in range(0, len(counts), _ROWS):
        columns = (one.slice(first, _ROWS) for one in (counts.pretokens, counts.counts))
        facts.add(*(column.to_pylist() for column in columns))
    return facts


def read_counted_facts(
    directory: str, manifest: CountsManifest, *, advance: Callable[[int, int], object]
) -> CountedFacts:
    """Read all counts, some rows at a time: memory does not grow with them.

    Args:
        directory: of the counts.
        manifest: its manifest.
        advance: told after each part how many of how many are read.

    Raises:
        InputError: a part is missing or damaged.
    """
    facts = CountedFacts()
    for done, part in enumerate(manifest.parts):
        advance(done, len(manifest.parts))
        path = join(directory, part.file)
        try:
            with storage.open_binary(path) as source:
                for batch in pq.ParquetFile(source).iter_batches(
                    _ROWS, columns=["pretoken", "count"]
                ):
                    facts.add(*(column.to_pylist() for column in batch.columns))
        except (pa.ArrowException, OSError, ValueError, TypeError) as error:
            said = " ".join(str(error).split())
            raise InputError(f"{path}: damaged: {said}: check it with bpe verify") from error
    advance(len(manifest.parts), len(manifest.parts))
    return facts
