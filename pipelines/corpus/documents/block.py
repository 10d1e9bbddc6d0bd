"""Blocks of documents, and bad records."""

from __future__ import annotations

import codecs
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from typing import TYPE_CHECKING, Any, TypeVar

import pyarrow as pa
import pyarrow.compute as pc

from bpe import _native
from bpe._arrow import int64_array, text_column
from bpe.errors import BadTextsError
from pipelines.corpus.documents.types import parse_type
from pipelines.errors import ConfigError
from pipelines.formats import FILE_FORMATS
from pipelines.option import changed
from pipelines.settings import MAX_RECORD

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from pipelines.corpus.splits import FileRange
    from pipelines.settings import InputSettings

Result = TypeVar("Result")
DEFAULT_ID_FIELD = "id"
BLOCK_BYTES = 2 << 20
RAW_BYTES = 64 << 10


@dataclass(frozen=True, kw_only=True)
class PassthroughColumn:
    """A field or column that passes through, with the text of its type (see `.types`).

    Raises:
        ValueError: the text names no type.
    """

    name: str
    type: str

    def __post_init__(self) -> None:
        parse_type(self.type)

    @property
    def field(self) -> pa.Field:
        """Return the column as an Arrow field."""
        return pa.field(self.name, parse_type(self.type))


@dataclass(frozen=True, kw_only=True)
class SourceFields:
    """The fields of the records of one source; None for a field that is the same in all sources."""

    name: str
    text_field: str | None = None
    id_field: str | None = None


@dataclass(frozen=True, kw_only=True)
class ReadOptions:
    """Settings by which records become documents.

    Attributes:
        text_field: the field (jsonl) or column (parquet) that holds the text; where none has that
            whole name, its dots lead into objects or structs.
        id_field: the field that holds the id, found alike, a string or a number; a record
            without one is bad. None takes ``id`` where a record has one that is not null, and the
            record's place (``name:place``; for a whole-file document ``name``) where it has not.
            A record whose id is something else, such as a list, is bad.
        groups: whether the id is not that of the document, but names its group (``--group-by``).
        keep: fields or columns that pass through; a record that lacks one has null there.
        max_record_bytes: a longer record is bad; it is passed over in bounded memory.
        block_bytes: about how much text a block holds.
        source_fields: the sources whose records have fields of their own.
    """

    text_field: str = "text"
    id_field: str | None = None
    groups: bool = False
    keep: tuple[PassthroughColumn, ...] = ()
    max_record_bytes: int = MAX_RECORD
    block_bytes: int = BLOCK_BYTES
    source_fields: tuple[SourceFields, ...] = ()

    def __post_init__(self) -> None:
        try:
            for one in (self, *(self.of_source(source.name) for source in self.source_fields)):
                (one.text_field + (one.id_field or "")).encode()
        except UnicodeEncodeError as error:
            raise ConfigError(f"a field name is not valid Unicode: {error}") from error

    @classmethod
    def of(
        cls,
        inputs: InputSettings,
        *,
        keep: tuple[PassthroughColumn, ...] = (),
        group_by: str | None = None,
    ) -> ReadOptions:
        """Return the options for the documents of ``inputs``, with the columns that pass through.

        Raises:
            ConfigError: both a group field and an id field are given.
        """
        texts, ids = inputs.text_fields(), inputs.id_fields()
        if group_by is not None and ids:
            raise ConfigError("`id_field` does not go with `group_by`: counts have no ids")
        return cls(
            text_field=texts[""],
            id_field=group_by or ids.get(""),
            groups=group_by is not None,
            keep=keep,
            max_record_bytes=inputs.max_record_size,
            source_fields=tuple(
                SourceFields(name=name, text_field=texts.get(name), id_field=ids.get(name))
                for name in inputs.sources
                if name in texts or name in ids
            ),
        )

    def of_source(self, name: str) -> ReadOptions:
        """Return the options for the records of the source of this name."""
        for source in self.source_fields:
            if source.name == name:
                return replace(
                    self,
                    text_field=source.text_field or self.text_field,
                    id_field=source.id_field or self.id_field,
                    source_fields=(),
                )
        return self

    def too_long(self, size: int) -> str:
        """Return the reason why a record of so many bytes is bad."""
        return (
            f"the record has {size} bytes, more than the {self.max_record_bytes} that a record may "
            "have: cut it into documents, or raise `max_record_size`"
        )

    @property
    def id_option(self) -> str:
        """Return the name of the option that sets ``id_field``."""
        return "group_by" if self.groups else "id_field"

    def to_json(self) -> dict[str, Any]:
        """Return the values that are not defaults, as JSON values."""
        return changed(self)


