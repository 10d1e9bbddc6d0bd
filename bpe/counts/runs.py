"""Runs: adjacent tokens from which superwords are learnt."""

from __future__ import annotations

import re
from dataclasses import dataclass

import pyarrow.compute as pc

from bpe._arrow import int64_array
from bpe._native import SortedCounts
from bpe.counts.pruning import MAX_COUNT
from bpe.errors import CountsError

_SHA256 = re.compile("[0-9a-f]{64}")


@dataclass(frozen=True, kw_only=True)
class Runs:
    """The settings by which runs were found; a key is the token ids of a run, little-endian.

    A run is two or more pre-tokens that follow each other in a document, each of which is one
    token and matches ``merge_pattern`` (Faster Superword Tokenization, arXiv 2604.05192).

    Attributes:
        tokenizer: SHA-256 (hex) of what decides the ids of a text; `bpe.Tokenizer.text_sha256`.
        merge_pattern: a regular expression that each pre-token of a run matches somewhere.
        max_run: longer runs were cut into pieces of so many tokens; None if none were.
        id_bytes: of each id in a key: 2 or 4.

    Raises:
        CountsError: a value is impossible.
    """

    tokenizer: str
    merge_pattern: str
    max_run: int | None
    id_bytes: int

    def __post_init__(self) -> None:
        if not _SHA256.fullmatch(self.tokenizer):
            raise CountsError(f"runs: tokenizer {self.tokenizer!r:.60} is not a SHA-256 in hex")
        if self.max_run is not None and (type(self.max_run) is not int or self.max_run < 2):
            raise CountsError(
                f"runs: max_run {self.max_run!r:.60} is not an int from 2 upwards: a run has two "
                "tokens or more"
            )
        if self.id_bytes not in (2, 4):
            raise CountsError(f"runs: id_bytes {self.id_bytes!r:.60} is not 2 or 4")

    def __str__(self) -> str:
        """Return a short text for messages."""
        longest = "" if self.max_run is None else f", at most {self.max_run:,} tokens"
        return (
            f"runs (tokenizer {self.tokenizer[:12]}, merge pattern {self.merge_pattern!r}"
            f"{longest}, {8 * self.id_bytes}-bit ids)"
        )


@dataclass(frozen=True, kw_only=True)
class CutRuns:
    """The possible error of counts whose runs longer than `Runs.max_run` were cut.

    Exact for one corpus. Sums are upper bounds: the most frequent pairs may differ.

    Attributes:
        pairs: adjacent tokens in the runs that were cut, those at the cuts included; occurrences.
        max_pair: occurrences of the most frequent of these pairs. The count of no pair of symbols
            changes by more, as long as each symbol always begins with the same token and ends with
            the same one: the pair occurs where the last token of its left symbol is followed by the
            first token of its right one.

    Raises:
        CountsError: a value is impossible.
    """

    pairs: int
    max_pair: int

    def __post_init__(self) -> None:
        if not 0 <= self.max_pair <= self.pairs:
            raise CountsError(
                f"cut: max_pair {self.max_pair} is not between 0 and pairs, {self.pairs}"
            )
        if self.pairs > MAX_COUNT:
            raise CountsError(
                f"cut: pairs {self.pairs} exceeds 2^63 - 1: divide the counts by a common factor"
            )

    def __add__(self, other: CutRuns) -> CutRuns:
        return CutRuns(pairs=self.pairs + other.pairs, max_pair=self.max_pair + other.max_pair)

    def __mul__(self, times: int) -> CutRuns:
        return CutRuns(pairs=self.pairs * times, max_pair=self.max_pair * times)

    @classmethod
    def of(cls, pairs: SortedCounts) -> CutRuns:
        """From the counts of these pairs."""
        counts = int64_array(pairs.counts)
        return cls(pairs=pairs.total(), max_pair=pc.max(counts).as_py() or 0)
