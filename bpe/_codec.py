"""Frozen dataclasses to JSON values and back, every value checked against the type of its field.

An ``int`` is a size or a number of something here: never negative, and never a bool. Types are
what the annotations say: dataclasses, tuples, mappings, unions, literals, and values of JSON.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from dataclasses import MISSING, fields, is_dataclass
from functools import cache
from types import UnionType
from typing import (
    Any,
    Literal,
    NamedTuple,
    TypeVar,
    Union,
    cast,
    get_args,
    get_origin,
    get_type_hints,
)

_T = TypeVar("_T")
_SHOWN = 10  # fields that an error lists
_LARGEST = sys.float_info.max


class FieldError(ValueError):
    """A JSON value is missing or does not fit; the text names its field: ``parts[3].rows``."""

    def __init__(self, problem: str, place: str = "") -> None:
        self.problem, self.place = problem, place
        super().__init__(f"{place or 'it'} {problem}")

    def inside(self, outer: str) -> FieldError:
        """Return the same error, of a value that is inside another one."""
        dot = "" if self.place[:1] in ("", "[") else "."
        return FieldError(self.problem, f"{outer}{dot}{self.place}")


def to_jsonable(value: Any, *, text: Callable[[bytes], str] | None = None) -> Any:
    """Return a dataclass, and all it holds, as JSON values; ``text`` spells bytes.

    Fields are in the order in which the class declares them.
    """
    kind: Any = type(value)
    if kind in _PLAIN:
        return value
    if kind is bytes:
        return value if text is None else text(value)
    if names := _names(kind):
        return {name: to_jsonable(getattr(value, name), text=text) for name in names}
    if isinstance(value, (tuple, list)):
        return [to_jsonable(item, text=text) for item in value]
    if isinstance(value, Mapping):
        return {name: to_jsonable(item, text=text) for name, item in value.items()}
    return value


_PLAIN = {int, str, float, bool, type(None)}  # asked first: most values are


@cache
def _names(kind: Any) -> tuple[str, ...]:
    """Return the fields of a dataclass; none of any other type."""
    return tuple(one.name for one in fields(kind)) if is_dataclass(kind) else ()


def from_jsonable(
    kind: type[_T],
    value: Any,
    *,
    exact: bool = False,
    data: Callable[[str], bytes] = str.encode,
) -> _T:
    """Return a JSON value as an instance of ``kind``: what `to_jsonable` was given.

    Args:
        kind: most often a dataclass. Fields that have a default may be missing.
        value: as `json.loads` returns it; instances of a dataclass are returned unchanged.
        exact: refuse fields that the dataclass does not have; else they are ignored.
        data: undoes ``text``.

    Raises:
        FieldError: the value, or one inside it, is missing or does not fit.
    """
    return cast("_T", _reader(cast("Any", kind), exact, data).read(value))


class _Reader(NamedTuple):
    """Reads values of one type; ``expected`` is what errors call the type."""

    expected: str
    read: Callable[[Any], Any]


@cache
def _reader(kind: Any, exact: bool, data: Callable[[str], bytes]) -> _Reader:
    def inner(of: Any) -> _Reader:
        return _reader(of, exact, data)

    if kind is Any:
        return _Reader("a value", lambda value: value)
    if is_dataclass(kind):
        hints = get_type_hints(kind)
        of = {one.name: inner(hints[one.name]) for one in fields(kind) if one.init}
        return _record(cast("type", kind), of, exact=exact)
    origin, arguments = get_origin(kind), get_args(kind)
    if origin in (Union, UnionType):
        return _union([inner(one) for one in arguments])
    if origin is tuple:  # of any length
        return _tuple(inner(arguments[0]))
    if origin in (Mapping, dict):
        return _mapping(inner(arguments[1]))
    if origin is Literal:
        expected = " or ".join(map(repr, arguments))
        return _value(expected, lambda value: isinstance(value, str) and value in arguments)
    if kind is bytes:
        return _bytes(inner(str), data)
    return _SCALARS[kind]


def _value(expected: str, fits: Callable[[Any], bool]) -> _Reader:
    def read(value: Any) -> Any:
        if not fits(value):
            raise _mismatch(expected, value)
        return value

    return _Reader(expected, read)


def _mismatch(expected: str, value: object) -> FieldError:
    return FieldError(f"must be {expected}, got {value!r:.60}")


_SCALARS = {
    str: _value("a string", lambda value: type(value) is str),
    int: _value("an integer from 0", lambda value: type(value) is int and value >= 0),
    # One that a float can hold: JSON has integers of any length.
    float: _value("a number", lambda value: type(value) in (int, float) and abs(value) <= _LARGEST),
    bool: _value("true or false", lambda value: type(value) is bool),
    type(None): _value("null", lambda value: value is None),
}


def _bytes(string: _Reader, data: Callable[[str], bytes]) -> _Reader:
    def read(value: Any) -> bytes:
        try:
            return data(string.read(value))
        except (UnicodeError, KeyError) as error:
            raise FieldError(f"is no token ({error}): {value!r:.60}") from error

    return _Reader(string.expected, read)


def _tuple(item: _Reader) -> _Reader:
    def read(value: Any) -> tuple[Any, ...]:
        if not isinstance(value, list):
            raise _mismatch("a list", value)
        return tuple(_inside(number, item, one) for number, one in enumerate(value))

    return _Reader("a list", read)


def _mapping(item: _Reader) -> _Reader:
    def read(value: Any) -> dict[str, Any]:
        if not isinstance(value, dict):
            raise _mismatch("an object", value)
        return {name: _inside(name, item, one) for name, one in value.items()}

    return _Reader("an object", read)


def _inside(name: str | int, reader: _Reader, value: Any) -> Any:
    """Return the value of a field, or of a number in a list."""
    try:
        return reader.read(value)
    except FieldError as error:
        raise error.inside(name if isinstance(name, str) else f"[{name}]") from error.__cause__


def _union(kinds: list[_Reader]) -> _Reader:
    expected = " or ".join(kind.expected for kind in kinds)

    def read(value: Any) -> Any:
        for kind in kinds:
            try:
                return kind.read(value)
            except FieldError as error:  # noqa: PERF203 - of a few kinds
                if error.place or not error.problem.startswith("must be"):
                    raise  # of the right type, but for what is inside
        raise _mismatch(expected, value)

    return _Reader(expected, read)


def _record(kind: type, of: Mapping[str, _Reader], *, exact: bool) -> _Reader:
    optional = {
        one.name
        for one in fields(kind)
        if one.default is not MISSING or one.default_factory is not MISSING
    }

    def read(value: Any) -> Any:
        if isinstance(value, kind):
            return value
        if not isinstance(value, dict):
            raise _mismatch("an object", value)
        if exact and (unknown := value.keys() - of.keys()):
            raise FieldError(f"has the unknown field {min(unknown)!r:.60}")
        values = {}
        for name, reader in of.items():
            if name in value:
                values[name] = _inside(name, reader, value[name])
            elif name not in optional:
                names = ", ".join(map(repr, list(value)[:_SHOWN])) or "none"
                raise FieldError(f"has no field {name!r} (its fields: {names})")
        try:
            return kind(**values)
        except ValueError as error:  # the class checks more
            raise FieldError(f"is wrong: {error}") from error

    return _Reader("an object", read)