@dataclass(frozen=True, kw_only=True)
class BadRecord:
    """A record that is no document.

    Attributes:
        name: the name of the file, as in document ids.
        path: the path of the file.
        place: where the record begins, counted from 0 in ``unit``.
        unit: ``byte`` of the uncompressed file, or ``row`` (parquet).
        reason: the reason why the record is bad, in words.
        raw: the record as found, or its first 64 KiB.
        size: bytes of the whole record, as far as the record was read.
    """

    name: str
    path: str
    place: int
    unit: str
    reason: str
    raw: bytes
    size: int

    @classmethod
    def of(
        cls, source: FileRange, place: int, reason: str, raw: bytes, size: int | None = None
    ) -> BadRecord:
        """Return a bad record of ``source`` with the first 64 KiB of ``raw``."""
        return cls(
            name=source.name,
            path=source.path,
            place=place,
            unit=FILE_FORMATS[source.format].unit,
            reason=reason,
            raw=bytes(raw[:RAW_BYTES]),
            size=len(raw) if size is None else size,
        )

    @classmethod
    def lost(cls, source: FileRange, place: int, reason: str, raw: bytes = b"") -> BadRecord:
        """Return the bad record for the unread part of ``source`` from ``place`` on."""
        begin = min(max(place, source.start), source.end)
        if source.compression != "none" or FILE_FORMATS[source.format].unit != "byte":
            begin = source.start  # the place is not one of the bytes as stored
        size = source.end - begin
        unread = f"bytes {begin} to {source.end - 1}, as stored, were"
        if size == source.file_size:
            unread = "nothing of it was"
        reason += f": {unread} read: run the job again on inputs that stay as they are"
        return replace(cls.of(source, place, reason, raw, size), unit="byte")


@dataclass(frozen=True, kw_only=True)
class Block:
    """Some consecutive documents, in columns of equal length.

    Attributes:
        texts: well-formed UTF-8, no nulls (large_string).
        places: where each record begins: byte offset in the uncompressed file, row number for
            parquet, 0 for a file that is one document (int64).
        file_indexes: the number of each document's file (int32).
        own_ids: ids that the records carry (string; null where a record has none).
        name: the file of the records without an id of their own.
        bad: the bad records of the input of this block.
        input_bytes: bytes of input, as stored, that this block took; over all blocks of a range
            they add up to its size.
        passthrough: a column for each of ``ReadOptions.keep``, of its type.
    """

    texts: pa.LargeStringArray
    places: pa.Int64Array
    file_indexes: pa.Int32Array
    own_ids: pa.StringArray | None
    name: str
    bad: tuple[BadRecord, ...]
    input_bytes: int
    passthrough: tuple[pa.Array, ...] = ()

    def __len__(self) -> int:
        return len(self.texts)

    @cached_property
    def ids(self) -> pa.StringArray:
        """Return the id of each document (string, no nulls)."""
        own = self.own_ids
        if own is not None and own.null_count == 0:
            return own
        prefix = pa.scalar(self.name + ":", pa.string())
        made = pc.binary_join_element_wise(prefix, self.places.cast(pa.string()), "")
        return made if own is None else pc.coalesce(own, made)

    def without_bad(
        self,
        reasons: Mapping[int, str],
        pieces: Sequence[FileRange],
        raw: Callable[[int], bytes] | None = None,
    ) -> Block:
        """Return the block without some rows, which become bad records.

        Args:
            reasons: the reasons by row.
            pieces: the pieces of the split.
            raw: returns the record of a row; None if its text is the record.
        """
        if not reasons:
            return self
        rows = sorted(reasons)
        bad = (self.bad_row(row, reasons[row], pieces, raw) for row in rows)
        in_order = tuple(sorted([*self.bad, *bad], key=lambda record: record.place))
        return replace(self.changed(lambda column: without(column, rows)), bad=in_order)

    def changed(self, change: Callable[[pa.Array], pa.Array]) -> Block:
        """Return the block with the result of ``change`` for each column."""
        return replace(
            self,
            texts=change(self.texts),
            places=change(self.places),
            file_indexes=change(self.file_indexes),
            own_ids=None if self.own_ids is None else change(self.own_ids),
            passthrough=tuple(map(change, self.passthrough)),
        )

    def bad_row(
        self,
        row: int,
        reason: str,
        pieces: Iterable[FileRange],
        raw: Callable[[int], bytes] | None = None,
    ) -> BadRecord:
        """Return the bad record of a row; arguments as for `without_bad`."""
        index = self.file_indexes[row].as_py()
        source = next(piece for piece in pieces if piece.file_index == index)
        record = raw(row) if raw else self.texts[row].as_buffer().to_pybytes()
        return BadRecord.of(source, self.places[row].as_py(), reason, record)

    @property
    def stable_ids(self) -> pa.StringArray | None:
        """`own_ids` that do not change when the corpus grows; None if ids are names of files."""
        return self.own_ids if self.name else None


