"""Find the columns of a Parquet file: text, ids, and columns that pass through."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from pipelines.corpus.documents.block import DEFAULT_ID_FIELD
from pipelines.corpus.documents.types import parse_type, type_text, unify
from pipelines.errors import InputError

if TYPE_CHECKING:
    from pipelines.corpus.documents.block import PassthroughColumn, ReadOptions
    from pipelines.corpus.splits import FileRange


class Column(NamedTuple):
    """A column of a file, or a field inside a column.

    Attributes:
        path: the name of the column, and of the fields that lead to this one.
        type: the type of the values.
    """

    path: tuple[str, ...]
    type: pa.DataType

    @property
    def name(self) -> str:
        """Return the name by which Parquet files are read."""
        return ".".join(self.path)

    def values(self, batch: pa.RecordBatch) -> pa.Array:
        """Return the values in some rows; null in null structs."""
        first, *inside = self.path
        values = batch.column(first)
        return pc.struct_field(values, inside) if inside else values


def find_columns(
    source: FileRange, schema: pa.Schema, options: ReadOptions
) -> tuple[Column, Column | None]:
    """Return the text column and the id column; None if there is no id column."""
    text = _column(source, schema, options.text_field, "`text_field`")
    if not is_text(text.type):
        raise InputError(
            f"{source.path}: column {options.text_field!r} holds {text.type}, not text: name "
            f"another one with `text_field` ({_described(schema)})"
        )
    if options.id_field is None and schema.names.count(DEFAULT_ID_FIELD) != 1:
        return text, None
    name = options.id_field or DEFAULT_ID_FIELD
    ids = _column(source, schema, name, f"`{options.id_option}`")
    if options.id_field is not None and not holds_ids(ids.type):
        raise InputError(
            f"{source.path}: column {name!r} holds {ids.type}, neither strings nor numbers: name "
            f"another one with `{options.id_option}` ({_described(schema)})"
        )
    return text, ids


def kept_type(source: FileRange, schema: pa.Schema, name: str) -> pa.DataType:
    """Return the type with which a column passes through; dictionaries become plain values.

    Raises:
        InputError: there is no such column, or columns of its type do not pass through.
    """
    kind = _column_type(source, schema, name, "`keep`")
    try:
        return parse_type(type_text(value_type(kind)))
    except ValueError as error:
        raise InputError(f"{source.path}: `keep` {name}: {error}") from error


def passthrough_column(
    source: FileRange, schema: pa.Schema, column: PassthroughColumn
) -> tuple[Column, pa.Field]:
    """Return a column that passes through, and its field in the output.

    Raises:
        InputError: there is no such column, or the type of the column does not fit.
    """
    kind, wanted = kept_type(source, schema, column.name), column.field
    if unify(kind, wanted.type) != wanted.type:
        raise InputError(
            f"{source.path}: column {column.name!r} holds {kind}, which {wanted.type} does not "
            f"hold: give another type, `keep` '{column.name}:TYPE'"
        )
    return Column((column.name,), schema.field(column.name).type), wanted


def _column_type(source: FileRange, schema: pa.Schema, name: str, option: str) -> pa.DataType:
    count = schema.names.count(name)
    if count != 1:
        problem = f"no column {name!r}" if not count else f"{count} columns {name!r}"
        raise InputError(
            f"{source.path} has {problem}: name one with {option} ({_described(schema)})"
        )
    return schema.field(name).type


def _column(source: FileRange, schema: pa.Schema, name: str, option: str) -> Column:
    """Return the column of a name, or else the field inside a column to which its dots lead.

    Raises:
        InputError: there is no such column or field, or more than one.
    """
    place, *inside = name.split(".")
    if name in schema.names or place not in schema.names:
        return Column((name,), _column_type(source, schema, name, option))
    kind, path = _column_type(source, schema, place, option), (place, *inside)
    for field in inside:
        if not pa.types.is_struct(kind):
            problem = f"column {place!r} holds {kind}, not a struct"
        elif (count := kind.names.count(field)) != 1:
            problem = f"column {place!r} has {count or 'no'} fields {field!r}, but "
            problem += ", ".join(f"{one.name}: {one.type}" for one in list(kind)[:20])
        else:
            kind, place = kind.field(field).type, f"{place}.{field}"
            continue
        raise InputError(f"{source.path} has no column {name!r}: {problem} (see {option})")
    return Column(path, kind)


def _described(schema: pa.Schema) -> str:
    names = [f"{field.name}: {field.type}" for field in list(schema)[:20]]
    more = ", …" if len(schema) > 20 else ""
    return f"its columns are {', '.join(names)}{more}" if names else "it has no columns"


def value_type(kind: pa.DataType) -> pa.DataType:
    """Return the type of the values of a dictionary type; other types are returned unchanged."""
    return kind.value_type if pa.types.is_dictionary(kind) else kind


def is_text(kind: pa.DataType) -> bool:
    """Return whether columns of this type hold strings, or bytes that may be strings."""
    kind = value_type(kind)
    checks = (
        pa.types.is_string,
        pa.types.is_large_string,
        pa.types.is_string_view,
        pa.types.is_binary,
        pa.types.is_large_binary,
        pa.types.is_binary_view,
        pa.types.is_fixed_size_binary,
        pa.types.is_null,
    )
    return any(check(kind) for check in checks)


def holds_ids(kind: pa.DataType) -> bool:
    """Return whether values of this type can be ids of documents: strings and numbers."""
    kind = value_type(kind)
    checks = (is_text, pa.types.is_integer, pa.types.is_floating, pa.types.is_decimal)
    return any(check(kind) for check in checks)
