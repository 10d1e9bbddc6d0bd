"""What several tokenizers make of the same documents: totals that add up in any order."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow.compute as pc

from pipelines.encode.steps import unknown_id

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import pyarrow as pa

    from bpe import Tokenizer

# A vocabulary that is used takes a bit a token: of so many groups it is known.
USED_GROUPS = 256


@dataclass(frozen=True, kw_only=True)
class Measures:
    """What one tokenizer made of some documents.

    Attributes:
        tokens: ids.
        single_byte: of these, ids of tokens of one byte.
        unknown: of these, ids of the unknown token.
        used: the ids that occur, as the bits of a number; None where that was not kept.
    """

    tokens: int = 0
    single_byte: int = 0
    unknown: int = 0
    used: int | None = 0

    def __add__(self, other: Measures) -> Measures:
        used = None if self.used is None or other.used is None else self.used | other.used
        return Measures(
            tokens=self.tokens + other.tokens,
            single_byte=self.single_byte + other.single_byte,
            unknown=self.unknown + other.unknown,
            used=used,
        )


@dataclass(frozen=True, kw_only=True)
class GroupTotals:
    """Some documents, and what each tokenizer made of them.

    Attributes:
        documents: how many.
        bytes: of their text, in UTF-8.
        measures: one for each tokenizer.
    """

    documents: int = 0
    bytes: int = 0
    measures: tuple[Measures, ...] = ()

    def __add__(self, other: GroupTotals) -> GroupTotals:
        if not self.measures or not other.measures:
            return self if self.measures else other
        return GroupTotals(
            documents=self.documents + other.documents,
            bytes=self.bytes + other.bytes,
            measures=tuple(a + b for a, b in zip(self.measures, other.measures, strict=True)),
        )

    def to_json(self) -> dict[str, Any]:
        """The totals and what follows from them, as JSON values; rates of nothing are null."""
        return {
            "documents": self.documents,
            "bytes": self.bytes,
            "tokenizers": [
                {
                    "tokens": one.tokens,
                    "bytes_per_token": _rate(self.bytes, one.tokens),
                    "tokens_per_document": _rate(one.tokens, self.documents),
                    "single_byte_tokens": one.single_byte,
                    "single_byte_share": _rate(one.single_byte, one.tokens),
                    "unknown_tokens": one.unknown,
                    "vocabulary_used": None if one.used is None else one.used.bit_count(),
                }
                for one in self.measures
            ],
        }


def _rate(number: int, of: int) -> float | None:
    return number / of if of else None


class Meter:
    """Measures the token ids of one tokenizer."""

    def __init__(self, tokenizer: Tokenizer) -> None:
        self._single = np.zeros(len(tokenizer.tokens), bool)
        for id_, token in enumerate(tokenizer.tokens):
            self._single[id_] = token is not None and len(token) == 1
        self._unknown = unknown_id(tokenizer)

    def measure(
        self, lists: pa.ListArray, codes: np.ndarray[Any, Any], groups: int
    ) -> list[Measures]:
        """What the ids of some documents come to, for each group.

        Args:
            lists: the ids of each document.
            codes: the number of the group of each document, below ``groups``.
            groups: how many there are.
        """
        lengths = pc.list_value_length(lists).to_numpy().astype(np.int64)
        ids = pc.list_flatten(lists).to_numpy()
        ends = np.concatenate([[0], np.cumsum(lengths)])
        single = _sums(self._single[ids], ends)
        known = np.zeros(len(ids), bool) if self._unknown is None else ids == self._unknown
        unknown = _sums(known, ends)
        counted = [_by_group(values, codes, groups) for values in (lengths, single, unknown)]
        used: list[int | None] = [None] * groups
        if 0 < groups <= USED_GROUPS:
            marks = np.zeros((groups, len(self._single)), bool)
            marks[np.repeat(codes, lengths) if groups > 1 else 0, ids] = True
            used = [
                int.from_bytes(np.packbits(row, bitorder="little").tobytes(), "little")
                for row in marks
            ]
        return [
            Measures(tokens=int(a), single_byte=int(b), unknown=int(c), used=bits)
            for a, b, c, bits in zip(*counted, used, strict=True)
        ]


def _sums(flags: np.ndarray[Any, Any], ends: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """How many flags are set in each document."""
    before = np.concatenate([[0], np.cumsum(flags, dtype=np.int64)])
    return np.asarray(before[ends[1:]] - before[ends[:-1]])


def _by_group(
    values: np.ndarray[Any, Any], codes: np.ndarray[Any, Any], groups: int
) -> np.ndarray[Any, Any]:
    sums = np.zeros(groups, np.int64)
    np.add.at(sums, codes, values)
    return sums


def measure_block(
    texts: pa.Array,
    encoded: Sequence[pa.ListArray],
    *,
    meters: Sequence[Meter],
    groups: Sequence[str],
    codes: np.ndarray[Any, Any],
) -> dict[str, GroupTotals]:
    """The totals of a block, by group.

    Args:
        texts: its documents.
        encoded: their ids, of each tokenizer.
        meters: one for each tokenizer.
        groups: the keys of the groups, each once.
        codes: the number of the group of each document.
    """
    number = len(groups)
    sizes = pc.binary_length(texts).to_numpy().astype(np.int64)
    documents = _by_group(np.ones(len(texts), np.int64), codes, number)
    size = _by_group(sizes, codes, number)
    measured = [
        meter.measure(lists, codes, number) for meter, lists in zip(meters, encoded, strict=True)
    ]
    return {
        key: GroupTotals(
            documents=int(documents[group]),
            bytes=int(size[group]),
            measures=tuple(of[group] for of in measured),
        )
        for group, key in enumerate(groups)
        if documents[group]
    }


class GroupSums:
    """Adds totals up, by the key of their group; of many groups without the ids that occur."""

    def __init__(self, *, used: bool) -> None:
        self._used = used
        self.totals: dict[str, GroupTotals] = {}

    def add(self, totals: Mapping[str, GroupTotals]) -> None:
        """Add the totals of some documents."""
        for key, of in totals.items():
            self.totals[key] = self.totals.get(key, GroupTotals()) + of
        if self._used and len(self.totals) > USED_GROUPS:
            self._used = False
        if not self._used:
            self.totals = {key: without_used(of) for key, of in self.totals.items()}


def without_used(totals: GroupTotals) -> GroupTotals:
    """The totals without the ids that occur."""
    if all(one.used is None for one in totals.measures):
        return totals
    return replace(totals, measures=tuple(replace(one, used=None) for one in totals.measures))
