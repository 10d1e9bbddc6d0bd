"""Totals of tokenizers over the same documents, by group, which add up in any order."""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import zip_longest
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from bpe.diff import same_tokens, token_sizes
from pipelines.encode.tokens import unknown_id

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import numpy.typing as npt

    from bpe import Tokenizer

    Numbers = npt.NDArray[np.int64]

WHOLE = "*"  # the key of the whole corpus; those of groups are empty or begin with =
_OF_EACH = 5  # tokens, of one byte, unknown, same tokens, whether all are the same


@dataclass
class ComparisonTotals:
    """Totals of tokenizers over the documents of groups, by the key of the group.

    Attributes:
        numbers: documents and bytes of text; then, of each tokenizer: tokens, tokens of one byte,
            unknown tokens, tokens that the first tokenizer has at the same bytes, and documents
            whose tokens are all such.
        used: of each tokenizer, the set of ids that occur in the whole corpus, as the bits of an
            integer; empty without documents.
    """

    numbers: dict[str, Numbers] = field(default_factory=dict)
    used: Sequence[int] = ()

    def add(self, other: ComparisonTotals) -> None:
        """Add the totals of other documents."""
        for key, numbers in other.numbers.items():
            self.numbers[key] = self.numbers.get(key, 0) + numbers
        self.used = [one | two for one, two in zip_longest(self.used, other.used, fillvalue=0)]

    def to_record(self) -> dict[str, Any]:
        """Return the totals as JSON values, which `from_record` reads."""
        return {
            "numbers": {key: numbers.tolist() for key, numbers in self.numbers.items()},
            "used": [f"{one:x}" for one in self.used],
        }

    @classmethod
    def from_record(cls, value: Mapping[str, Any]) -> ComparisonTotals:
        """Return the totals from the JSON values of `to_record`."""
        return cls(
            {key: np.array(numbers, np.int64) for key, numbers in value["numbers"].items()},
            [int(one, 16) for one in value["used"]],
        )


class Meter:
    """Figures of the token ids of several tokenizers, each compared with the first."""

    def __init__(self, tokenizers: Sequence[Tokenizer]) -> None:
        self._tokenizers = tokenizers
        self._sizes = [token_sizes(one) if one.lossless else None for one in tokenizers]
        self._single = [
            np.array([token is not None and len(token) == 1 for token in one.tokens], bool)
            for one in tokenizers
        ]

    def measure(
        self, texts: pa.Array, encoded: Sequence[pa.ListArray], keys: Sequence[str], codes: Numbers
    ) -> ComparisonTotals:
        """Return the totals of some documents, over all and by group.

        Args:
            texts: the documents.
            encoded: their ids by each tokenizer.
            keys: the distinct keys of the groups.
            codes: for each document the index of its key; empty without groups.
        """
        totals = ComparisonTotals()
        if not len(texts):
            return totals
        columns = [np.ones(len(texts)), pc.binary_length(texts).to_numpy()]
        for number, lists in enumerate(encoded):
            columns += self._measured(number, lists, encoded[0])
        numbers = np.stack(columns, axis=1).astype(np.int64)
        for names, of in (([WHOLE], np.zeros(len(texts), np.int64)), (keys, codes)):
            sums = np.zeros((len(names), numbers.shape[1]), np.int64)
            if len(of):
                np.add.at(sums, of, numbers)
            totals.numbers |= dict(zip(names, sums, strict=True))
        totals.used = [
            _used(ids, len(one.tokens)) for ids, one in zip(encoded, self._tokenizers, strict=True)
        ]
        return totals

    def _measured(self, number: int, lists: pa.ListArray, first: pa.ListArray) -> list[Numbers]:
        """Return the columns of one tokenizer, a value per document in each."""
        lengths = pc.list_value_length(lists).to_numpy()
        ids = pc.list_flatten(lists).to_numpy()
        documents = np.repeat(np.arange(len(lists)), lengths)
        unknown = unknown_id(self._tokenizers[number])
        special = (self._single[number][ids], ids == (-1 if unknown is None else unknown))
        same = all_same = np.zeros(len(lists), np.int64)
        if self._sizes[0] is not None and (sizes := self._sizes[number]) is not None:
            same = same_tokens(first, lists, sizes=(self._sizes[0], sizes))
            all_same = (same == lengths) & (same == pc.list_value_length(first).to_numpy())
        marked = (np.bincount(documents[one], minlength=len(lists)) for one in special)
        return [lengths, *marked, same, all_same]


def _used(lists: pa.ListArray, size: int) -> int:
    """Return the set of ids below ``size`` that occur, as the bits of an integer."""
    marks = np.zeros(size, bool)
    marks[pc.list_flatten(lists).to_numpy()] = True
    return int.from_bytes(np.packbits(marks, bitorder="little").tobytes(), "little")


def described(
    totals: ComparisonTotals, key: str, tokenizers: Sequence[Tokenizer]
) -> dict[str, Any]:
    """Return totals and rates of a group as JSON values; a rate over zero is null.

    Values that depend on bytes are null if one of two tokenizers is not lossless.
    """
    default = np.zeros(2 + _OF_EACH * len(tokenizers), np.int64)
    documents, size, *numbers = totals.numbers.get(key, default).tolist()
    first, values = numbers[0], list[dict[str, Any]]()
    for number, tokenizer in enumerate(tokenizers):
        tokens, single, unknown, same, all_same = numbers[number * _OF_EACH :][:_OF_EACH]
        compares = tokenizer.lossless and tokenizers[0].lossless
        values.append(
            {
                "tokens": tokens,
                "bytes_per_token": _rate(size, tokens),
                "tokens_per_document": _rate(tokens, documents),
                "single_byte_tokens": single,
                "single_byte_share": _rate(single, tokens),
                "unknown_tokens": unknown,
                "same_tokens": same if compares else None,
                "same_token_share": _rate(same, first) if compares else None,
                "same_documents": all_same if compares else None,
                "same_document_share": _rate(all_same, documents) if compares else None,
            }
        )
    if key == WHOLE:
        for value, ids in zip(values, totals.used or [0] * len(values), strict=True):
            value["vocabulary_used"] = ids.bit_count()
    return {"documents": documents, "bytes": size, "tokenizers": values}


def _rate(number: int, of: int) -> float | None:
    return number / of if of else None
