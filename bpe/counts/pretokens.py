"""Counts of pre-tokens: all that training needs of a corpus.

Counts add up: two halves of a corpus, counted apart, give the counts of the corpus.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from math import lcm
from numbers import Integral
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from bpe._arrow import utf8
from bpe._native import SortedCounts, add_counts
from bpe.counts.files import (
    count_items,
    counts_from_ipc,
    counts_from_table,
    counts_table,
    counts_to_ipc,
    read_counts,
    write_counts,
)
from bpe.counts.manifest import CountsManifest, Described, Totals, summed
from bpe.counts.pruning import MAX_COUNT, prune
from bpe.errors import CountsError
from bpe.pretokenizer import Pretokenizer
from bpe.special_tokens import check_special_tokens


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class PretokenCounts(Described):
    """The distinct pre-tokens of a corpus, sorted by their bytes, and how often each occurs.

    Equality ignores ``inputs``, the files that the text came from.

    Attributes:
        sorted_counts: the pre-tokens and their counts as the core holds them.

    Raises:
        CountsError: the fields contradict each other, or the counts add up to over 2^63 - 1.
    """

    sorted_counts: SortedCounts

    def __post_init__(self) -> None:
        check_special_tokens(self.special_tokens)
        try:
            total = self.sorted_counts.total()
        except OverflowError as error:
            raise CountsError(f"{error}: these counts cannot be held in 64 bits") from error
        dropped = self.prune.occurrences if self.prune else 0
        if total + dropped != self.totals.pretokens:
            raise CountsError(
                f"the counts add up to {total}{f' and {dropped} pruned' if dropped else ''}, "
                f"the totals say {self.totals.pretokens} pre-tokens"
            )
        if type(self.scale) is not int or self.scale < 1:
            raise CountsError(f"scale is {self.scale!r}, it must be an int from 1 upwards")
        self._check_runs()
        has_order = self.sorted_counts.documents is not None
        if (self.order_span is not None) != has_order:
            raise CountsError(
                f"order_span is {self.order_span}, but the counts "
                f"{'know' if has_order else 'do not know'} the order"
            )
        if self.order_span is not None and len(self):
            last = pc.max(self.to_table()["first_document"]).as_py()
            if last >= self.order_span:
                raise CountsError(f"a document has place {last}, order_span is {self.order_span}")

    def _check_runs(self) -> None:
        """Check that keys are two ids or more, and that ``cut`` agrees with ``runs.max_run``."""
        is_cut = self.runs is not None and self.runs.max_run is not None
        if is_cut != (self.cut is not None):
            raise CountsError(
                f"runs are cut by max_run, or not, but the counts say cut={self.cut}: count the "
                "runs again"
            )
        if self.runs is None or not len(self):
            return
        width = self.runs.id_bytes
        lengths = pc.binary_length(self.pretokens).to_numpy()
        if (wrong := (lengths % width > 0) | (lengths < 2 * width)).any():
            row = int(wrong.argmax())
            raise CountsError(
                f"row {row} has a key of {lengths[row]} bytes, which is not two ids or more of "
                f"{width} bytes: count the runs again"
            )

    @property
    def pretokens(self) -> pa.LargeBinaryArray:
        """Return the distinct pre-tokens in byte order."""
        return self.to_table()["pretoken"].chunk(0)

    @property
    def counts(self) -> pa.Int64Array:
        """Return the count of each pre-token, at least 1."""
        return self.to_table()["count"].chunk(0)

    def __len__(self) -> int:
        """Return the number of distinct pre-tokens."""
        return len(self.sorted_counts)

    def __repr__(self) -> str:
        unit = f" in units of 1/{self.scale}" if self.scale > 1 else ""
        what = "pre-tokens" if self.runs is None else "runs"
        return (
            f"<PretokenCounts: {len(self):,} distinct of {self.totals.pretokens:,} {what} "
            f"({self.pretokenizer}) in {self.totals.documents:,} documents{unit}>"
        )

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, PretokenCounts):
            return NotImplemented
        mine, its = self.described() | {"inputs": ()}, other.described() | {"inputs": ()}
        return mine == its and self.to_table().equals(other.to_table())

    __hash__ = None  # type: ignore[assignment]  # compares by contents, which can be gigabytes

    def __getstate__(self) -> dict[str, object]:
        return self.described() | {"sorted_counts": counts_to_ipc(self.sorted_counts)}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state, sorted_counts=counts_from_ipc(state["sorted_counts"]))

    def __add__(self, other: PretokenCounts) -> PretokenCounts:
        """Return the counts of both corpora; documents of ``other`` come after those of ``self``.

        Raises:
            CountsError: the corpora were cut differently, only one tracks order, or a count exceeds
                2^63 - 1.
        """
        if not isinstance(other, PretokenCounts):
            return NotImplemented
        return combine([(self, Fraction(1)), (other, Fraction(1))])

    def __mul__(self, times: int) -> PretokenCounts:
        """Return the counts of this corpus repeated ``times`` times.

        Raises:
            CountsError: ``times`` is not positive, or a count exceeds 2^63 - 1.
        """
        if isinstance(times, bool) or not isinstance(times, int):
            return NotImplemented
        if times < 1:
            raise CountsError(f"counts are multiplied by 1 or more, not {times}")
        changed = _changed(
            self.sorted_counts,
            "count",
            pc.multiply_checked,
            times,
            f"{times} times a count passes 2^63 - 1",
        )
        return replace(
            self,
            sorted_counts=changed,
            totals=self.totals * times,
            order_span=None if self.order_span is None else self.order_span * times,
            prune=self.prune and self.prune * times,
            cut=self.cut and self.cut * times,
        )

    __rmul__ = __mul__

    def pruned(self, below: int) -> PretokenCounts:
        """Return the counts without the pre-tokens that occur fewer than ``below`` times.

        ``totals`` stay those of the corpus; ``prune`` has what was dropped.

        Raises:
            CountsError: ``below`` is not positive, or a number exceeds 2^63 - 1.
        """
        limit = below * self.scale if type(below) is int else below
        id_bytes = self.runs.id_bytes if self.runs else 0
        frequent, losses = prune(self.sorted_counts, limit, id_bytes=id_bytes)
        pruned = losses.pruned(limit)
        return replace(
            self, sorted_counts=frequent, prune=self.prune + pruned if self.prune else pruned
        )

    def items(self) -> Iterator[tuple[bytes, int]]:
        """Return each pre-token with its count, in byte order."""
        return count_items(self.sorted_counts)

    def first_seen_rows(self) -> pa.Array:
        """Return the row numbers in the order in which the pre-tokens occur first in the corpus.

        Raises:
            CountsError: order is not tracked.
        """
        if self.order_span is None:
            raise CountsError("these counts do not track order: count with `track_order`")
        order = [("first_document", "ascending"), ("first_position", "ascending")]
        return pc.sort_indices(self.to_table(), sort_keys=order)

    def to_table(self) -> pa.Table:
        """Return ``pretoken``, ``count``; with order, ``first_document`` and ``first_position``."""
        return counts_table(self.sorted_counts)

    def save(self, directory: str | Path, *, shards: int = 16) -> None:
        """Write a counts directory: Parquet parts by hash, sorted inside, the manifest last.

        An existing counts directory is replaced. The same counts give the same bytes.

        Raises:
            CountsError: the directory holds something else, or a pre-token is too large.
            OSError: it cannot be written.
        """
        manifest = CountsManifest(**self.described(), parts=())
        write_counts(Path(directory), self.sorted_counts, manifest, shards=shards)

    @classmethod
    def load(cls, directory: str | Path) -> PretokenCounts:
        """Read a counts directory and check every part.

        Raises:
            CountsError: the manifest or a part is missing, damaged, or of another run.
        """
        manifest, parts = read_counts(Path(directory))
        return cls.of(parts, manifest, where=str(directory))

    @classmethod
    def of(
        cls, parts: list[SortedCounts], manifest: CountsManifest, *, where: str
    ) -> PretokenCounts:
        """Return the sum of counts, with the description in a manifest.

        Raises:
            CountsError: the counts and the description contradict each other, or a count passes
                2^63 - 1. The message begins with ``where``.
        """
        try:
            return cls(sorted_counts=add_counts(parts), **manifest.described())
        except (ValueError, OverflowError) as error:
            raise CountsError(f"{where}: {error}") from error

    @classmethod
    def from_items(
        cls,
        items: Mapping[str, int] | Mapping[bytes, int] | Iterable[tuple[str | bytes, int]],
        *,
        pretokenizer: str | Pretokenizer = "none",
        pattern: str | Sequence[str] | None = None,
        special_tokens: Sequence[str] = (),
        track_order: bool = False,
    ) -> PretokenCounts:
        """Return counts of pre-tokens with their counts; duplicates are added.

        Each item is one document that repeats the pre-token; ``track_order`` records the order of
        the items.

        Raises:
            CountsError: a pre-token is empty, or a count not between 1 and 2^63 - 1.
            EncodingError: a str has a lone surrogate.
        """
        counted: Counter[bytes] = Counter()
        first: dict[bytes, int] = {}
        documents = size = 0
        for item, count in items.items() if isinstance(items, Mapping) else items:
            key = text_bytes(item, f"item {documents}")
            if not key:
                raise CountsError(f"item {documents} is empty: a pre-token is never empty")
            if isinstance(count, bool) or not isinstance(count, Integral) or count < 1:
                raise CountsError(
                    f"item {documents}, {item!r:.60}: {count!r} is not a count (>= 1)"
                )
            counted[key] += int(count)
            if counted[key] > MAX_COUNT:
                raise CountsError(f"the count of pre-token {item!r:.60} passes 2^63 - 1")
            first.setdefault(key, documents)
            documents += 1
            size += len(key) * int(count)
        keys = sorted(counted)
        columns = {
            "pretoken": pa.array(keys, pa.large_binary()),
            "count": pa.array([counted[key] for key in keys], pa.int64()),
        }
        if track_order:
            columns["first_document"] = pa.array([first[key] for key in keys], pa.int64())
            columns["first_position"] = pa.array([0] * len(keys), pa.int64())
        return cls(
            sorted_counts=counts_from_table(pa.table(columns), where="items"),
            pretokenizer=Pretokenizer.of(pretokenizer, pattern),
            special_tokens=check_special_tokens(special_tokens),
            totals=Totals(documents=documents, bytes=size, pretokens=counted.total()),
            order_span=documents if track_order else None,
        )


def combine(
    weighted: Iterable[tuple[PretokenCounts, Fraction | int]], *, names: Sequence[str] = ()
) -> PretokenCounts:
    """Return the weighted sum of counts, with documents in the order given.

    Exact: counts are multiplied by the least common multiple of the denominators, which becomes
    :attr:`PretokenCounts.scale`.

    Args:
        weighted: counts with their weights, above 0.
        names: of the counts in errors, such as their directories.

    Raises:
        CountsError: there are none, a weight is not positive, they were cut differently, only
            some track order, or a count exceeds 2^63 - 1.

    Example:
        >>> day = PretokenCounts.from_items({"low": 5})
        >>> both = combine([(day, Fraction(1)), (day, Fraction(1, 2))])
        >>> dict(both.items()), both.scale
        ({b'low': 15}, 2)
    """
    pairs = [(counts, Fraction(weight) / counts.scale) for counts, weight in weighted]
    if not pairs:
        raise CountsError("no counts to add up")
    titles = list(names) or [f"counts {i}" for i in range(len(pairs))]
    first = pairs[0][0]
    for (counts, factor), title in zip(pairs, titles, strict=True):
        if factor <= 0:
            raise CountsError(f"{title}: the weight is {factor}, it must be above 0")
        check_agreement(first, counts, titles=(titles[0], title))
    scale = lcm(*(factor.denominator for _, factor in pairs))
    if len(pairs) == 1 and pairs[0][1] * first.scale == 1:
        return first
    multiplied: list[PretokenCounts] = []
    shifted, span = [], 0
    for (counts, factor), title in zip(pairs, titles, strict=True):
        times = int(factor * scale)
        try:
            more = counts if times == 1 else counts * times
        except CountsError as error:
            raise CountsError(f"{title}: {error}") from error
        multiplied.append(more)
        shifted.append(_later(more.sorted_counts, span))
        span += counts.order_span or 0
    try:
        total = add_counts(shifted)
    except OverflowError as error:
        raise CountsError(str(error)) from error
    order_span = None if first.order_span is None else span
    return replace(
        first, sorted_counts=total, order_span=order_span, scale=scale, **summed(multiplied)
    )


def check_agreement(
    one: Described,
    other: Described,
    *,
    titles: tuple[str, str],
) -> None:
    """Raise CountsError unless both counts cut texts and found runs in the same way."""
    mine, its = (
        {
            "runs": counts.runs or "counts of pre-tokens",
            **counts.pretokenizer.settings,
            "special_tokens": list(counts.special_tokens),
            "`track_order`": counts.order_span is not None,
        }
        for counts in (one, other)
    )
    for what, value in mine.items():
        if value != its[what]:
            here, there = map(str if what == "runs" else repr, (value, its[what]))
            raise CountsError(
                f"counts of different {what} cannot be added: {titles[0]} has {here}, {titles[1]} "
                f"has {there}; count one of the corpora again"
            )


def require_pretokens(counts: Described, *, title: str, remedy: str) -> None:
    """Raise CountsError for counts of runs, whose keys are ids and no text.

    Args:
        counts: of pre-tokens, as most work needs.
        title: names them in the error.
        remedy: what to give instead.
    """
    if counts.runs is not None:
        raise CountsError(f"{title} holds counts of {counts.runs}, not of pre-tokens: {remedy}")


def text_bytes(text: object, what: str) -> bytes:
    """Return a text as UTF-8; ``what`` names the text in errors."""
    if not isinstance(text, (str, bytes)):
        raise CountsError(f"{what} is {text!r:.60}, not a str")
    return utf8(text, what=what)


def _later(counts: SortedCounts, documents: int) -> SortedCounts:
    """Return the counts with all documents ``documents`` places later."""
    if counts.documents is None or documents == 0:
        return counts
    problem = "the places of documents pass 2^63 - 1"
    return _changed(counts, "first_document", pc.add_checked, documents, problem)


def _changed(
    counts: SortedCounts, column: str, change: Callable[..., Any], by: int, problem: str
) -> SortedCounts:
    """Change a column of counts by a number; ``problem`` is the error of too large numbers."""
    table = counts_table(counts)
    try:
        changed = change(table[column], pa.scalar(by, pa.int64()))
    except (pa.ArrowInvalid, OverflowError) as error:
        raise CountsError(problem) from error
    index = table.schema.get_field_index(column)
    return counts_from_table(table.set_column(index, column, changed), where="counts")
