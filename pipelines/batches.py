"""Gather, encode and count the texts of elements in batches, without a pipeline.

The DoFns of `pipelines.transforms` call these functions. A text costs little in a batch and much
alone, so texts are collected until there are `BATCH_BYTES` or `BATCH_ROWS` of them.
"""

from __future__ import annotations

import contextlib
from dataclasses import fields, is_dataclass
from functools import partial
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from bpe._arrow import TEXT_TYPES, text_array, to_stream, utf8
from bpe.counts import PretokenCounts, Totals
from bpe.counts.files import counts_table
from bpe.errors import BpeError, EncodingError
from bpe.tokenizer import CacheUse
from pipelines.corpus.documents.block import use_good_rows
from pipelines.count.steps import added_up, shard_messages
from pipelines.encode.rows import with_ends
from pipelines.encode.tokens import arrow_encoder, end_ids, in_tokens
from pipelines.encode.tokens import id_type as smallest_id_type
from pipelines.errors import InputError, RecordError
from pipelines.metrics import add_to_metrics
from pipelines.settings import EncodeSettings

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from bpe import Tokenizer
    from bpe._native import SortedCounts
    from pipelines.settings import PretokenSettings

BATCH_BYTES = 4 << 20
BATCH_ROWS = 4096

Ids = npt.NDArray[np.uint16] | npt.NDArray[np.uint32]
Element = TypeVar("Element")
Key = TypeVar("Key")


# Texts.


def fields_of(element: object, text_field: str) -> dict[str, Any]:
    """Return the fields of a dict, a Row, a NamedTuple or a dataclass, as a new dict.

    Of a str or bytes, ``text_field`` is the only field.

    Raises:
        RecordError: the element has another type.
    """
    if isinstance(element, (str, bytes)):
        return {text_field: element}
    if isinstance(element, dict):
        return dict(element)
    if hasattr(element, "_asdict"):  # named tuples, and rows of Beam
        return dict(element._asdict())
    if is_dataclass(element) and not isinstance(element, type):
        return {field.name: getattr(element, field.name) for field in fields(element)}
    raise RecordError(
        f"the element is {type(element).__name__} {element!r:.60}: give str, bytes, a dict, a Row "
        "or a pyarrow.Table"
    )


def document_of(element: object, text_field: str) -> tuple[dict[str, Any], str | bytes]:
    """Return the fields of an element, as `fields_of`, and its text, ASCII or UTF-8.

    Raises:
        RecordError: there is no such field, or the field holds no text.
    """
    values = fields_of(element, text_field)
    if text_field not in values:
        names = ", ".join(map(repr, values)) or "none"
        raise RecordError(
            f"the element has no field {text_field!r} (its fields: {names:.200}): name the field "
            "that holds the text, text_field=..."
        )
    text, what = values[text_field], f"field {text_field!r}"
    if isinstance(text, str) and text.isascii():
        return values, text  # not copied: Arrow reads it in place
    if not isinstance(text, (str, bytes)):
        raise RecordError(f"{what} is {type(text).__name__} {text!r:.60}, not text")
    try:
        return values, utf8(text, what=what)
    except EncodingError as error:
        raise RecordError(str(error)) from error


def ids_of(values: Mapping[str, Any], field: str) -> npt.NDArray[Any]:
    """Return the token ids in a field of an element, as an array of one dimension.

    Raises:
        RecordError: the field is missing or holds no token ids.
    """
    ids = values.get(field)
    with contextlib.suppress(ValueError, OverflowError):
        array = np.asarray(ids)
        if array.ndim == 1 and (not array.size or array.dtype.kind in "iu"):
            return array
    raise RecordError(
        f"field {field!r} is {ids!r:.60}, where token ids are needed — element {values!r:.200} — "
        "encode it first, or name the field, ids_field=..."
    )


def table_of(element: object) -> pa.Table | None:
    """Return a table or a batch as a table over the same memory; None for other elements."""
    if isinstance(element, pa.RecordBatch):
        return pa.Table.from_batches([element])
    return element if isinstance(element, pa.Table) else None


def only_column(
    table: pa.Table, field: str, remedy: str, *, with_nulls: bool = False
) -> pa.ChunkedArray:
    """Return the only column of a name; ``remedy`` is for the message if there is no such column.

    Raises:
        RecordError: the table does not have one such column, or the column has nulls.
    """
    names = table.schema.names
    if names.count(field) != 1:
        has = ", ".join(map(repr, names)) or "none"
        raise RecordError(
            f"the table has {names.count(field)} columns {field!r} (its columns: {has:.200}): "
            f"{remedy}"
        )
    if table[field].null_count and not with_nulls:
        raise RecordError(f"column {field!r} has nulls: filter them out")
    return table[field]


