"""Documents become rows: a row a document, chunks of them, or packed rows.

Rows depend on the documents and their order alone, not on the blocks in which they come.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from bpe._native import best_fit
from pipelines.corpus.documents.types import parse_type
from pipelines.encode.rows import (
    ID,
    INPUT_IDS,
    NUM_TOKENS,
    as_bytes,
    as_lists,
    flat,
    list_type,
    lists_of,
)
from pipelines.errors import RecordError
from pipelines.export.columns import LIST, added_columns, numbered
from pipelines.settings import MAX_PACK, ExportSettings

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pipelines.encode.rows import Ids, Numbers

CHUNK_INDEX, DOCUMENTS = "chunk_index", "documents"
OFFSET, LENGTH = "offset", "length"
ABOUT, BEGIN = "about", "begin"
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
    def describes(self) -> bool:
        """Return True unless rows are packed in a format other than Parquet."""
        return self.settings.to == "parquet" or self.settings.pack is None

    @property
    def about(self) -> pa.Schema:
        """Return the columns that are the same in all rows of a document."""
        passthrough = ((name, parse_type(kind)) for name, kind in self.columns.items())
        return pa.schema([(ID, pa.string()), *passthrough])

    @property
    def documents(self) -> pa.Schema:
        """Return the columns of documents, or of pieces of them, before they become rows.

        ``about`` has the columns of that name, ``input_ids`` the ids as bytes (`as_bytes`), and
        ``begin`` the position of the piece in its document, in ids.
        """
        about = pa.field(ABOUT, pa.struct([*self.about]))
        return pa.schema([about, (INPUT_IDS, pa.large_binary()), (BEGIN, pa.int64())])

    def ids(self, documents: pa.RecordBatch) -> tuple[Ids, Numbers]:
        """Return the ids of all documents, and the offsets of the documents in these ids."""
        return flat(as_lists(documents[INPUT_IDS], self.ids_type))

    def lengths(self, documents: pa.RecordBatch) -> Numbers:
        """Return the number of ids of each document or piece."""
        size = np.dtype(self.id_type).itemsize
        lengths: Numbers = pc.binary_length(documents[INPUT_IDS]).to_numpy() // size
        return lengths

    @property
    def places(self) -> list[pa.Field]:
        """Return the columns that say where in its document a piece is."""
        if self.settings.pack is not None:
            return [pa.field(OFFSET, pa.uint64()), pa.field(LENGTH, pa.uint64())]
        chunks = self.settings.max_tokens is not None
        return [pa.field(CHUNK_INDEX, pa.uint32())] if chunks else []

    @property
    def piece(self) -> list[pa.Field]:
        """Return the columns about a document, or about each of its pieces in a packed row."""
        first, *passthrough = self.about
        return [first, *self.places, *passthrough]

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


def split(
    documents: pa.RecordBatch, place: int, layout: ExportLayout
) -> tuple[pa.RecordBatch, pa.RecordBatch]:
    """Return what is before the token id of this number, and the rest.

    Empty documents at this place are before, as they belong to the row that ends there.
    """
    ends = np.cumsum(layout.lengths(documents))
    at = int(np.searchsorted(ends, place, side="right"))
    if at == len(ends):
        return documents, documents.slice(at)
    within = place - (int(ends[at - 1]) if at else 0)
    before = documents.slice(0, at + (within > 0))
    return _cut(before, 0, place, layout), _cut(documents.slice(at), within, None, layout)


def _cut(
    documents: pa.RecordBatch, begin: int, end: int | None, layout: ExportLayout
) -> pa.RecordBatch:
    """Return all documents, with only the token ids from number ``begin`` to before ``end``."""
    values, offsets = layout.ids(documents)
    bounds = np.clip(offsets, begin, end)
    lists = lists_of(pa.array(values[begin:end]), bounds - begin, layout.ids_type)
    begins = documents[BEGIN].to_numpy() + bounds[:-1] - offsets[:-1]
    columns = [documents[ABOUT], as_bytes(lists), pa.array(begins)]
    return pa.record_batch(columns, schema=layout.documents)


class RowMaker:
    """The maker of the rows of consecutive documents, which come in any portions.

    This one makes a row for each document, or for each chunk of a document; others pack rows.

    Attributes:
        left: the ids that are in no row, known after `finish`.
        dropped_documents: documents of which nothing is in a row, known after `finish`.
        cut: documents longer than a row, where only these are cut, or of which a row was dropped.
    """

    def __init__(self, layout: ExportLayout) -> None:
        self._layout = layout
        self._size = layout.settings.pack or layout.settings.max_tokens or sys.maxsize
        self.left: Ids = np.zeros(0, np.uint32)
        self.dropped_documents = self.cut = 0
        self._held: list[pa.RecordBatch] = []  # until their rows are complete
        self._held_ids = self._held_documents = 0

    def add(self, documents: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
        """Add the next documents; yield the rows that are complete.

        Raises:
            RecordError: too many documents fall into one row.
        """
        values, offsets = self._layout.ids(documents)
        document, begin, length = _pieces(np.diff(offsets), self._size)
        yield self._rows(documents, values, document, begin, length, np.arange(len(document)))

    def finish(self) -> Iterator[pa.RecordBatch]:
        """Yield the last rows, after all documents."""
        yield from ()

    def _hold(self, documents: pa.RecordBatch) -> None:
        if len(documents):
            self._held.append(documents)
            self._held_ids += int(self._layout.lengths(documents).sum())
            self._held_documents += len(documents)

    def _release(self) -> pa.RecordBatch:
        """Return all documents that are held, of which there are some, and hold none."""
        (documents,) = pa.Table.from_batches(self._held).combine_chunks().to_batches()
        self._held, self._held_ids, self._held_documents = [], 0, 0
        return documents

    def _rows(
        self,
        documents: pa.RecordBatch,
        values: Ids,
        document: Numbers,
        begin: Numbers,
        length: Numbers,
        row: Numbers,
    ) -> pa.RecordBatch:
        """Return rows of these pieces, filled up if there is a pad token.

        Args:
            documents: the documents of the rows.
            values: the ids of all rows.
            document: the document of each piece.
            begin: where in the document the piece begins, in ids.
            length: the number of ids of the piece.
            row: the row of the piece; pieces are in the order of rows.
        """
        layout, settings = self._layout, self._layout.settings
        bounds = np.append(np.flatnonzero(np.diff(row, prepend=-1)), len(row))
        sizes = lengths = np.diff(np.append(0, np.cumsum(length))[bounds])
        if layout.pad is not None and (lengths < self._size).any():
            sizes = np.full(len(lengths), self._size)
            of, place = numbered(lengths)
            padded = np.full(len(lengths) * self._size, layout.pad, values.dtype)
            padded[of * self._size + place] = values
            values = padded
        lists = lists_of(pa.array(values), np.append(0, np.cumsum(sizes)), layout.ids_type)
        columns = {NUM_TOKENS: pa.array(lengths, pa.uint32()), INPUT_IDS: lists}
        if layout.describes:
            about, places = documents[ABOUT], list[pa.Array]()
            if layout.places:
                offset, index = documents[BEGIN].to_numpy()[document] + begin, begin // self._size
                known = {OFFSET: offset, LENGTH: length, CHUNK_INDEX: index}
                places = [pa.array(known[field.name], field.type) for field in layout.places]
                about = about.take(pa.array(document))
            first, *passthrough = about.flatten()
            described = pa.StructArray.from_arrays(
                [first, *places, *passthrough], fields=layout.piece
            )
            if settings.pack is None:
                columns |= zip(described.type.names, described.flatten(), strict=True)
            else:
                columns[DOCUMENTS] = pa.ListArray.from_arrays(
                    pa.array(bounds, pa.int32()),
                    described,
                    type=layout.schema.field(DOCUMENTS).type,
                )
            columns |= added_columns(
                settings.add_column, lengths=length, bounds=bounds, sizes=sizes
            )
        names = layout.schema.names
        return pa.record_batch([columns[name] for name in names], schema=layout.schema)


def row_maker(layout: ExportLayout) -> RowMaker:
    """Return a maker of rows of this layout."""
    if layout.settings.best_fit:
        return _BestFitRows(layout)
    if layout.settings.pack is not None:
        return _JoinedRows(layout)
    return RowMaker(layout)


class _JoinedRows(RowMaker):
    """The maker of rows of one length, cut out of the joined documents.

    An empty document belongs to the row in which the document before it ends. So the last row is
    held back even when the row is full: an empty document that comes next belongs to the row.
    """

    def add(self, documents: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
        self._hold(documents)
        if self._held_ids > self._size:
            yield self._cut(-(-self._held_ids // self._size) - 1)
        if self._held_documents > MAX_ROW_DOCUMENTS:
            raise RecordError(
                f"document {documents[ABOUT][-1][ID].as_py()!r}: more than {MAX_ROW_DOCUMENTS} "
                "documents, empty ones among them, fall into one packed row: leave empty documents "
                "out of the corpus, or encode with `append_token`, which gives each an id"
            )

    def finish(self) -> Iterator[pa.RecordBatch]:
        is_short = self._held_ids < self._size
        if is_short and self._layout.settings.pack_remainder == "drop" and self._held:
            documents = self._release()
            self.cut = int(documents[BEGIN][0].as_py() > 0)
            self.dropped_documents = len(documents) - self.cut
            self.left, _ = self._layout.ids(documents)
        elif self._held_documents:
            yield self._cut(1)

    def _cut(self, rows: int) -> pa.RecordBatch:
        """Return the first rows of the documents that are held, and hold the rest."""
        size = self._size
        documents, rest = split(self._release(), rows * size, self._layout)
        self._hold(rest)
        values, offsets = self._layout.ids(documents)
        starts, ends = offsets[:-1], offsets[1:]
        first = np.where(ends > starts, starts // size, np.maximum(-(-starts // size) - 1, 0))
        last = np.maximum((ends - 1) // size, first)
        document, number = numbered(last - first + 1)
        row = first[document] + number
        begin = np.maximum(row * size, starts[document])
        end = np.minimum((row + 1) * size, ends[document])
        within = begin - starts[document]
        return self._rows(documents, values, document, within, end - begin, row)


class _BestFitRows(RowMaker):
    """The maker of packed rows that never cut a document which would fit a row.

    Documents are put into rows a window at a time (`WINDOW_IDS`, `WINDOW_DOCUMENTS`). A document
    longer than a row is cut into full rows and what is left; this and all shorter documents go
    into rows by best fit (``native/pack/best_fit.h``). An empty document goes where the one before
    it ends. Within a window, the rows are in the order of the first document of each, and the
    documents of a row in their own order.
    """

    def add(self, documents: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
        while len(documents):
            ends = np.cumsum(self._layout.lengths(documents))
            full = int(np.searchsorted(ends, WINDOW_IDS - self._held_ids)) + 1
            taken = min(full, WINDOW_DOCUMENTS - self._held_documents, len(ends))
            self._hold(documents.slice(0, taken))
            documents = documents.slice(taken)
            if self._held_ids >= WINDOW_IDS or self._held_documents >= WINDOW_DOCUMENTS:
                yield self._window()

    def finish(self) -> Iterator[pa.RecordBatch]:
        if self._held:
            yield self._window()

    def _window(self) -> pa.RecordBatch:
        """Return the rows of the documents that are held."""
        size, documents = self._size, self._release()
        values, offsets = self._layout.ids(documents)
        lengths = np.diff(offsets)
        self.cut += int((lengths > size).sum())
        document, begin, length = _pieces(lengths, size)
        # Pieces are in the order of documents: that of rows is the order of their first pieces.
        _, first, row = np.unique(_fitted(length, size), return_index=True, return_inverse=True)
        row = np.argsort(np.argsort(first))[row]
        order = np.argsort(row, kind="stable")
        document, begin, length, row = (one[order] for one in (document, begin, length, row))
        piece, place = numbered(length)
        values = values[(offsets[document] + begin)[piece] + place]
        return self._rows(documents, values, document, begin, length, row)


def _pieces(lengths: Numbers, size: int) -> tuple[Numbers, Numbers, Numbers]:
    """Return the document, begin and length of pieces of at most ``size`` ids, one at least."""
    document, number = numbered(np.maximum(-(-lengths // size), 1))
    return document, number * size, np.minimum(lengths[document] - number * size, size)


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
