"""Read Parquet files: each row is a document with its text in one column.

A row group belongs to the range that holds its first byte, computed from the sizes of the groups.
Rows are decoded a few at a time: memory is bounded by a few blocks, or by the largest value or page
of the file if this is larger.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import accumulate, islice
from typing import TYPE_CHECKING, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from pipelines.corpus.documents.block import (
    DEFAULT_ID_FIELD,
    RAW_BYTES,
    BadRecord,
    Block,
    ReadOptions,
    malformed_rows,
    text_block,
    well_formed,
)
from pipelines.corpus.documents.parquet_columns import (
    find_columns,
    holds_ids,
    is_text,
    kept_type,
    passthrough_column,
    value_type,
)
from pipelines.corpus.documents.stored import LostFileError, StoredBytes
from pipelines.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from pipelines.corpus.splits import FileRange

READ_AHEAD = 1 << 20  # bytes of a column that are read at once
MOST_ROWS = 8192  # decoded at once when values are small
MOST_ROWS_ENCODED = 65536  # of a column that stays dictionary-encoded: each batch copies it
MOST_ROWS_UNKNOWN = 64  # of a column whose values could be large and repeat in some other way
_NOT_FINITE = pa.array([b"nan", b"inf", b"-inf"], pa.large_binary())
_ERRORS = (pa.ArrowException, OSError, ValueError, MemoryError)


def read_parquet(source: FileRange, options: ReadOptions) -> Iterator[Block]:
    """Read the documents of the row groups that begin in ``source``.

    If the file is gone or has another size now, its unread part is one bad record.
    """
    row = taken = 0
    try:
        for block in _read(source, options):
            row = block.places[-1].as_py() + 1 if len(block) else row
            taken += block.input_bytes
            yield block
    except LostFileError as lost:
        reason = f"{lost.reason}, after row {row - 1}" if row else lost.reason
        bad = [BadRecord.lost(source, source.start, reason)]
        yield _no_rows(source, options, bad, input_bytes=source.size - taken)


def column_types(source: FileRange, names: Iterable[str]) -> dict[str, pa.DataType]:
    """Return the types of some columns of a file; empty if the file is no Parquet file.

    Raises:
        InputError: there is no such column, or its type does not pass through.
    """
    with StoredBytes(source) as stored:
        try:
            schema = pq.ParquetFile(stored).schema_arrow
        except _ERRORS:
            return {}  # a bad record, when it is read
    return {name: kept_type(source, schema, name) for name in names}


def _read(source: FileRange, options: ReadOptions) -> Iterator[Block]:
    with StoredBytes(source) as stored:
        try:
            file = pq.ParquetFile(
                stored,
                buffer_size=READ_AHEAD,
                pre_buffer=False,
                page_checksum_verification=True,
            )
            schema, groups = file.schema_arrow, _groups(source, file.metadata)
        except _ERRORS as error:
            # Every range of the file finds out; the first one says so.
            bad = [_no_parquet(source, stored, error)] if source.start == 0 else []
            yield _no_rows(source, options, bad, input_bytes=source.size)
            return
        yield from _Reader(source, options, stored, file, schema).blocks(groups)


def _no_rows(
    source: FileRange, options: ReadOptions, bad: Sequence[BadRecord] = (), *, input_bytes: int
) -> Block:
    """Return a block without documents; arguments as for `text_block`."""
    return text_block(
        source,
        texts=pa.array([], pa.large_string()),
        places=pa.array([], pa.int64()),
        bad=bad,
        input_bytes=input_bytes,
        passthrough=tuple(pa.array([], column.field.type) for column in options.keep),
    )


@dataclass
class _Reader:
    """Reads the row groups of one range."""

    source: FileRange
    options: ReadOptions
    stored: StoredBytes
    file: pq.ParquetFile
    schema: pa.Schema

    def __post_init__(self) -> None:
        source, options, schema = self.source, self.options, self.schema
        self._text, self._id = find_columns(source, schema, options)
        self._passthrough = [passthrough_column(source, schema, column) for column in options.keep]
        columns = (self._text, self._id, *(column for column, _ in self._passthrough))
        self._columns = {column.name: column for column in columns if column is not None}
        # Of these, values can be large and repeat.
        self._texts = [column for column in self._columns.values() if is_text(column.type)]
        self._encoded = any(pa.types.is_dictionary(column.type) for column in self._texts)

    def blocks(self, groups: list[_Group]) -> Iterator[Block]:
        """Yield every block of the groups, with ``input_bytes`` in proportion to the rows."""
        source, total = self.source, sum(group.end - group.first for group in groups)
        taken = 0
        for group in groups:
            for row, stretch, bad in self._stretches(group):
                done = row + len(stretch or ()) - groups[0].first
                now = min(source.size * done // max(total, 1), source.size)
                if stretch is None:
                    yield _no_rows(source, self.options, bad, input_bytes=now - taken)
                else:
                    yield self._block(stretch, row, bad, input_bytes=now - taken)
                taken = now
        if taken < source.size:
            yield _no_rows(source, self.options, input_bytes=source.size - taken)

    def _block(
        self, rows: pa.Table, first: int, bad: list[BadRecord], *, input_bytes: int
    ) -> Block:
        """Return the block of consecutive rows, which are as `_pieces` decodes them.

        Args:
            rows: the rows; rows that are no documents become bad records.
            first: the number of the first row.
            bad: other bad records.
            input_bytes: see `Block`.
        """
        source, options = self.source, self.options
        texts, *others = (column.combine_chunks() for column in rows.columns)
        ids = None if self._id is None else others.pop(0)
        sizes = pc.fill_null(pc.binary_length(texts), 0)
        reasons = dict.fromkeys(_true_rows(texts.is_null()), "the text is null")
        for row in _true_rows(pc.greater(sizes, options.max_record_bytes)):
            reasons[row] = options.too_long(sizes[row].as_py())
        if self._id is not None:
            ids, problems = _usable_ids(ids, options, value_type(self._id.type))
            reasons.update(problems)
            ids = ids.cast(pa.binary()).view(pa.string())
        for wanted, column in zip(options.keep, others, strict=True):
            for row in _malformed_text(column):
                reasons.setdefault(row, f"column {wanted.name!r} holds malformed UTF-8")
        block = text_block(
            source,
            texts=texts.fill_null(b"") if texts.null_count else texts,
            places=_counting(first, len(texts)),
            bad=bad,
            input_bytes=input_bytes,
            own_ids=ids,
            passthrough=tuple(others),
        )
        return well_formed(block.without_bad(reasons, [source]), [source])

    def _stretches(self, group: _Group) -> Iterator[tuple[int, pa.Table | None, list[BadRecord]]]:
        """Yield the rows of a group by about ``block_bytes``, with a bad record for damage.

        Yields:
            The number of the first row, the rows if there are any, and the bad record if any.
        """
        row = group.first
        held = list[pa.Table]()
        held_bytes = held_rows = 0
        lost = None
        try:
            for piece in self._pieces(group.number):
                held.append(piece)
                held_bytes += piece.nbytes
                held_rows += len(piece)
                if held_bytes >= self.options.block_bytes:
                    yield row, pa.concat_tables(held), []
                    row += held_rows
                    held, held_bytes, held_rows = [], 0, 0
            if row + held_rows < group.end:
                lost = "its columns end early"
        except _ERRORS as error:
            lost = str(error)
        first_lost = row + held_rows
        bad = []
        if lost is not None:
            reason = f"row group {group.number} cannot be read ({lost})"
            lost_rows = f"its rows {first_lost} to {group.end - 1} are lost"
            bad = [BadRecord.of(self.source, first_lost, f"{reason}: {lost_rows}", b"")]
        if held or bad:
            yield row, pa.concat_tables(held) if held else None, bad

    def _pieces(self, group: int) -> Iterator[pa.Table]:
        """Decode the rows of a row group into tables of bounded size.

        Columns: the texts and, if there are any, the ids (large_binary, with nulls; ids that are
        neither strings nor numbers are empty), and the columns that pass through, of their types.
        """
        batches = self.file.iter_batches(
            batch_size=self._batch_rows(group),
            row_groups=[group],
            columns=[*self._columns],
            use_threads=False,
        )
        for batch in batches:
            for begin, end in self._bounds(batch):
                part = batch.slice(begin, end - begin)
                columns = [_as_binary(self._text.values(part))]
                if self._id is not None:
                    columns.append(_ids(self._id.values(part)))
                columns += (
                    self._converted(column.values(part), field)
                    for column, field in self._passthrough
                )
                yield pa.table(columns, [*map(str, range(len(columns)))])

    def _converted(self, column: pa.Array, wanted: pa.Field) -> pa.Array:
        try:
            return column.cast(wanted.type)
        except pa.ArrowInvalid as error:
            raise InputError(
                f"{self.source.path}: column {wanted.name!r} has a value that {wanted.type} does "
                f"not hold ({error}): give another type, `keep` '{wanted.name}:TYPE'"
            ) from error

    def _bounds(self, batch: pa.RecordBatch) -> Iterator[tuple[int, int]]:
        """Cut a batch where its dictionary-encoded columns decode to more than a block."""
        columns = (column.values(batch) for column in self._texts)
        encoded = [column for column in columns if pa.types.is_dictionary(column.type)]
        if not encoded:
            yield 0, len(batch)
            return
        sizes = _counting(0, len(batch))  # a byte a row, and up to its end the values
        for column in encoded:
            lengths = pc.binary_length(_as_binary(column.dictionary)).cast(pa.int64())
            values = pc.fill_null(lengths.take(column.indices), 0)
            sizes = pc.add(sizes, pc.cumulative_sum(values))
        # Rows of one bucket together have at most a block and one value.
        buckets = pc.divide(sizes, self.options.block_bytes)
        begin = 0
        for end in pc.run_end_encode(buckets, run_end_type=pa.int64()).run_ends.to_pylist():
            yield begin, end
            begin = end

    def _batch_rows(self, index: int) -> int:
        """Return the number of rows to decode at once, so that large values take little memory."""
        if self._encoded:
            return MOST_ROWS_ENCODED
        group, block = self.file.metadata.row_group(index), self.options.block_bytes
        stored = max(group.total_byte_size, 1)
        rows: int = min(MOST_ROWS, max(block * group.num_rows // stored, 1))
        if rows * stored > 8 * block:  # else no value can make a batch too large
            try:
                largest = self._largest_repeated(index)
            except _ERRORS:  # damage shows again in reading; delta encodings have no dictionary
                return min(rows, MOST_ROWS_UNKNOWN)
            rows = min(rows, max(8 * block // max(largest, 1), 1))
        return rows

    def _largest_repeated(self, index: int) -> int:
        """Return the bytes of the largest value in each column's dictionary, added up."""
        names = [column.name for column in self._texts]
        # The same file, its columns left dictionary-encoded.
        file = pq.ParquetFile(
            self.stored,
            metadata=self.file.metadata,
            read_dictionary=names,
            buffer_size=READ_AHEAD,
            pre_buffer=False,
        )
        batches = file.iter_batches(
            batch_size=1, row_groups=[index], columns=names, use_threads=False
        )
        largest = 0
        for column in (one.values(batch) for batch in islice(batches, 1) for one in self._texts):
            if pa.types.is_dictionary(column.type) and len(column.dictionary):
                largest += pc.max(pc.binary_length(_as_binary(column.dictionary))).as_py() or 0
        return int(largest)


