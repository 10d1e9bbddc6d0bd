"""Describe JSON values, and convert values to columns."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

LONGEST_INTEGER = 40  # digits; longer ones are kept as they were written
_SCALARS: dict[type, frozenset[type]] = {
    bool: frozenset({bool}),
    int: frozenset({int}),
    float: frozenset({int, float}),
    str: frozenset({str}),
}


class Digits(str):
    """The text of a number in JSON."""

    __slots__ = ()


def integer(digits: str) -> int | Digits:
    """Return an integer of any number of digits, for ``json.loads``, which limits the digits."""
    return int(digits) if len(digits) <= LONGEST_INTEGER else Digits(digits)


def kind_of(value: object) -> str:
    """Return the kind of a value, in the words of JSON."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, dict):
        return "an object"
    if isinstance(value, list):
        return "an array"
    return "a number" if isinstance(value, (Digits, int, float)) else "a string"


def field_value(record: dict[str, Any], name: str) -> Any:
    """Return the field of a name, or else the field in nested objects that a dotted name gives.

    Raises:
        LookupError: there is no such field; the message describes the record.
    """
    if name in record:
        return record[name]
    value: Any = record
    place = "the record"
    parts = name.split(".")
    for level, part in enumerate(parts):
        if not isinstance(value, dict) or part not in value:
            found = f"is {kind_of(value)}, not an object"
            if isinstance(value, dict):
                names = ", ".join(repr(key[:80]) for key in list(value)[:20])
                found = f"has {names or 'no fields'}"
            raise LookupError(f"{place} {found}")
        value = value[part]
        place = repr(".".join(parts[: level + 1]))
    return value


def lone_surrogate(value: str) -> str:
    """Describe the first lone surrogate in a string; empty if there is none."""
    try:
        value.encode()
    except UnicodeEncodeError as error:
        return f"half a surrogate pair (U+{ord(value[error.start]):04X} at {error.start})"
    return ""


def column(values: Sequence[Any], field: pa.Field) -> tuple[pa.Array, dict[int, str]]:
    """Return values as a column of the field's type.

    Returns:
        The column, with null for values that do not fit, and the reasons by number of the value.
    """
    kind = field.type
    scalar = python_type(kind)
    if scalar is not None and {*map(type, values), type(None)} <= {*_SCALARS[scalar], type(None)}:
        try:
            return pa.array(values, kind), {}
        except (pa.ArrowException, OverflowError, ValueError):
            pass  # said below, with its place
    problems = {
        number: f"{problem} (see `keep`)"
        for number, value in enumerate(values)
        for problem in [_problem(value, kind, field.name)]
        if problem
    }
    fitting = [None if number in problems else value for number, value in enumerate(values)]
    return pa.array(fitting, kind), problems


def _problem(value: Any, kind: pa.DataType, path: str) -> str:
    """Describe why and where a type does not hold a value exactly; empty if the value fits."""
    if value is None:
        return ""
    wrong = f"field {path!r} is {kind_of(value)}, not {kind}"
    inside: Iterator[str] = iter(())
    if pa.types.is_struct(kind):
        if not isinstance(value, dict):
            return wrong
        if strange := value.keys() - {field.name for field in kind}:
            return f"field {path!r} has a field {min(strange)!r:.80}, which {kind} has not"
        inside = (_problem(value.get(f.name), f.type, f"{path}.{f.name}") for f in kind)
    elif pa.types.is_list(kind) or pa.types.is_large_list(kind):
        if not isinstance(value, list):
            return wrong
        items = enumerate(value)
        inside = (_problem(one, kind.value_type, f"{path}[{place}]") for place, one in items)
    elif (scalar := python_type(kind)) is None or type(value) not in _SCALARS[scalar]:
        return wrong
    elif isinstance(value, str):
        surrogate = lone_surrogate(value)
        return f"field {path!r} holds {surrogate}, which is no character" if surrogate else ""
    else:
        try:
            pa.scalar(value, kind)
        except (pa.ArrowException, OverflowError, ValueError):
            return f"field {path!r} is {value}, which {kind} does not hold"
    return next(filter(None, inside), "")


def python_type(kind: pa.DataType) -> type | None:
    """Return the Python type of JSON's values of a type; None if the type is nested, or no JSON."""
    for is_kind, python in (
        (pa.types.is_boolean, bool),
        (pa.types.is_integer, int),
        (pa.types.is_floating, float),
        (pa.types.is_string, str),
        (pa.types.is_large_string, str),
    ):
        if is_kind(kind):
            return python
    return None