def text_block(
    source: FileRange,
    *,
    texts: pa.Array,
    places: pa.Int64Array,
    bad: Sequence[BadRecord],
    input_bytes: int,
    own_ids: pa.StringArray | None = None,
    passthrough: tuple[pa.Array, ...] = (),
) -> Block:
    """Return a block of ``source``.

    Args:
        source: the file of the rows.
        texts: one row for each record, no nulls (large_binary or large_string).
        places: where each record begins.
        bad: records that were left out already.
        input_bytes: see `Block`.
        own_ids: ids of the records, null where a record has none.
        passthrough: see `Block`.
    """
    return Block(
        texts=texts.view(pa.large_string()),
        places=places,
        file_indexes=pa.repeat(pa.scalar(source.file_index, pa.int32()), len(texts)),
        own_ids=own_ids,
        name=source.name,
        bad=tuple(bad),
        input_bytes=input_bytes,
        passthrough=passthrough,
    )


def well_formed(block: Block, pieces: Sequence[FileRange]) -> Block:
    """Return a block of ``pieces`` without the rows that are not UTF-8, which are bad records."""
    rows = malformed_rows(block.texts)
    reasons = {row: malformed(block.texts[row].as_buffer()) for row in rows}
    return block.without_bad(reasons, pieces)


def malformed_rows(texts: pa.Array) -> list[int]:
    """Return the rows that are not well-formed UTF-8, in ascending order."""
    return list(int64_array(_native.malformed_rows(text_column(texts))).to_pylist())


def without(array: pa.Array, rows: Sequence[int]) -> pa.Array:
    """Return ``array`` without ``rows`` (ascending row numbers)."""
    if not rows:
        return array
    bounds = [-1, *rows, len(array)]
    pieces = [array.slice(before + 1, after - before - 1) for before, after in pairwise(bounds)]
    return pa.concat_arrays(pieces)


def use_good_rows(
    columns: tuple[pa.Array, ...],
    use: Callable[..., Result],
    set_aside: Callable[[int, str], object],
) -> tuple[Result, tuple[pa.Array, ...]]:
    """Return the result of ``use`` for the good rows, and the columns of these rows.

    Args:
        columns: columns of equal length; the first has texts.
        use: called with the columns; again with fewer rows each time it raises `BadTextsError`.
        set_aside: called with each bad row and the reason.
    """
    rows = list(range(len(columns[0])))
    while True:
        try:
            return use(*columns), columns
        except BadTextsError as error:  # noqa: PERF203 - rarely more than once
            for row, reason in error.reasons.items():
                set_aside(rows[row], reason)
            columns = tuple(without(column, error.rows) for column in columns)
            rows = [row for number, row in enumerate(rows) if number not in error.reasons]


def malformed(raw: bytes | pa.Buffer) -> str:
    """Describe where and why ``raw`` is not well-formed UTF-8."""
    view, step = memoryview(raw).cast("B"), 1 << 20  # the bytes of a buffer of Arrow have signs
    decoder = codecs.getincrementaldecoder("utf-8")()  # in steps: a record can be a gigabyte
    for begin in range(0, len(view), step):
        held = len(decoder.getstate()[0])
        try:
            decoder.decode(view[begin : begin + step], final=begin + step >= len(view))
        except UnicodeDecodeError as error:
            at = begin - held + error.start
            return (
                f"malformed UTF-8 at byte {at} of the record (0x{view[at]:02x}: {error.reason}): "
                "convert the file to UTF-8"
            )
    raise ValueError("the record is well-formed UTF-8")
