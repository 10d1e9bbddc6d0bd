"""Types of the columns that pass through: written as text, brought together, found in values."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from pipelines.corpus.documents.json_values import column
from pipelines.corpus.documents.types import parse_type, type_text, unify

plain = st.sampled_from(
    [
        *(pa.bool_(), pa.int8(), pa.uint64(), pa.float32(), pa.string(), pa.large_string()),
        *(pa.timestamp("ns", tz="Europe/Berlin"), pa.decimal128(7, 3), pa.date32(), pa.binary(3)),
        *(pa.time64("us"), pa.duration("ms"), pa.binary(), pa.float16()),
    ]
)
types = st.recursive(
    plain,
    lambda inner: (
        inner.map(pa.list_)
        | inner.map(pa.large_list)
        | st.dictionaries(st.text(min_size=1, max_size=4), inner, min_size=1, max_size=3).map(
            lambda fields: pa.struct(list(fields.items()))
        )
        | inner.map(lambda kind: pa.map_(pa.string(), kind))
    ),
    max_leaves=4,
)


@given(types)
def test_types_are_read_back_from_text(kind: pa.DataType) -> None:
    assert parse_type(type_text(kind)) == kind


def test_texts_that_are_types() -> None:
    assert parse_type("float64") == parse_type("double") == pa.float64()
    assert parse_type(" list< int8 >") == pa.list_(pa.int8())
    fields = {"a, b": pa.bool_(), "c": pa.list_(pa.string())}
    assert parse_type('struct<"a, b": bool, c: list<string>>') == pa.struct(list(fields.items()))


@pytest.mark.parametrize(
    "text",
    [
        *("", "list<", "list<int8", "list<int8>>", "struct<>", "struct<a>", "é", "int8 int8"),
        *("struct<a: int8, a: int8>", "list<" * 60 + "int8" + ">" * 60),
        *("timestamp[us, tz=", "decimal128(99, 2)"),
    ],
)
def test_texts_that_are_no_types(text: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        parse_type(text)


@given(types, types)
@example(pa.int8(), pa.int32())
def test_the_order_of_two_types_does_not_matter(one: pa.DataType, other: pa.DataType) -> None:
    both = unify(one, other)
    again = unify(other, one)
    assert (both is None) == (again is None)
    if both is not None:
        assert unify(both, one) == both


json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-(1 << 63), (1 << 63) - 1) | st.text(max_size=3),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=2), inner, max_size=3)
    ),
    max_leaves=6,
)


def holds(stored: Any, value: Any) -> bool:
    """Return whether a stored value is a value of JSON, but for fields that the value lacks."""
    if isinstance(value, dict):
        return all(holds(stored[name], one) for name, one in value.items())
    if isinstance(value, list):
        return all(holds(*pair) for pair in zip(stored, value, strict=True))
    return type(stored) is type(value) and stored == value


@given(json_values, json_values)
@example([1, True], [1.5, True])
def test_values_are_stored_as_they_are_or_have_a_problem(one: Any, other: Any) -> None:
    try:
        kind = pa.infer_type([one, other])
    except pa.ArrowInvalid:
        return  # lists among other values
    array, problems = column([one, other], pa.field("field", kind))
    for number, value in enumerate((one, other)):
        assert number in problems or holds(array[number].as_py(), value)


def test_a_value_fits_its_own_type() -> None:
    for value in (None, True, 1, "a", [], [1, None], {"a": [{"b": 1}, {"c": None}]}):
        assert column([value], pa.field("field", pa.infer_type([value])))[1] == {}
