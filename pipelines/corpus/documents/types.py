"""Write, parse and unify the types of columns that pass through.

The text is Arrow's own for plain types (``int64``, ``timestamp[us, tz=UTC]``,
``decimal128(10, 2)``); nested ones are ``list<int64>``, ``struct<name: string, "any name": bool>``
and ``map<string, int64>``.
"""

from __future__ import annotations

import io
import json
import re
from functools import lru_cache
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq

if TYPE_CHECKING:
    from collections.abc import Callable

MAX_DEPTH = 50
_NESTED = re.compile(r"(list|large_list|map|struct)\s*<(.*)>", re.DOTALL)
_STRING = r'"(?:[^"\\]|\\.)*"'
_FIELD = re.compile(rf"\s*({_STRING}|[A-Za-z_][A-Za-z_0-9]*)\s*:(.*)", re.DOTALL)
_PIECE = re.compile(rf"{_STRING}|.", re.DOTALL)
_WITH_ARGUMENTS: dict[str, Callable[..., pa.DataType]] = {
    r"timestamp\[(s|ms|us|ns), ?tz=([^\]]+)\]": pa.timestamp,
    r"decimal128\((\d{1,2}), ?(-?\d{1,2})\)": lambda *two: pa.decimal128(*map(int, two)),
    r"decimal256\((\d{1,2}), ?(-?\d{1,2})\)": lambda *two: pa.decimal256(*map(int, two)),
    r"fixed_size_binary\[(\d{1,9})\]": lambda width: pa.binary(int(width)),
}


def type_text(kind: pa.DataType) -> str:
    """Return a type as text.

    >>> type_text(pa.struct([("a b", pa.list_(pa.int8()))]))
    'struct<"a b": list<int8>>'

    Raises:
        ValueError: columns of this type do not pass through.
    """
    if pa.types.is_struct(kind):
        fields = (f"{_name_text(field.name)}: {type_text(field.type)}" for field in kind)
        return f"struct<{', '.join(fields)}>"
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        opening = "list" if pa.types.is_list(kind) else "large_list"
        return f"{opening}<{type_text(kind.value_type)}>"
    if pa.types.is_map(kind):
        return f"map<{type_text(kind.key_type)}, {type_text(kind.item_type)}>"
    text = str(kind)
    try:
        known = _type(text) == kind
    except ValueError:
        known = False
    if not known:
        raise ValueError(f"columns of type {text} do not pass through")
    return text


@lru_cache(maxsize=256)
def parse_type(text: str) -> pa.DataType:
    """Return the type that a text names, as read from a Parquet file.

    >>> parse_type('struct<"a b": list<int8>>').field("a b").type.value_type
    DataType(int8)

    Raises:
        ValueError: the text names no type, or a type that Parquet files cannot hold.
    """
    try:
        kind = _type(text)
    except ValueError as error:
        where = "" if f"{text!r:.40}" in str(error) else f" (in {text!r:.80})"
        raise ValueError(f"{error}{where}") from None
    file = io.BytesIO()
    try:
        pq.write_table(pa.schema([("column", kind)]).empty_table(), file)
        stored = pq.read_schema(pa.BufferReader(file.getvalue())).field(0).type
    except pa.ArrowException as error:
        raise ValueError(f"Parquet files cannot hold {kind}: {error}") from None
    return kind if kind == stored else stored  # equal types may name their items otherwise


def unify(one: pa.DataType, other: pa.DataType) -> pa.DataType | None:
    """Return the type to which values of two types are converted; None if there is none.

    A value may not fit the type, such as an integer above 2^53 among floating-point numbers.
    """
    schemas = [pa.schema([("column", kind)]) for kind in (one, other)]
    try:
        return pa.unify_schemas(schemas, promote_options="permissive").field(0).type
    except pa.ArrowException:
        return None


def undecided(kind: pa.DataType) -> bool:
    """Return whether a type, or a type inside it, is still null or a struct without fields."""
    if pa.types.is_struct(kind):
        return kind.num_fields == 0 or any(undecided(field.type) for field in kind)
    if pa.types.is_list(kind):
        return undecided(kind.value_type)
    return bool(pa.types.is_null(kind))


def _name_text(name: str) -> str:
    return name if re.fullmatch(r"[A-Za-z_][A-Za-z_0-9]*", name) else json.dumps(name)


def _type(text: str, depth: int = 0) -> pa.DataType:
    """Return the type that a text names, nested in ``depth`` others."""
    text = text.strip()
    if depth > MAX_DEPTH:
        raise ValueError(f"it nests more than {MAX_DEPTH} deep")
    if nested := _NESTED.fullmatch(text):
        opening, inside = nested.groups()
        if opening == "struct":
            return _struct(inside, depth)
        items = [_type(item, depth + 1) for item in _items(inside)]
        make = {"list": pa.list_, "large_list": pa.large_list, "map": pa.map_}[opening]
        if len(items) != (2 if opening == "map" else 1):
            raise ValueError(f"{opening} holds {'two types' if opening == 'map' else 'one type'}")
        return make(*items)
    for pattern, with_arguments in _WITH_ARGUMENTS.items():
        if match := re.fullmatch(pattern, text):
            return with_arguments(*match.groups())
    try:
        return pa.int64() if text == "int" else pa.type_for_alias(text)
    except ValueError:
        raise ValueError(f"{text!r:.40} is no type") from None


def _struct(inside: str, depth: int) -> pa.DataType:
    fields: dict[str, pa.DataType] = {}
    for item in _items(inside):
        match = _FIELD.fullmatch(item)
        if match is None:
            raise ValueError(f"{item.strip()!r:.40} is no field, which is NAME: TYPE")
        name = json.loads(match[1]) if match[1].startswith('"') else match[1]
        if name in fields:
            raise ValueError(f"two fields have the name {name!r:.40}")
        fields[name] = _type(match[2], depth + 1)
    return pa.struct(list(fields.items()))


def _items(text: str) -> list[str]:
    """Cut a text at its commas, but for commas in brackets or quotes."""
    items, depth = [""], 0
    for piece in _PIECE.findall(text):
        depth += (piece in "<[(") - (piece in ">])")
        if piece == "," and depth == 0:
            items.append("")
        else:
            items[-1] += piece
    return items