def _malformed_text(column: pa.Array) -> list[int]:
    """Return the rows in which text, at any depth, is not well-formed UTF-8."""
    if not _is_malformed(column):
        return []
    return [row for row in range(len(column)) if _is_malformed(column.take([row]))]


def _is_malformed(column: pa.Array) -> bool:
    try:
        column.validate(full=True)
    except pa.ArrowInvalid:
        return True
    return False


def _as_binary(array: pa.Array) -> pa.LargeBinaryArray:
    """Return a text column as bytes, and a column of numbers as decimal digits."""
    if pa.types.is_dictionary(array.type):
        return _as_binary(array.dictionary).take(array.indices)
    if pa.types.is_float16(array.type):
        array = array.cast(pa.float32())
    if not is_text(array.type):
        array = array.cast(pa.string())
    return array.cast(pa.large_binary())


def _ids(ids: pa.Array) -> pa.LargeBinaryArray:
    if holds_ids(ids.type):
        return _as_binary(ids)
    null, empty = (pa.scalar(value, pa.large_binary()) for value in (None, b""))
    return pc.if_else(ids.is_null(), null, empty)


def _usable_ids(
    ids: pa.LargeBinaryArray, options: ReadOptions, id_type: pa.DataType
) -> tuple[pa.LargeBinaryArray, dict[int, str]]:
    """Return ``ids`` with null for malformed text, and by row the problems of unusable ids."""
    problems: dict[int, str] = {}
    if not holds_ids(id_type):
        what = f"is of type {id_type}, neither a string nor a number"
        problems = dict.fromkeys(_true_rows(ids.is_valid()), what)
    elif pa.types.is_floating(id_type):
        rows = _true_rows(pc.is_in(ids, value_set=_NOT_FINITE))
        problems = {row: f"is {ids[row].as_py().decode()}, which is no number" for row in rows}
    if rows := malformed_rows(ids.fill_null(b"")):
        problems.update(dict.fromkeys(rows, "is not well-formed UTF-8"))
        marked = pc.is_in(_counting(0, len(ids)), value_set=pa.array(rows, pa.int64()))
        ids = pc.if_else(marked, pa.scalar(None, pa.large_binary()), ids)
    if options.id_field is not None:
        for row in _true_rows(ids.is_null()):
            problems.setdefault(row, "is null")
    name = options.id_field or DEFAULT_ID_FIELD
    remedy = f"(name another column with `{options.id_option}`)"
    kind = "group" if options.groups else "id"
    return ids, {row: f"{kind} field {name!r} {why} {remedy}" for row, why in problems.items()}


