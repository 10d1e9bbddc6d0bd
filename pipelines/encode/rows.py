"""How the ids of documents become rows: a row a document, chunks of them, or packed rows.

Rows depend on the documents of their split alone, not on the blocks in which they come. What is
made here, `pipelines.encode.joining` puts together again.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Protocol, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from bpe._native import best_fit
from pipelines.encode.columns import LIST, added_columns
from pipelines.errors import RecordError
from pipelines.settings import MAX_PACK

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from pipelines.settings import RowSettings

Numbers: TypeAlias = npt.NDArray[np.int64]
Ids: TypeAlias = npt.NDArray[np.unsignedinteger]  # uint16 or uint32

ID, KEY, INPUT_IDS, NUM_TOKENS = "id", "key", "input_ids", "num_tokens"
CHUNK_INDEX, DOCUMENTS = "chunk_index", "documents"
NUMBER, OFFSET, LENGTH = "number", "offset", "length"
KEY_FIELD = pa.field(KEY, pa.uint64())
# Best-fit packing puts the documents in order among these, which end with the document that takes
# them past one of the limits: more give fuller rows, and take more memory.
WINDOW_IDS = 1 << 24
WINDOW_DOCUMENTS = 1 << 19
MAX_ROW_DOCUMENTS = MAX_PACK + (1 << 20)  # as many empty ones as others


@dataclass(frozen=True, kw_only=True)
class RowLayout:
    """What the rows of a corpus look like.

    Attributes:
        settings: how documents become rows.
        id_type: ``uint16`` or ``uint32``.
        kept: the columns that pass through; the last is `KEY` where `has_keys`.
        prepend: the id before those of each document, or None.
        append: the id behind them, or None.
        pad: the id that fills the last packed row, or None.
    """

    settings: RowSettings
    id_type: str
    kept: tuple[pa.Field, ...] = ()
    prepend: int | None = None
    append: int | None = None
    pad: int | None = None

    @property
    def schema(self) -> pa.Schema:
        """The columns of a part."""
        document = [*_document_columns(self.settings), *self.kept]
        if self.settings.pack is not None:
            document = [pa.field(DOCUMENTS, pa.list_(pa.struct(document)))]
        added = [pa.field(name, LIST) for name in self.settings.add_column]
        return pa.schema([*document, *_id_columns(self.id_type, self.settings), *added])

    @property
    def has_keys(self) -> bool:
        """Whether each row is one document, with its key."""
        return has_keys(self.settings)

    @property
    def own(self) -> tuple[str, ...]:
        """The columns of a part that do not pass through; none holds nulls."""
        if self.settings.pack is not None:
            return tuple(self.schema.names)
        kept = {field.name for field in self.kept} - ({KEY} if self.has_keys else set())
        return tuple(name for name in self.schema.names if name not in kept)


# The columns of our own, in their order; those that pass through stand between the two. What makes
# rows fills them by name.


def _document_columns(settings: RowSettings) -> list[pa.Field]:
    """What is said of a document; of each piece of one where rows are packed."""
    columns = [pa.field(ID, pa.string())]
    if settings.best_fit:
        columns += [pa.field(NUMBER, pa.uint64())]
    if settings.pack is not None:
        columns += [pa.field(OFFSET, pa.uint64()), pa.field(LENGTH, pa.uint64())]
    elif settings.max_tokens is not None:
        columns += [pa.field(CHUNK_INDEX, pa.uint32())]
    return columns


def _id_columns(id_type: str, settings: RowSettings) -> list[pa.Field]:
    """What each row has."""
    # Without levels of definition, ids are read 1.3 times as fast. The plain form is for readers
    # that know no other.
    nullable = settings.parquet_encoding == "plain"
    element = pa.field("element", pa.type_for_alias(id_type), nullable=nullable)
    return [pa.field(INPUT_IDS, pa.list_(element)), pa.field(NUM_TOKENS, pa.uint32())]


@dataclass(frozen=True, kw_only=True)
class Dropped:
    """What of a split is in no row.

    Attributes:
        tokens: ids.
        documents: documents of which nothing is in a row.
        cut: documents of which only the beginning is; one at most in a split.
    """

    tokens: int = 0
    documents: int = 0
    cut: int = 0

    def __add__(self, other: Dropped) -> Dropped:
        return Dropped(
            tokens=self.tokens + other.tokens,
            documents=self.documents + other.documents,
            cut=self.cut + other.cut,
        )


@dataclass(frozen=True, kw_only=True)
class Documents:
    """Consecutive documents, in columns of equal length.

    Attributes:
        ids: of the documents.
        kept: the columns that pass through.
        input_ids: the token ids of each, lists of the layout's type of ids.
    """

    ids: pa.StringArray
    kept: tuple[pa.Array, ...]
    input_ids: pa.ListArray


class RowMaker(Protocol):
    """Makes the rows of a split out of its documents, which come in any portions.

    Attributes:
        dropped: what is in no row, known when `finish` was called.
        cut: documents that are longer than a row, where only these are cut.
        remainder: the row that is carried to the last part, likewise; None where there is none.
    """

    dropped: Dropped
    cut: int
    remainder: pa.RecordBatch | None

    def add(self, documents: Documents) -> pa.RecordBatch:
        """The rows that are complete with the documents that come next.

        Raises:
            RecordError: there is a document that no row can hold.
        """
        ...

    def finish(self) -> pa.RecordBatch:
        """The rows that are left when the split ends."""
        ...


def reserved(settings: RowSettings) -> tuple[str, ...]:
    """The names that no column that passes through can have: those of the columns beside it."""
    beside = [] if settings.pack is not None else _id_columns("uint32", settings)
    if has_keys(settings):
        beside.append(KEY_FIELD)
    return tuple(field.name for field in [*_document_columns(settings), *beside])


def has_keys(settings: RowSettings) -> bool:
    """Whether each row is one document, with its key (`pipelines.corpus.keys`)."""
    return settings.pack is None and settings.max_tokens is None


def row_maker(layout: RowLayout) -> RowMaker:
    """What makes rows of this layout."""
    if layout.settings.best_fit:
        return _BestFitRows(layout)
    if layout.settings.pack is not None:
        return _PackedRows(layout, layout.settings.pack)
    return _DocumentRows(layout)


def with_ends(lists: pa.ListArray, *, prepend: int | None, append: int | None) -> pa.ListArray:
    """Each list with an id before and an id behind it, where there is one to add.

    The ids keep their type, which must hold those that are added.

    >>> with_ends(pa.array([[5, 6], []], pa.list_(pa.uint32())), prepend=1, append=2).to_pylist()
    [[1, 5, 6, 2], [1, 2]]
    """
    added = (prepend is not None) + (append is not None)
    if not added:
        return lists
    values, offsets = flat(lists)
    offsets += added * np.arange(len(offsets))
    ids = np.empty(offsets[-1], values.dtype)
    old = np.ones(len(ids), bool)
    for id_, places in ((prepend, offsets[:-1]), (append, offsets[1:] - 1)):
        if id_ is not None:
            ids[places] = id_
            old[places] = False
    ids[old] = values
    return lists_of(pa.array(ids), offsets)


class _DocumentRows:
    """A row for each document, or for each chunk of one."""

    def __init__(self, layout: RowLayout) -> None:
        self._layout = layout
        self.dropped = Dropped()
        self.cut = 0
        self.remainder: pa.RecordBatch | None = None

    def add(self, documents: Documents) -> pa.RecordBatch:
        size, columns = self._layout.settings.max_tokens, _columns(self._layout, documents)
        if size is None:
            return _batch(self._layout, columns, documents.input_ids)
        values, offsets = flat(documents.input_ids)
        chunks = np.maximum(-(-np.diff(offsets) // size), 1)  # none for an empty one would lose it
        document, index = numbered(chunks)
        begins = offsets[document] + index * size
        rows = lists_of(pa.array(values), np.append(begins, offsets[-1]))
        columns = _taken(columns, document) | {CHUNK_INDEX: pa.array(index, pa.uint32())}
        return _batch(self._layout, columns, rows)

    def finish(self) -> pa.RecordBatch:
        return _no_rows(self._layout)


class _PackedRows:
    """Rows of one length, each of consecutive documents or pieces of them.

    An empty document stands in the row in which the one before it ends. So the last row is held
    back even when it is full: what comes next may belong to it.
    """

    def __init__(self, layout: RowLayout, size: int) -> None:
        self._layout = layout
        self._size = size
        # Of the row that is held back:
        self._values: list[Ids] = []
        self._pieces: list[pa.StructArray] = []
        self._held = 0  # ids
        self._held_pieces = 0
        self.dropped = Dropped()
        self.cut = 0
        self.remainder: pa.RecordBatch | None = None

    def add(self, documents: Documents) -> pa.RecordBatch:
        return self.add_pieces(documents, 0)

    def add_pieces(self, documents: Documents, base: Numbers | int) -> pa.RecordBatch:
        """The same for pieces of documents; ``base`` says where in its document each begins."""
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
        columns = _taken(_columns(self._layout, documents), document)
        base = np.broadcast_to(base, starts.shape)
        columns[OFFSET] = pa.array(base[document] + begin - starts[document], pa.uint64())
        columns[LENGTH] = pa.array(end - begin, pa.uint64())
        pieces = _pieces(self._layout, columns)
        complete = max(-(-(self._held + len(values)) // size) - 1, 0)
        taken = int(np.searchsorted(row, complete))
        self._check_documents(row, documents, document)
        if not complete:
            self._hold(values, pieces)
            return _no_rows(self._layout)
        bounds = np.searchsorted(row, np.arange(complete + 1))
        bounds[1:] += self._held_pieces
        cut = complete * size - self._held
        rows = self._rows(
            np.concatenate([*self._values, values[:cut]]),
            pa.concat_arrays([*self._pieces, pieces.slice(0, taken)]),
            bounds,
        )
        self._values, self._pieces, self._held, self._held_pieces = [], [], 0, 0
        self._hold(values[cut:].copy(), pieces.slice(taken))
        return rows

    def finish(self) -> pa.RecordBatch:
        full = self._held == self._size
        if not self._held_pieces:
            return _no_rows(self._layout)
        pieces = pa.concat_arrays(self._pieces)
        if full or self._layout.settings.pack_remainder != "drop":
            row = self._rows(np.concatenate(self._values), pieces, np.array([0, self._held_pieces]))
            if full or not self._layout.settings.carries:
                return row
            self.remainder = row
            return _no_rows(self._layout)
        cut = int(pieces.field(OFFSET)[0].as_py() > 0)
        self.dropped += Dropped(tokens=self._held, documents=len(pieces) - cut, cut=cut)
        return _no_rows(self._layout)

    def _hold(self, values: Ids, pieces: pa.StructArray) -> None:
        self._values.append(values)
        self._pieces.append(pieces)
        self._held += len(values)
        self._held_pieces += len(pieces)

    def _check_documents(self, row: Numbers, documents: Documents, document: Numbers) -> None:
        counts = np.bincount(row)
        counts[:1] += self._held_pieces
        if (over := np.flatnonzero(counts > MAX_ROW_DOCUMENTS)).size:
            place = document[np.searchsorted(row, over[0], side="right") - 1]
            raise RecordError(
                f"document {documents.ids[place].as_py()!r}: more than {MAX_ROW_DOCUMENTS} "
                "documents, empty ones among them, fall into one packed row: leave empty documents "
                "out of the input, or give each an id with `append_token`"
            )

    def _rows(self, values: Ids, pieces: pa.StructArray, bounds: Numbers) -> pa.RecordBatch:
        rows = len(bounds) - 1
        ends = np.minimum(self._size * np.arange(rows + 1), len(values))
        return _packed(self._layout, values, pieces, bounds, np.diff(ends))


class _BestFitRows:
    """Packed rows of which none ends within a document that would fit a row.

    Documents are put into rows a window at a time (`WINDOW_IDS`, `WINDOW_DOCUMENTS`). A document
    longer than a row is cut into full rows and what is left; this and all shorter documents go
    into rows by best fit (`bpe.reference.pack`). An empty document goes where the one before it
    ends. Within a window, the rows are in the order of the first document of each, and the
    documents of a row in their own order: in the column ``number``.
    """

    def __init__(self, layout: RowLayout) -> None:
        self._layout = layout
        self._size = layout.settings.pack or 0
        self._held: list[Documents] = []
        self._held_ids = self._held_documents = 0
        self._first = 0  # the number of the first document held
        self.dropped = Dropped()
        self.cut = 0
        self.remainder: pa.RecordBatch | None = None

    def add(self, documents: Documents) -> pa.RecordBatch:
        made = []
        while len(documents.ids):
            ends = np.cumsum(pc.list_value_length(documents.input_ids).to_numpy().astype(np.int64))
            full = int(np.searchsorted(ends, WINDOW_IDS - self._held_ids)) + 1
            taken = min(full, WINDOW_DOCUMENTS - self._held_documents, len(ends))
            self._held.append(_sliced(documents, 0, taken))
            self._held_ids += int(ends[taken - 1])
            self._held_documents += taken
            documents = _sliced(documents, taken, len(ends))
            if self._held_ids >= WINDOW_IDS or self._held_documents >= WINDOW_DOCUMENTS:
                made.append(self._window())
        return _joined(self._layout, made)

    def finish(self) -> pa.RecordBatch:
        return self._window() if self._held else _no_rows(self._layout)

    def _window(self) -> pa.RecordBatch:
        """The rows of the documents that are held."""
        held, size = self._held, self._size
        documents = Documents(
            ids=pa.concat_arrays([one.ids for one in held]),
            kept=tuple(
                pa.concat_arrays(columns)
                for columns in zip(*(one.kept for one in held), strict=True)
            ),
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
        columns = _taken(_columns(self._layout, documents), document)
        columns[NUMBER] = pa.array(self._first + document, pa.uint64())
        columns[OFFSET] = pa.array(begin, pa.uint64())
        columns[LENGTH] = pa.array(length, pa.uint64())
        bounds = np.searchsorted(row, np.arange(len(begins) + 1))
        piece, place = numbered(length)
        rows = _packed(
            self._layout,
            values[(offsets[document] + begin)[piece] + place],
            _pieces(self._layout, columns),
            bounds,
            np.diff(np.append(0, np.cumsum(length))[bounds]),
        )
        self._first += len(lengths)
        self._held, self._held_ids, self._held_documents = [], 0, 0
        return rows


def _fitted(lengths: Numbers, size: int) -> Numbers:
    """The row of each piece of a window, which has the pieces of its documents in their order."""
    filled = np.flatnonzero(lengths)
    if not filled.size:
        return np.zeros(len(lengths), np.int64)
    found = pa.py_buffer(best_fit(pa.py_buffer(lengths[filled]), size))
    rows: Numbers = np.frombuffer(found, np.int64)
    # An empty piece goes where the one before it is; at the beginning, with the first other.
    before = np.maximum(np.searchsorted(filled, np.arange(len(lengths)), side="right") - 1, 0)
    fitted: Numbers = rows[before]
    return fitted


def _sliced(documents: Documents, begin: int, end: int) -> Documents:
    size = end - begin
    return Documents(
        ids=documents.ids.slice(begin, size),
        kept=tuple(column.slice(begin, size) for column in documents.kept),
        input_ids=documents.input_ids.slice(begin, size),
    )


def _joined(layout: RowLayout, batches: list[pa.RecordBatch]) -> pa.RecordBatch:
    if len(batches) == 1:
        return batches[0]
    table = pa.Table.from_batches(batches, layout.schema).combine_chunks()
    return table.to_batches()[0] if len(table) else _no_rows(layout)


def _pieces(layout: RowLayout, columns: dict[str, pa.Array]) -> pa.StructArray:
    """Pieces of documents out of what is said of each, by name."""
    fields = list(layout.schema.field(DOCUMENTS).type.value_type)
    return pa.StructArray.from_arrays([columns[one.name] for one in fields], fields=fields)


def _packed(
    layout: RowLayout, values: Ids, pieces: pa.StructArray, bounds: Numbers, lengths: Numbers
) -> pa.RecordBatch:
    """Packed rows, filled up where there is a pad token.

    Args:
        layout: of the rows.
        values: the ids of all rows.
        pieces: of documents.
        bounds: where among the pieces each row begins and the last one ends.
        lengths: ids of each row.
    """
    kind = layout.schema.field(DOCUMENTS).type
    documents = pa.ListArray.from_arrays(pa.array(bounds, pa.int32()), pieces, type=kind)
    size, sizes = layout.settings.pack or 0, lengths
    if layout.pad is not None and (lengths < size).any():
        sizes = np.full(len(lengths), size)
        row, place = numbered(lengths)
        padded = np.full(len(lengths) * size, layout.pad, values.dtype)
        padded[row * size + place] = values
        values = padded
    columns = {DOCUMENTS: documents, NUM_TOKENS: pa.array(lengths, pa.uint32())}
    columns |= columns_of(documents, sizes, layout.settings.add_column)
    return _batch(layout, columns, lists_of(pa.array(values), np.append(0, np.cumsum(sizes))))


def carried_rows(
    layout: RowLayout, remainders: Iterable[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    """The rows of the part that has what is left of the others.

    Args:
        layout: of the rows.
        remainders: of the other parts, in their order.
    """
    settings = replace(layout.settings, pack_remainder="keep")
    maker = _PackedRows(replace(layout, settings=settings), settings.pack or 0)
    for row in remainders:
        pieces = row.column(DOCUMENTS).flatten()
        lengths = pieces.field(LENGTH).to_numpy().astype(np.int64)
        values, _ = flat(row.column(INPUT_IDS))
        documents = Documents(
            ids=pieces.field(ID),
            kept=tuple(pieces.field(field.name) for field in layout.kept),
            input_ids=lists_of(pa.array(values), np.append(0, np.cumsum(lengths))),
        )
        yield maker.add_pieces(documents, pieces.field(OFFSET).to_numpy().astype(np.int64))
    yield maker.finish()


def columns_of(
    documents: pa.ListArray, sizes: Numbers, names: tuple[str, ...]
) -> dict[str, pa.ListArray]:
    """The columns ``add_column`` of packed rows with these ``documents`` and numbers of ids."""
    bounds = documents.offsets.to_numpy().astype(np.int64)
    lengths = documents.flatten().field(LENGTH).to_numpy().astype(np.int64)
    return added_columns(names, lengths=lengths, bounds=bounds - bounds[0], sizes=sizes)


def flat(lists: pa.ListArray) -> tuple[Ids, Numbers]:
    """The ids of all lists, and where in them each list begins and the last one ends."""
    offsets = lists.offsets.to_numpy().astype(np.int64)
    return lists.flatten().to_numpy(), offsets - offsets[0]


def without_padding(input_ids: pa.ListArray, num_tokens: pa.Array) -> tuple[Ids, Numbers, Ids]:
    """The ids of documents, where in them each row begins and the last one ends; and the padding.

    Args:
        input_ids: of rows.
        num_tokens: how many ids of each are of documents; those behind them are padding.
    """
    values, bounds = flat(input_ids)
    sizes, lengths = np.diff(bounds), num_tokens.to_numpy().astype(np.int64)
    if np.array_equal(sizes, lengths):
        return values, bounds, values[:0]
    of_documents = np.arange(len(values)) < np.repeat(bounds[:-1] + lengths, sizes)
    ends = np.cumsum(np.minimum(sizes, lengths))
    return values[of_documents], np.append(0, ends), values[~of_documents]


def lists_of(values: pa.Array, offsets: Numbers) -> pa.ListArray:
    """The lists that `flat` gives ``values`` and ``offsets`` of."""
    return pa.ListArray.from_arrays(pa.array(offsets, pa.int32()), values)


def numbered(counts: Numbers) -> tuple[Numbers, Numbers]:
    """Which thing each of ``counts`` copies is of, and its number among the copies of it.

    >>> [numbers.tolist() for numbers in numbered(np.array([2, 1]))]
    [[0, 0, 1], [0, 1, 0]]
    """
    of = np.repeat(np.arange(len(counts)), counts)
    begins = np.cumsum(counts) - counts
    return of, np.arange(len(of)) - begins[of]


def _columns(layout: RowLayout, documents: Documents) -> dict[str, pa.Array]:
    """What all rows of a document say of it, by name."""
    kept = zip((field.name for field in layout.kept), documents.kept, strict=True)
    return {ID: documents.ids, **dict(kept)}


def _taken(columns: dict[str, pa.Array], rows: Numbers) -> dict[str, pa.Array]:
    of = pa.array(rows)
    return {name: column.take(of) for name, column in columns.items()}


def _batch(
    layout: RowLayout, columns: dict[str, pa.Array], input_ids: pa.ListArray
) -> pa.RecordBatch:
    """Rows of the layout: the ids, ``columns`` by name; the lengths of the ids, if not given."""
    schema = layout.schema
    values, offsets = flat(input_ids)
    kind = schema.field(INPUT_IDS).type
    ids = pa.ListArray.from_arrays(
        pa.array(offsets, pa.int32()), pa.array(values).cast(kind.value_type), type=kind
    )
    lengths = pa.array(np.diff(offsets), pa.uint32())
    columns = {NUM_TOKENS: lengths, **columns, INPUT_IDS: ids}
    return pa.record_batch([columns[name] for name in schema.names], schema=schema)


def _no_rows(layout: RowLayout) -> pa.RecordBatch:
    return pa.RecordBatch.from_pylist([], schema=layout.schema)
