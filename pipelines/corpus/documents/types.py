"""Types of columns that pass through: written as text, read from it, and brought together.

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
_PLAIN: dict[str, pa.DataType] = {
    str(kind): kind
    for kind in (
        *(pa.null(), pa.bool_(), pa.int8(), pa.int16(), pa.int32(), pa.int64()),
        *(pa.uint8(), pa.uint16(), pa.uint32(), pa.uint64()),
        *(pa.float16(), pa.float32(), pa.float64(), pa.date32(), pa.date64()),
        *(pa.string(), pa.large_string(), pa.string_view()),
        *(pa.binary(), pa.large_binary(), pa.binary_view()),
        *(pa.time32("s"), pa.time32("ms"), pa.time64("us"), pa.time64("ns")),
        *(pa.timestamp(unit) for unit in ("s", "ms", "us", "ns")),
        *(pa.duration(unit) for unit in ("s", "ms", "us", "ns")),
    )
}
_ALIASES = {
    "float16": pa.float16(),
    "float32": pa.float32(),
    "float64": pa.float64(),
    "int": pa.int64(),
    "boolean": pa.bool_(),
    "str": pa.string(),
    "date32": pa.date32(),
}
_DECIMALS = {"decimal128": pa.decimal128, "decimal256": pa.decimal256}
_TOKEN = re.compile(
    r"""\s*(?:
        (?P<timestamp>timestamp\[(?P<unit>s|ms|us|ns),\ ?tz=(?P<zone>[^\]]+)\])
      | (?P<decimal>decimal(?:128|256))\((?P<digits>\d{1,2}),\ ?(?P<scale>-?\d{1,2})\)
      | fixed_size_binary\[(?P<width>\d{1,9})\]
      | (?P<open>list|large_list|struct|map)<
      | (?P<word>[A-Za-z_][A-Za-z_0-9]*(?:\[[a-z]+\])?)
      | (?P<quoted>"(?:[^"\\]|\\.)*")
      | (?P<sign>[>:,])
    )""",
    re.VERBOSE,
)


def type_text(kind: pa.DataType) -> str:
    """A type as text.

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
        known = _Parser(text).type(0) == kind
    except ValueError:
        known = False
    if not known:
        raise ValueError(f"columns of type {text} do not pass through")
    return text


@lru_cache(maxsize=256)
def parse_type(text: str) -> pa.DataType:
    """The type that a text names, as Parquet gives it back.

    >>> parse_type('struct<"a b": list<int8>>').field("a b").type.value_type
    DataType(int8)

    Raises:
        ValueError: it names none, or one that Parquet files cannot hold.
    """
    parser = _Parser(text)
    kind = parser.type(0)
    parser.end()
    return in_parquet(kind)


def in_parquet(kind: pa.DataType) -> pa.DataType:
    """The type that a column of type ``kind`` has when it is read from a Parquet file.

    Raises:
        ValueError: Parquet files cannot hold it.
    """
    file = io.BytesIO()
    try:
        pq.write_table(pa.schema([("column", kind)]).empty_table(), file)
        return _nullable(pq.read_schema(pa.BufferReader(file.getvalue())).field(0).type)
    except pa.ArrowException as error:
        raise ValueError(f"Parquet files cannot hold {kind}: {error}") from None


def unify(one: pa.DataType, other: pa.DataType, *, numbers: bool = False) -> pa.DataType | None:
    """The type that holds every value of both; None where no type does.

    Integers become the wider, and so do floating-point numbers; a type of nulls becomes the other;
    lists go by their items, structs by their fields, of which one may lack some.

    Args:
        one: a type.
        other: another.
        numbers: whether integers that ``double`` does not all hold become that too: for values
            that are looked at one by one.
    """
    if one == other or pa.types.is_null(other):
        return one
    if pa.types.is_null(one):
        return other
    if pa.types.is_struct(one) and pa.types.is_struct(other):
        return _unified_structs(one, other, numbers=numbers)
    for is_kind, make in _LISTS:
        if is_kind(one) and is_kind(other):
            item = unify(one.value_type, other.value_type, numbers=numbers)
            return None if item is None else make(item)
    if pa.types.is_string(one) and pa.types.is_large_string(other):
        return other
    if pa.types.is_large_string(one) and pa.types.is_string(other):
        return one
    for is_kind in (pa.types.is_signed_integer, pa.types.is_unsigned_integer, pa.types.is_floating):
        if is_kind(one) and is_kind(other):
            return one if one.bit_width > other.bit_width else other
    for small, large in ((one, other), (other, one)):
        if pa.types.is_unsigned_integer(small) and pa.types.is_signed_integer(large):
            return large if large.bit_width > small.bit_width else None
        if pa.types.is_integer(small) and pa.types.is_float64(large):
            return large if numbers or small.bit_width <= 32 else None
    return None


