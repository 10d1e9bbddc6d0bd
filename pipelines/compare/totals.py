"""Totals of tokenizers over the same documents, by group: tables that add up in any order."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from bpe.diff import same_tokens, token_sizes
from pipelines.encode.tokens import unknown_id

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from bpe import Tokenizer
    from pipelines.encode.rows import Numbers

GROUP = "group"
# Of each tokenizer; a document is the same if all its tokens are.
_OF_EACH = (
    *("tokens", "single_byte_tokens", "unknown_tokens"),
    *("same_tokens", "same_documents"),
)


def totals_schema(tokenizers: int) -> pa.Schema:
    """Return the columns of totals: the group, then numbers of all and of each tokenizer."""
    of_each = [f"{number}.{name}" for number in range(tokenizers) for name in _OF_EACH]
    numbers = [(name, pa.int64()) for name in ("documents", "bytes", *of_each)]
    return pa.schema([(GROUP, pa.large_string()), *numbers])


def add_up(totals: Iterable[pa.Table]) -> pa.Table:
    """Return the sums of totals, one row for each group."""
    table = pa.concat_tables(totals)
    names = [name for name in table.column_names if name != GROUP]
    sums = table.group_by(GROUP).aggregate([(name, "sum") for name in names])
    return sums.select([GROUP, *(f"{name}_sum" for name in names)]).rename_columns(
        table.schema.names
    )


def sums_of(totals: pa.Table) -> dict[str, int]:
    """Return the sums over all groups, by column."""
    return {name: sum(totals[name].to_pylist()) for name in totals.schema.names if name != GROUP}


class Meter:
    """Figures of the token ids of several tokenizers, each compared with the first."""

    def __init__(self, tokenizers: Sequence[Tokenizer]) -> None:
        self._schema = totals_schema(len(tokenizers))
        self._unknown = [unknown_id(one) for one in tokenizers]
        self._sizes = [token_sizes(one) if one.lossless else None for one in tokenizers]
        self._single = [
            np.array([token is not None and len(token) == 1 for token in one.tokens], bool)
            for one in tokenizers
        ]

    def measure(
        self, texts: pa.Array, encoded: Sequence[pa.ListArray], groups: pa.Array
    ) -> pa.Table:
        """Return the totals of some documents, with a row for each.

        Args:
            texts: the documents.
            encoded: their ids by each tokenizer.
            groups: the group of each document.
        """
        columns = [groups, np.ones(len(texts), np.int64), pc.binary_length(texts)]
        for number, lists in enumerate(encoded):
            columns += self._measured(number, lists, encoded[0])
        return pa.table(dict(zip(self._schema.names, columns, strict=True)), self._schema)

    def _measured(self, number: int, lists: pa.ListArray, first: pa.ListArray) -> list[Numbers]:
        """Return the columns of one tokenizer, a value per document in each."""
        lengths = pc.list_value_length(lists).to_numpy()
        ids = pc.list_flatten(lists).to_numpy()
        documents = np.repeat(np.arange(len(lists)), lengths)
        unknown = self._unknown[number]
        special = (self._single[number][ids], ids == (-1 if unknown is None else unknown))
        same = all_same = np.zeros(len(lists), np.int64)
        if self._sizes[0] is not None and (sizes := self._sizes[number]) is not None:
            same = same_tokens(first, lists, sizes=(self._sizes[0], sizes))
            all_same = (same == lengths) & (same == pc.list_value_length(first).to_numpy())
        marked = (np.bincount(documents[one], minlength=len(lists)) for one in special)
        return [lengths, *marked, same, all_same.astype(np.int64)]


def described(totals: Mapping[str, int], tokenizers: Sequence[Tokenizer]) -> dict[str, Any]:
    """Return the totals of a row and their rates as JSON values; a rate over zero is null.

    Values that depend on bytes are null if one of two tokenizers is not lossless.
    """
    documents, size, first = (totals[name] for name in ("documents", "bytes", "0.tokens"))
    values = list[dict[str, Any]]()
    for number, tokenizer in enumerate(tokenizers):
        tokens, single, unknown, same, all_same = (totals[f"{number}.{name}"] for name in _OF_EACH)
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
    return {"documents": documents, "bytes": size, "tokenizers": values}


def _rate(number: int, of: int) -> float | None:
    return number / of if of else None