def _true_rows(mask: pa.BooleanArray) -> list[int]:
    rows: list[int] = pc.indices_nonzero(mask).to_pylist()
    return rows


def _counting(first: int, length: int) -> pa.Int64Array:
    """Return ``first``, ``first + 1``, and so on."""
    return pc.cumulative_sum(pa.repeat(pa.scalar(1, pa.int64()), length), start=first - 1)


class _Group(NamedTuple):
    """A row group: its number, its first row in the file, and one more than its last row."""

    number: int
    first: int
    end: int


def _groups(source: FileRange, metadata: pq.FileMetaData) -> list[_Group]:
    """Return the row groups that begin in ``source``, computed from the sizes of all groups.

    The offsets in the footer are not used: the offsets of a damaged file can be anything, and
    reading them with pyarrow can end the process.

    Raises:
        ValueError: the rows of the groups do not add up to the rows of the file: too small a number
            would lose rows in silence.
    """
    groups = [metadata.row_group(number) for number in range(metadata.num_row_groups)]
    ends = [*accumulate(group.num_rows for group in groups)]
    rows = ends[-1] if ends else 0
    if any(group.num_rows < 0 for group in groups) or rows != metadata.num_rows:
        raise ValueError(f"its row groups have {rows} rows, the file {metadata.num_rows}")
    sizes = [max(group.total_byte_size, 0) for group in groups]
    before, total = accumulate(sizes, initial=0), max(sum(sizes), 1)
    return [
        _Group(number, end - group.num_rows, end)
        for number, (group, end, size) in enumerate(zip(groups, ends, before, strict=False))
        for begin in [min(source.file_size * size // total, source.file_size - 1)]
        if source.start <= begin < source.end
    ]


def _no_parquet(source: FileRange, stored: StoredBytes, error: Exception) -> BadRecord:
    stored.seek(0)
    reason = f"not a Parquet file, or its footer is damaged: {error}"
    return BadRecord.of(source, 0, reason, stored.read(RAW_BYTES), source.file_size)