def undecided(kind: pa.DataType) -> bool:
    """Whether a type, or one inside it, is not settled by the values that were seen."""
    if pa.types.is_struct(kind):
        return kind.num_fields == 0 or any(undecided(field.type) for field in kind)
    if pa.types.is_list(kind):
        return undecided(kind.value_type)
    return bool(pa.types.is_null(kind))


_LISTS: tuple[tuple[Callable[[pa.DataType], bool], Callable[[pa.DataType], pa.DataType]], ...] = (
    (pa.types.is_list, pa.list_),
    (pa.types.is_large_list, pa.large_list),
)


def _unified_structs(one: pa.DataType, other: pa.DataType, *, numbers: bool) -> pa.DataType | None:
    fields = {field.name: field.type for field in one}
    for field in other:
        kind = unify(fields.get(field.name, pa.null()), field.type, numbers=numbers)
        if kind is None:
            return None
        fields[field.name] = kind
    return pa.struct(list(fields.items()))


def _nullable(kind: pa.DataType) -> pa.DataType:
    """The same type, whose fields may be null and whose items have Arrow's own name."""
    if pa.types.is_struct(kind):
        return pa.struct([(field.name, _nullable(field.type)) for field in kind])
    for is_kind, make in _LISTS:
        if is_kind(kind):
            return make(_nullable(kind.value_type))
    if pa.types.is_map(kind):
        return pa.map_(_nullable(kind.key_type), _nullable(kind.item_type))
    if pa.types.is_dictionary(kind):
        return _nullable(kind.value_type)
    return kind


def _name_text(name: str) -> str:
    return name if re.fullmatch(r"[A-Za-z_][A-Za-z_0-9]*", name) else json.dumps(name)


class _Parser:
    """Recursive descent over the text of a type."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._place = 0

    def type(self, depth: int) -> pa.DataType:
        """The type that comes next."""
        if depth > MAX_DEPTH:
            raise ValueError(f"{self._text!r:.80} nests more than {MAX_DEPTH} deep")
        match = self._next("a type")
        if match["open"]:
            return self._nested(match["open"], depth)
        if match["timestamp"]:
            return pa.timestamp(match["unit"], match["zone"])
        if match["decimal"]:
            return _DECIMALS[match["decimal"]](int(match["digits"]), int(match["scale"]))
        if match["width"]:
            return pa.binary(int(match["width"]))
        kind = _PLAIN.get(match["word"] or "", _ALIASES.get(match["word"] or ""))
        if kind is None:
            raise ValueError(f"{self._text!r:.80}: {match[0].strip()!r} is no type")
        return kind

    def end(self) -> None:
        """Refuse anything that is left."""
        if rest := self._text[self._place :].strip():
            raise ValueError(f"{self._text!r:.80}: {rest!r:.40} stands behind the type")

    def _nested(self, opening: str, depth: int) -> pa.DataType:
        if opening == "struct":
            fields: list[tuple[str, pa.DataType]] = []
            while not fields or self._sign(",>") == ",":
                name = self._next("a field's name")
                if not (name["word"] or name["quoted"]):
                    raise ValueError(f"{self._text!r:.80}: a field's name was expected")
                self._sign(":")
                unquoted = json.loads(name["quoted"]) if name["quoted"] else name["word"]
                fields.append((unquoted, self.type(depth + 1)))
            if len({field for field, _ in fields}) < len(fields):
                raise ValueError(f"{self._text!r:.80} has two fields of one name")
            return pa.struct(fields)
        first = self.type(depth + 1)
        if opening == "map":
            self._sign(",")
            first = pa.map_(first, self.type(depth + 1))
        self._sign(">")
        make = {"list": pa.list_, "large_list": pa.large_list}.get(opening)
        return first if make is None else make(first)

    def _sign(self, allowed: str) -> str:
        match = self._next(" or ".join(map(repr, allowed)))
        if match["sign"] is None or match["sign"] not in allowed:
            raise ValueError(
                f"{self._text!r:.80}: {' or '.join(map(repr, allowed))} was expected before "
                f"{match[0].strip()!r}"
            )
        return match["sign"]

    def _next(self, expected: str) -> re.Match[str]:
        match = _TOKEN.match(self._text, self._place)
        if match is None:
            raise ValueError(f"{self._text!r:.80} ends, or has a strange sign, before {expected}")
        self._place = match.end()
        return match