def column_of(table: pa.Table, field: str, *, with_nulls: bool = True) -> pa.ChunkedArray:
    """Return the column of texts of a table: string, large_string, binary or large_binary.

    Raises:
        RecordError: the table does not have one such column, or the column holds no text.
    """
    remedy = "name the one that holds the text, text_field=..."
    column = text_array(only_column(table, field, remedy, with_nulls=with_nulls))
    if column.type not in TEXT_TYPES:
        raise RecordError(f"column {field!r} is {column.type}, not text: cast it to string")
    return column


def id_column_of(table: pa.Table, field: str) -> pa.ChunkedArray:
    """Return the column of token ids of a table: large lists of int64, without nulls.

    Raises:
        RecordError: the table does not have one such column, or the column has nulls or no token
            ids.
    """
    column = only_column(table, field, "encode it first, or name the column, ids_field=...")
    try:
        ids = column.cast(pa.large_list(pa.int64()))
    except (pa.ArrowException, ValueError) as error:
        raise RecordError(f"column {field!r} holds no token ids: {error}") from error
    if pc.list_flatten(ids).null_count:
        raise RecordError(f"column {field!r} has null ids: filter them out")
    return ids


class TextBatches(Generic[Key, Element]):
    """Batches of elements and their texts, one for each key, that grow until they are drained."""

    def __init__(self) -> None:
        self._batches: dict[Key, tuple[list[Element], list[str | bytes]]] = {}
        self._rows = self._nbytes = 0

    def add(self, key: Key, element: Element, text: str | bytes) -> bool:
        """Add an element and its text, ASCII or UTF-8; return whether to drain the batches."""
        elements, texts = self._batches.setdefault(key, ([], []))
        elements.append(element)
        texts.append(text)
        self._rows += 1
        self._nbytes += len(text)
        return self._nbytes >= BATCH_BYTES or self._rows >= BATCH_ROWS

    def drain(self) -> Iterator[tuple[Key, list[Element], pa.LargeBinaryArray]]:
        """Yield each key with its elements, in order, and their texts; empty the batches."""
        batches, self._batches, self._rows, self._nbytes = self._batches, {}, 0, 0
        for key, (elements, texts) in batches.items():
            yield key, elements, pa.array(texts, pa.large_binary())


# Encoding.


