"""Documents become rows: a row a document, chunks of them, or packed rows.

Rows depend on the documents and their order alone, not on the blocks in which they come.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from bpe._native import best_fit
from pipelines.corpus.documents.types import parse_type
from pipelines.encode.rows import ID, INPUT_IDS, NUM_TOKENS, flat, list_type, lists_of
from pipelines.errors import RecordError
from pipelines.export.columns import LIST, added_columns
from pipelines.settings import MAX_PACK, ExportSettings

if TYPE_CHECKING:
    from pipelines.encode.rows import Ids, Numbers

CHUNK_INDEX, DOCUMENTS = "chunk_index", "documents"
OFFSET, LENGTH = "offset", "length"
# Best-fit packing puts the documents in order among these, which end with the document that takes
# them past one of the limits: more give fuller rows, and take more memory.
WINDOW_IDS = 1 << 24
WINDOW_DOCUMENTS = 1 << 19
MAX_ROW_DOCUMENTS = MAX_PACK + (1 << 20)  # as many empty ones as others


class ExportLayout:
    """The layout of the rows of an export, which follows from fields of its plan.

    Attributes:
        settings: how documents become rows.
        id_type: ``uint16`` or ``uint32``.
        columns: the types of the columns that pass through, by name.
        pad: the id that fills packed rows, or None.
    """

    settings: ExportSettings
    id_type: str
    columns: Any
    pad: int | None = None

    @property
    def passthrough(self) -> tuple[pa.Field, ...]:
        """Return the columns that pass through."""
        return tuple(pa.field(name, parse_type(kind)) for name, kind in self.columns.items())

    @property
    def describes(self) -> bool:
        """Return True unless rows are packed in a format other than Parquet."""
        return self.settings.to == "parquet" or self.settings.pack is None

    @property
    def about(self) -> pa.Schema:
        """Return the columns that are the same in all rows of a document."""
        return pa.schema([pa.field(ID, pa.string()), *self.passthrough])

    @property
    def piece(self) -> list[pa.Field]:
        """Return the columns about a document, or about each of its pieces in a packed row."""
        columns = []
        if self.settings.pack is not None:
            columns = [pa.field(OFFSET, pa.uint64()), pa.field(LENGTH, pa.uint64())]
        elif self.settings.max_tokens is not None:
            columns = [pa.field(CHUNK_INDEX, pa.uint32())]
        return [self.about.field(ID), *columns, *self.passthrough]

    @property
    def ids_type(self) -> pa.DataType:
        """Return the type of the column ``input_ids``."""
        return list_type(self.id_type, self.settings.parquet_encoding)

    @property
    def schema(self) -> pa.Schema:
        """Return the schema of the rows; formats other than Parquet read some of its columns."""
        described = self.piece
        if self.settings.pack is not None:
            pieces = pa.field(DOCUMENTS, pa.list_(pa.struct(described)))
            described = [pieces] if self.describes else []
        added = [pa.field(name, LIST) for name in self.settings.add_column]
        ids = [pa.field(INPUT_IDS, self.ids_type), pa.field(NUM_TOKENS, pa.uint32())]
        return pa.schema([*described, *ids, *added])


@dataclass(frozen=True, kw_only=True)
class Documents:
    """Consecutive documents, or pieces of them, in columns of equal length.

    Attributes:
        about: the columns of `ExportLayout.about`.
        input_ids: the token ids of each document or piece, lists of the layout's type of ids.
        begins: the position of each piece in its document, in ids; None: whole documents.
    """

    about: pa.RecordBatch
    input_ids: pa.ListArray
    begins: Numbers | None = None

    def __len__(self) -> int:
        return len(self.about)

    @property
    def lengths(self) -> Numbers:
        """Return the number of token ids of each document or piece."""
        lengths: Numbers = np.diff(self.input_ids.offsets.to_numpy()).astype(np.int64)
        return lengths

    def slice(self, begin: int, end: int) -> Documents:
        """Return the documents from number ``begin`` to before ``end``, without a copy."""
        size = end - begin
        return Documents(
            about=self.about.slice(begin, size),
            input_ids=self.input_ids.slice(begin, size),
            begins=None if self.begins is None else self.begins[begin:end],
        )

    def cut(self, begin: int, size: int) -> Documents:
        """Return all documents, with only the ``size`` token ids from number ``begin`` on."""
        values, offsets = flat(self.input_ids)
        bounds = np.clip(offsets, begin, begin + size)
        base = np.zeros(len(self), np.int64) if self.begins is None else self.begins
        return replace(
            self,
            input_ids=lists_of(
                pa.array(values[begin : begin + size]), bounds - begin, self.input_ids.type
            ),
            begins=base + bounds[:-1] - offsets[:-1],
        )


class RowMaker(ABC):
    """The maker of the rows of consecutive documents, which come in any portions.

    Attributes:
        left: the ids that are in no row, known after `finish`.
        dropped_documents: documents of which nothing is in a row, known after `finish`.
        cut: documents longer than a row, where only these are cut, or of which a row was dropped.
    """

    def __init__(self, layout: ExportLayout) -> None:
        self._layout = layout
        self._size = layout.settings.pack or 0
        self.left: Ids = np.zeros(0, np.uint32)
        self.dropped_documents = self.cut = 0

    @abstractmethod
    def add(self, documents: Documents) -> pa.RecordBatch:
        """Add the next documents; return the rows that are complete.

        Raises:
            RecordError: too many documents fall into one row.
        """

    def finish(self) -> pa.RecordBatch:
        """Return the last rows, after all documents."""
        return _no_rows(self._layout)


def row_maker(layout: ExportLayout) -> RowMaker:
    """Return a maker of rows of this layout."""
    if layout.settings.best_fit:
        return _BestFitRows(layout)
    if layout.settings.pack is not None:
        return _JoinedRows(layout)
    return _DocumentRows(layout)


class _DocumentRows(RowMaker):
    """The maker of a row for each document, or for each chunk of a document."""

    def add(self, documents: Documents) -> pa.RecordBatch:
        size = self._layout.settings.max_tokens
        if size is None:
            return _batch(self._layout, _columns(self._layout, documents), documents.input_ids)
        values, offsets = flat(documents.input_ids)
        chunks = np.maximum(-(-np.diff(offsets) // size), 1)  # none for an empty one would lose it
        document, index = numbered(chunks)
        begins = offsets[document] + index * size
        rows = lists_of(pa.array(values), np.append(begins, offsets[-1]), documents.input_ids.type)
        columns = _columns(self._layout, documents, document)
        columns[CHUNK_INDEX] = pa.array(index, pa.uint32())
        return _batch(self._layout, columns, rows)


class _JoinedRows(RowMaker):
    """The maker of rows of one length, cut out of the joined documents.

    An empty document belongs to the row in which the document before it ends. So the last row is
    held back even when the row is full: an empty document that comes next belongs to the row.
    """

    def __init__(self, layout: ExportLayout) -> None:
        super().__init__(layout)
        # Of the row that is held back:
        self._values: list[Ids] = []
        self._pieces: list[pa.StructArray] = []
        self._held = 0  # ids
        self._held_pieces = 0

    def add(self, documents: Documents) -> pa.RecordBatch:
        size = self._size
        values, offsets = flat(documents.input_ids)
        starts, ends = self._held + offsets[:-1], self._held + offsets[1:]
        # Rows are counted from the one held back.
        first = np.where(ends > starts, starts // size, np.maximum(-(-starts // size) - 1, 0))
        last = np.maximum((ends - 1) // size, first)
        document, number = numbered(last - first + 1)
        row = first[document] + number
        begin = np.maximum(row * size, starts[document])
        end = np.minimum((row + 1) * size, ends[document])
        self._check_documents(row, documents, document)
        offset = begin - starts[document]
        pieces = _described(self._layout, documents, document, offset, end - begin)
        complete = max(-(-(self._held + len(values)) // size) - 1, 0)
        taken = int(np.searchsorted(row, complete))
        if not complete:
            self._hold(values, pieces)
            return _no_rows(self._layout)
        bounds = np.searchsorted(row, np.arange(complete + 1))
        bounds[1:] += self._held_pieces
        cut = complete * size - self._held
        rows = self._rows(
            np.concatenate([*self._values, values[:cut]]) if self._values else values[:cut],
            pa.concat_arrays([*self._pieces, pieces.slice(0, taken)]),
            bounds,
        )
        self._values, self._pieces, self._held, self._held_pieces = [], [], 0, 0
        self._hold(values[cut:].copy(), pieces.slice(taken))
        return rows

    def finish(self) -> pa.RecordBatch:
        if not self._held_pieces:
            return _no_rows(self._layout)
        pieces = pa.concat_arrays(self._pieces)
        if self._held == self._size or self._layout.settings.pack_remainder != "drop":
            bounds = np.array([0, self._held_pieces])
            return self._rows(np.concatenate(self._values), pieces, bounds)
        self.cut = int(pieces.field(OFFSET)[0].as_py() > 0)
        self.dropped_documents = len(pieces) - self.cut
        self.left = np.concatenate(self._values)
        return _no_rows(self._layout)

    def _hold(self, values: Ids, pieces: pa.StructArray) -> None:
        self._values.append(values)
        self._pieces.append(pieces)
        self._held += len(values)
        self._held_pieces += len(pieces)

    def _check_documents(self, row: Numbers, documents: Documents, document: Numbers) -> None:
        counts = np.bincount(row) if len(row) else np.zeros(1, np.int64)
        counts[:1] += self._held_pieces
        if (over := np.flatnonzero(counts > MAX_ROW_DOCUMENTS)).size:
            place = document[np.searchsorted(row, over[0], side="right") - 1]
            raise RecordError(
                f"document {documents.about[ID][place].as_py()!r}: more than {MAX_ROW_DOCUMENTS} "
                "documents, empty ones among them, fall into one packed row: leave empty documents "
                "out of the corpus, or encode with `append_token`, which gives each an id"
            )

    def _rows(self, values: Ids, pieces: pa.StructArray, bounds: Numbers) -> pa.RecordBatch:
        rows = len(bounds) - 1
        ends = np.minimum(self._size * np.arange(rows + 1), len(values))
        return _packed(self._layout, values, pieces, bounds, np.diff(ends))


class _BestFitRows(RowMaker):
    """The maker of packed rows that never cut a document which would fit a row.

    Documents are put into rows a window at a time (`WINDOW_IDS`, `WINDOW_DOCUMENTS`). A document
    longer than a row is cut into full rows and what is left; this and all shorter documents go
    into rows by best fit (``native/pack/best_fit.h``). An empty document goes where the one before
    it ends. Within a window, the rows are in the order of the first document of each, and the
    documents of a row in their own order.
    """

    def __init__(self, layout: ExportLayout) -> None:
        super().__init__(layout)
        self._held: list[Documents] = []
        self._held_ids = self._held_documents = 0

    def add(self, documents: Documents) -> pa.RecordBatch:
        made = []
        while len(documents):
            ends = np.cumsum(documents.lengths)
            full = int(np.searchsorted(ends, WINDOW_IDS - self._held_ids)) + 1
            taken = min(full, WINDOW_DOCUMENTS - self._held_documents, len(ends))
            self._held.append(documents.slice(0, taken))
            self._held_ids += int(ends[taken - 1])
            self._held_documents += taken
            documents = documents.slice(taken, len(ends))
            if self._held_ids >= WINDOW_IDS or self._held_documents >= WINDOW_DOCUMENTS:
                made.append(self._window())
        return _joined(self._layout.schema, made)

    def finish(self) -> pa.RecordBatch:
        return self._window() if self._held else _no_rows(self._layout)

    def _window(self) -> pa.RecordBatch:
        """Return the rows of the documents in the window, and begin the next window."""
        held, size = self._held, self._size
        documents = Documents(
            about=_joined(self._layout.about, [one.about for one in held]),
            input_ids=pa.concat_arrays([one.input_ids for one in held]),
        )
        values, offsets = flat(documents.input_ids)
        lengths = np.diff(offsets)
        self.cut += int((lengths > size).sum())
        document, chunk = numbered(np.maximum(-(-lengths // size), 1))
        begin = chunk * size
        length = np.minimum(lengths[document] - begin, size)
        row = _fitted(length, size)
        # Rows in the order of their first documents; of those that one document fills, its own.
        order = np.lexsort((chunk, document, row))
        changes = np.flatnonzero(np.diff(row[order])) + 1
        begins = order[np.append(0, changes)]  # of each row, its first piece
        rank = np.empty(len(begins), np.int64)
        rank[np.lexsort((chunk[begins], document[begins]))] = np.arange(len(begins))
        row = rank[row]
        order = np.lexsort((chunk, document, row))
        document, begin, length, row = (one[order] for one in (document, begin, length, row))
        bounds = np.searchsorted(row, np.arange(len(begins) + 1))
        piece, place = numbered(length)
        rows = _packed(
            self._layout,
            values[(offsets[document] + begin)[piece] + place],
            _described(self._layout, documents, document, begin, length),
            bounds,
            np.diff(np.append(0, np.cumsum(length))[bounds]),
        )
        self._held, self._held_ids, self._held_documents = [], 0, 0
        return rows


def _fitted(lengths: Numbers, size: int) -> Numbers:
    """Return the row of each piece of a window; pieces come in the order of their documents."""
    filled = np.flatnonzero(lengths)
    if not filled.size:
        return np.zeros(len(lengths), np.int64)
    found = pa.py_buffer(best_fit(pa.py_buffer(lengths[filled]), size))
    rows: Numbers = np.frombuffer(found, np.int64)
    # An empty piece goes where the one before it is; at the beginning, with the first other.
    before = np.maximum(np.searchsorted(filled, np.arange(len(lengths)), side="right") - 1, 0)
    fitted: Numbers = rows[before]
    return fitted


def _joined(schema: pa.Schema, batches: list[pa.RecordBatch]) -> pa.RecordBatch:
    if len(batches) == 1:
        return batches[0]
    if not batches:
        return pa.RecordBatch.from_pylist([], schema)
    columns = zip(*(one.columns for one in batches), strict=True)
    return pa.record_batch([pa.concat_arrays(column) for column in columns], schema)


def _described(
    layout: ExportLayout, documents: Documents, document: Numbers, begin: Numbers, size: Numbers
) -> pa.StructArray:
    """Return the pieces of the documents of these numbers, as in the column ``documents``."""
    if documents.begins is not None:
        begin = begin + documents.begins[document]
    columns = _columns(layout, documents, document)
    columns[OFFSET] = pa.array(begin, pa.uint64())
    columns[LENGTH] = pa.array(size, pa.uint64())
    fields = [one for one in layout.piece if one.name in columns]
    return pa.StructArray.from_arrays([columns[one.name] for one in fields], fields=fields)


def _packed(
    layout: ExportLayout, values: Ids, pieces: pa.StructArray, bounds: Numbers, lengths: Numbers
) -> pa.RecordBatch:
    """Return packed rows, filled up if there is a pad token.

    Args:
        layout: the layout of the rows.
        values: the ids of all rows.
        pieces: the pieces of documents.
        bounds: where among the pieces each row begins and the last one ends.
        lengths: the number of ids of each row.
    """
    size, sizes = layout.settings.pack or 0, lengths
    if layout.pad is not None and (lengths < size).any():
        sizes = np.full(len(lengths), size)
        row, place = numbered(lengths)
        padded = np.full(len(lengths) * size, layout.pad, values.dtype)
        padded[row * size + place] = values
        values = padded
    columns: dict[str, pa.Array] = {NUM_TOKENS: pa.array(lengths, pa.uint32())}
    if layout.describes:
        kind = layout.schema.field(DOCUMENTS).type
        columns[DOCUMENTS] = pa.ListArray.from_arrays(
            pa.array(bounds, pa.int32()), pieces, type=kind
        )
        columns |= added_columns(
            layout.settings.add_column,
            lengths=pieces.field(LENGTH).to_numpy().astype(np.int64),
            bounds=bounds - bounds[0],
            sizes=sizes,
        )
    rows = lists_of(pa.array(values), np.append(0, np.cumsum(sizes)), layout.ids_type)
    return _batch(layout, columns, rows)


def without_padding(input_ids: pa.ListArray, num_tokens: pa.Array) -> tuple[Ids, Numbers, Ids]:
    """Return the ids of documents, the bounds of the rows among these ids, and the padding.

    Args:
        input_ids: the ids of rows.
        num_tokens: how many ids of each row are of documents; the rest is padding.
    """
    values, bounds = flat(input_ids)
    sizes, lengths = np.diff(bounds), num_tokens.to_numpy().astype(np.int64)
    if np.array_equal(sizes, lengths):
        return values, bounds, values[:0]
    of_documents = np.arange(len(values)) < np.repeat(bounds[:-1] + lengths, sizes)
    ends = np.cumsum(np.minimum(sizes, lengths))
    return values[of_documents], np.append(0, ends), values[~of_documents]


def numbered(counts: Numbers) -> tuple[Numbers, Numbers]:
    """Return, for ``counts`` copies of items, the item and the number of each copy, from 0.

    >>> [numbers.tolist() for numbers in numbered(np.array([2, 1]))]
    [[0, 0, 1], [0, 1, 0]]
    """
    of = np.repeat(np.arange(len(counts)), counts)
    begins = np.cumsum(counts) - counts
    return of, np.arange(len(of)) - begins[of]


def _columns(
    layout: ExportLayout, documents: Documents, numbers: Numbers | None = None
) -> dict[str, pa.Array]:
    """Return the columns about all documents, or those of these numbers, by name."""
    if not layout.describes:
        return {}
    about = documents.about if numbers is None else documents.about.take(pa.array(numbers))
    return dict(zip(about.schema.names, about.columns, strict=True))


def _batch(
    layout: ExportLayout, columns: dict[str, pa.Array], input_ids: pa.ListArray
) -> pa.RecordBatch:
    """Return rows of these ids and columns; without ``num_tokens``, add the lengths of the ids."""
    schema = layout.schema
    values, offsets = flat(input_ids)
    ids = lists_of(pa.array(values), offsets, layout.ids_type)
    columns = {NUM_TOKENS: pa.array(np.diff(offsets), pa.uint32()), **columns, INPUT_IDS: ids}
    return pa.record_batch([columns[name] for name in schema.names], schema=schema)


def _no_rows(layout: ExportLayout) -> pa.RecordBatch:
    return _joined(layout.schema, [])
