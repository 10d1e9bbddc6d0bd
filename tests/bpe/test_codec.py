"""Dataclasses through JSON: what is written, and what an error says."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

import pytest

from bpe._codec import FieldError, from_jsonable, to_jsonable


@dataclass(frozen=True)
class Piece:
    file: str
    rows: int = 0

    def __post_init__(self) -> None:
        if self.file.startswith("/"):
            raise ValueError(f"{self.file!r} is no name")


@dataclass(frozen=True, kw_only=True)
class Record:
    kind: Literal["a", "b"]
    parts: tuple[Piece, ...]
    share: float = 0.5
    sorted: bool = True
    pattern: str | tuple[str, ...] | None = None
    first: Piece | None = None
    sizes: Mapping[str, int] = field(default_factory=dict)
    token: bytes = b""
    settings: Mapping[str, Any] = field(default_factory=dict)


RECORD = Record(
    kind="b",
    parts=(Piece("x", 3), Piece("y")),
    pattern=("p", "q"),
    first=Piece("z"),
    sizes={"jsonl": 2**70},
    token=b"\xff",
    settings={"any": [1, None]},
)


def test_round_trip() -> None:
    value = to_jsonable(RECORD, text=lambda data: data.decode("latin-1"))
    assert list(value) == list(RECORD.__dataclass_fields__)
    assert value["parts"] == [{"file": "x", "rows": 3}, {"file": "y", "rows": 0}]
    text = json.dumps(value)
    read = from_jsonable(Record, json.loads(text), data=lambda text: text.encode("latin-1"))
    assert read == RECORD
    assert from_jsonable(Record, {"kind": "a", "parts": []}) == Record(kind="a", parts=())


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"kind": "c"}, "kind must be 'a' or 'b', got 'c'"),
        ({"parts": {}}, "parts must be a list, got {}"),
        ({"parts": [{"file": "x"}, {"rows": 1}]}, "parts[1] has no field 'file' (its fields: "),
        ({"parts": [{"file": "x", "rows": -1}]}, "parts[0].rows must be an integer from 0, got -1"),
        ({"parts": [{"file": "/x"}]}, "parts[0] is wrong: '/x' is no name"),
        ({"share": float("nan")}, "share must be a number, got nan"),
        ({"share": 10**400}, "share must be a number, got 1000"),
        ({"sorted": 1}, "sorted must be true or false, got 1"),
        ({"pattern": 1}, "pattern must be a string or a list or null, got 1"),
        ({"pattern": ["a", 1]}, "pattern[1] must be a string, got 1"),
        ({"first": {"file": 1}}, "first.file must be a string, got 1"),
        ({"first": []}, "first must be an object or null, got []"),
        ({"token": "\ud800"}, "token is no token"),
        ({"settings": None}, "settings must be an object, got None"),
    ],
)
def test_an_error_names_the_field(change: dict[str, Any], message: str) -> None:
    with pytest.raises(FieldError) as caught:
        from_jsonable(Record, {"kind": "a", "parts": [], **change})
    assert str(caught.value).startswith(message)


def test_unknown_fields_are_refused_only_where_all_must_be_known() -> None:
    value = {"kind": "a", "parts": [{"file": "x", "extra": 1}]}
    assert from_jsonable(Record, value).parts == (Piece("x"),)
    with pytest.raises(FieldError, match=r"parts\[0\] has the unknown field 'extra'"):
        from_jsonable(Record, value, exact=True)
    with pytest.raises(FieldError, match="it must be an object, got"):
        from_jsonable(Record, [])