class IdEncoder:
    """Encoder of batches of texts, in which a bad text does not affect the others.

    Args:
        tokenizer: the tokenizer.
        settings: the making of the ids.

    Raises:
        ConfigError: the tokenizer lacks a special token, or its ids do not fit ``id_type``.
    """

    def __init__(
        self,
        tokenizer: Tokenizer,
        settings: EncodeSettings = EncodeSettings(),  # noqa: B008  # immutable
    ) -> None:
        settings = in_tokens(settings, tokenizer.special_tokens, tokenizer.roles)
        self._ends = end_ids(tokenizer, settings, allow="allowed_special")
        self._id_type = smallest_id_type(tokenizer, settings)
        self._encode_arrow = arrow_encoder(tokenizer, settings, self._id_type)

    def encode(self, texts: pa.Array | pa.ChunkedArray) -> tuple[pa.ChunkedArray, dict[int, str]]:
        """Encode texts without nulls; set the bad texts of a batch apart.

        Args:
            texts: string, large_string, binary or large_binary.

        Returns:
            The ids of the good texts, in their order (list of uint16 or uint32), and the reasons
            why texts failed, by the number of the text.
        """
        use = CacheUse()
        encode = partial(self._encode_arrow, cache_use=use)
        chunks: list[pa.ListArray] = []
        bad, first = dict[int, str](), 0
        waiting = texts.chunks[::-1] if isinstance(texts, pa.ChunkedArray) else [texts]
        while waiting:
            chunk, reasons = waiting.pop(), dict[int, str]()
            try:
                ids, _ = use_good_rows((chunk,), encode, reasons.__setitem__)
            except EncodingError as error:  # more ids than one list array holds
                if (half := len(chunk) // 2) > 0:
                    waiting += [chunk.slice(half), chunk.slice(0, half)]
                    continue
                reasons[0] = str(error)
            else:
                chunks.append(with_ends(ids, **self._ends))
            bad |= {first + row: why for row, why in sorted(reasons.items())}
            first += len(chunk)
        lists = pa.list_(pa.type_for_alias(self._id_type))
        add_to_metrics(
            documents_encoded=sum(map(len, chunks)),
            tokens_encoded=sum(len(chunk.flatten()) for chunk in chunks),
            cache_hits=use.hits,
            cache_misses=use.misses,
        )
        return pa.chunked_array(chunks, lists), bad


def id_arrays(ids: pa.ChunkedArray) -> Iterator[Ids]:
    """Yield the ids of each text as a numpy array of its own, a copy.

    Args:
        ids: the ids that `IdEncoder` made.
    """
    for chunk in ids.chunks:
        values = np.frombuffer(chunk.values.buffers()[1], str(chunk.values.type))
        for begin, end in pairwise(chunk.offsets.to_numpy().tolist()):
            yield values[begin:end].copy()


def split_nulls(table: pa.Table, field: str) -> tuple[pa.Table, list[tuple[pa.Table, str]]]:
    """Return the rows of a table that have a text, and each other row with the reason.

    Raises:
        RecordError: the table has no column of texts of that name.
    """
    column = column_of(table, field)
    if not column.null_count:
        return table, []
    return split_rows(
        table,
        dict.fromkeys(
            pc.indices_nonzero(pc.is_null(column)).to_pylist(), f"column {field!r} is null"
        ),
    )


def split_rows(
    table: pa.Table, bad: Mapping[int, str]
) -> tuple[pa.Table, list[tuple[pa.Table, str]]]:
    """Return a table without its bad rows (numbers ascending), and each bad row with its reason."""
    if not bad:
        return table, []
    bounds = [-1, *bad, len(table)]
    pieces = [table.slice(begin + 1, end - begin - 1) for begin, end in pairwise(bounds)]
    rows = [(_copied(table.slice(row, 1)), reason) for row, reason in bad.items()]
    return pa.concat_tables(pieces), rows


def _copied(table: pa.Table) -> pa.Table:
    """Copy a slice, so that pickling does not include the memory around the slice."""
    return pa.ipc.open_stream(to_stream(table)).read_all()


def with_ids(
    table: pa.Table, encoder: IdEncoder, *, text_field: str, output_field: str
) -> tuple[pa.Table, list[tuple[pa.Table, str]]]:
    """Return a table with a column of ids, and the rows that cannot be encoded, with reasons.

    A column of the name ``output_field`` is replaced.

    Raises:
        RecordError: the table has no column of texts of that name.
    """
    table, nulls = split_nulls(table, text_field)
    ids, reasons = encoder.encode(column_of(table, text_field))
    table, bad = split_rows(table, reasons)
    place = table.schema.get_field_index(output_field)
    if place >= 0:
        table = table.set_column(place, output_field, ids)
    else:
        table = table.append_column(output_field, ids)
    return table, [*nulls, *bad]


# Counting.


def sorted_messages(
    pairs: Iterable[tuple[bytes, int]], shards: int, transform: str
) -> Iterator[tuple[int, bytes]]:
    """Return the sorted counts of each shard that has any of these pre-tokens, as Arrow IPC.

    Args:
        pairs: pre-tokens with counts, as elements of a pipeline hold them.
        shards: the number of shards.
        transform: the name of the transform, for the message.

    Raises:
        RecordError: an element is no pre-token with a count from 1 to 2^63 - 1, or their counts add
            up to more.
    """
    try:
        counts = PretokenCounts.from_items(map(_pair, pairs))
    except (BpeError, TypeError, ValueError) as error:
        raise RecordError(
            f"{transform} takes (pre-token, count), bytes and int, as CountPretokens gives them: "
            f"{error}"
        ) from error
    return shard_messages(counts.sorted_counts.split(shards))


def _pair(element: Any) -> tuple[bytes, int]:
    """Return an element that is a pair with a pre-token.

    Raises:
        TypeError: it is something else.
    """
    if isinstance(element, tuple) and len(element) == 2 and isinstance(element[0], bytes):
        return element
    raise TypeError(f"got {element!r:.200}: count texts with CountPretokens first")


def counts_of_messages(messages: Iterable[bytes], pretokens: PretokenSettings) -> PretokenCounts:
    """Add up the counts in messages of any shards; the number of texts is unknown.

    Args:
        messages: sorted counts as Arrow IPC.
        pretokens: the settings by which the texts were cut.

    Raises:
        InputError: a count passes 2^63 - 1.
    """
    counts = added_up(messages)
    return PretokenCounts(
        sorted_counts=counts,
        pretokenizer=pretokens.cut,
        special_tokens=pretokens.special_tokens,
        totals=totals_of(counts),
    )


def totals_of(counts: SortedCounts) -> Totals:
    """Return the bytes and the number of all pre-tokens; the number of texts is unknown.

    Raises:
        InputError: a sum passes 2^63 - 1.
    """
    table = counts_table(counts)
    lengths = pc.binary_length(table["pretoken"]).to_numpy().astype(object)  # of any size
    numbers = table["count"].to_numpy()
    try:
        return Totals(bytes=int((lengths * numbers).sum()), pretokens=counts.total())
    except OverflowError as error:
        raise InputError(f"{error}: the counts do not fit 64 bits") from error
