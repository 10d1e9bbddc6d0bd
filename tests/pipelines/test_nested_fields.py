"""A field inside objects or structs, by its path: ``data.text``."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bpe import _native
from pipelines.corpus.documents import ReadOptions
from pipelines.corpus.documents.jsonl import parse_line
from pipelines.errors import InputError
from tests.pipelines.corpus_files import Found, read, whole

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("nested") / "f"


def read_lines(path: Path, data: bytes, **options: Any) -> Found:
    path.write_bytes(data)
    return read(whole(path, "jsonl"), options=ReadOptions(**options))


def read_table(path: Path, columns: dict[str, Any], **options: Any) -> Found:
    pq.write_table(pa.table(columns), path)
    return read(whole(path, "parquet"), options=ReadOptions(**options))


KEYS = st.sampled_from(["a", "b", "c", "a.b", "a.b.c", "b.c", ""])


def objects() -> st.SearchStrategy[str]:
    """JSON objects in objects, in which keys repeat."""
    scalars = st.one_of(
        st.text("xyé\n", max_size=3).map(json.dumps), st.sampled_from(["null", "7", "[{}]", "{}"])
    )

    def grown(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
        members = st.lists(st.tuples(KEYS.map(json.dumps), inner), max_size=4)
        return members.map(
            lambda pairs: "{" + ", ".join(f"{key}: {value}" for key, value in pairs) + "}"
        )

    return grown(st.recursive(scalars, grown, max_leaves=8))


def loaded(line: str) -> Any:
    """The record of a line; an empty one where a key of an object repeats."""

    def unique(members: list[tuple[str, Any]]) -> dict[str, Any]:
        if len(dict(members)) < len(members):
            raise ValueError
        return dict(members)

    try:
        return json.loads(line, object_pairs_hook=unique)
    except ValueError:
        return {}


def by_dots(record: Any, name: str) -> Any:
    """The whole rule again, in the plainest words; None where there is no such field."""
    if name in record:
        return record[name]
    for part in name.split("."):
        record = record.get(part) if isinstance(record, dict) else None
    return record


@given(line=objects(), field=st.sampled_from(["a", "a.b", "a.b.c", "b.c", "a.", "."]))
def test_the_core_finds_what_json_loads_finds(path: Path, line: str, field: str) -> None:
    text = by_dots(loaded(line), field)
    found = read_lines(path, line.encode(), text_field=field, id_field=None)
    undecided = _native.read_json_lines(line.encode(), 0, field.encode(), b"id", False)[-1]
    if isinstance(text, str):
        assert (
            found.texts == [text] == [parse_line(line.encode(), ReadOptions(text_field=field)).text]
        )
        assert len(undecided) == 0
    else:
        assert found.texts == []
        assert len(found.bad) == 1


@given(line=objects(), field=st.sampled_from(["a", "a.b", "a.b.c", "b.c"]))
def test_ids_too_and_both_at_once(path: Path, line: str, field: str) -> None:
    line = '{"a.b": "x", "d": {"text": "t"}, ' + line[1:]
    line = line.replace(", }", "}")
    id_ = by_dots(loaded(line), field)
    found = read_lines(path, line.encode(), text_field="d.text", id_field=field)
    good = isinstance(id_, (str, int))
    assert found.documents == ([(str(id_), "t", 0)] if good else [])


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ('{"body": 1}', "no field 'data.text': the record has 'body' (see `text_field`)"),
        ('{"data": {"body": 1}}', "no field 'data.text': 'data' has 'body' (see `text_field`)"),
        ('{"data": {}}', "no field 'data.text': 'data' has no fields"),
        ('{"data": "x"}', "no field 'data.text': 'data' is a string, not an object"),
        ('{"data": [{"text": "x"}]}', "no field 'data.text': 'data' is an array, not an object"),
        ('{"data": {"text": 5}}', "field 'data.text' is a number, not a string"),
        ('{"data": {"text": "x"}, "data.text": null}', "field 'data.text' is null, not a string"),
        ('{"data": {"text": "x"}, "data": 1}', "duplicate key 'data'"),
        ('{"data": {"text": "x", "text": "y"}}', "duplicate key 'text'"),
        ('{"data": 1}', "'data' is a number, not an object"),
        ('{"data": {"text": "a\\ud800"}}', "field 'data.text' holds half a surrogate pair"),
        ('{"a": ' * 250 + "1" + "}" * 250, "brackets nest more than 200 deep"),
    ],
)
def test_a_bad_record_says_how_far_the_path_leads(path: Path, line: str, reason: str) -> None:
    found = read_lines(path, line.encode() + b"\n", text_field="data.text")
    assert found.texts == []
    assert reason in found.bad[0].reason


def test_an_id_that_is_missing(path: Path) -> None:
    line = b'{"text": "x", "meta": {"no": 3}}\n'
    assert read_lines(path, line, id_field="meta.no").ids == ["3"]
    (bad,) = read_lines(path, line, id_field="meta.id").bad
    assert bad.reason.startswith("id field 'meta.id' is missing: 'meta' has 'no' (name another")


@given(deep=st.integers(1, 230))
def test_objects_may_nest_as_deep_as_without_a_path(path: Path, deep: int) -> None:
    name = ".".join(["a"] * deep)
    line = ('{"a": ' * deep + '"x"' + "}" * deep).encode()
    found = read_lines(path, line, text_field=name)
    assert found.texts == (["x"] if deep <= 200 else [])
    assert len(found.bad) == (deep > 200)


# Parquet.


@given(
    rows=st.lists(
        st.one_of(
            st.none(),
            st.fixed_dictionaries({"text": st.one_of(st.none(), st.text("xé", max_size=3))}),
        ),
        min_size=1,
    )
)
def test_structs(path: Path, rows: list[dict[str, str | None] | None]) -> None:
    """A row is bad where the text is null, or the struct that holds it."""
    struct = pa.array(rows, pa.struct([("text", pa.string())]))
    outer = pa.StructArray.from_arrays([struct, pa.array(range(len(rows)))], ["data", "no"])
    found = read_table(path, {"all": outer}, text_field="all.data.text", id_field="all.no")
    texts = [None if row is None else row["text"] for row in rows]
    assert found.texts == [text for text in texts if text is not None]
    assert found.ids == [str(row) for row, text in enumerate(texts) if text is not None]
    assert [bad.place for bad in found.bad] == [i for i, text in enumerate(texts) if text is None]


def test_a_column_of_the_whole_name_wins(path: Path) -> None:
    struct = pa.array([{"text": "inside"}])
    columns = {"data": struct, "data.text": ["whole"]}
    assert read_table(path, columns, text_field="data.text").texts == ["whole"]
    assert read_table(path, {"data": struct}, text_field="data.text").texts == ["inside"]


def test_large_values_that_repeat_are_read_in_pieces(path: Path) -> None:
    """Dictionary-encoded in the file, and as a type."""
    texts = ["x" * 50_000, "y" * 50_000] * 40
    for column in (pa.array(texts), pa.array(texts).dictionary_encode()):
        struct = pa.StructArray.from_arrays([column], ["text"])
        pq.write_table(pa.table({"data": struct}), path)
        options = ReadOptions(text_field="data.text", block_bytes=100_000)
        assert read(whole(path, "parquet"), options=options).texts == texts


@pytest.mark.parametrize(
    ("columns", "reason"),
    [
        ({"body": ["x"]}, r"has no column 'data\.text': name one .*columns are body: string"),
        ({"data": ["x"]}, r"no column 'data\.text': column 'data' holds string, not a struct"),
        ({"data": [{"a": 1}]}, r"'data' has no fields 'text', but a: int64 \(see `text_field`\)"),
        ({"data": [{"text": 1}]}, r"column 'data\.text' holds int64, not text"),
    ],
)
def test_a_file_without_the_field(path: Path, columns: dict[str, Any], reason: str) -> None:
    with pytest.raises(InputError, match=reason):
        read_table(path, columns, text_field="data.text")
