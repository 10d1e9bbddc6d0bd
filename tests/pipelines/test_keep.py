"""Columns that pass through: their types, where they come from, and what does not fit."""

from __future__ import annotations

import datetime as dt
import json
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from pipelines.errors import ConfigError, InputError, JobError, RecordError, VerificationError
from pipelines.settings import EncodeSettings, InputSettings
from tests import jobs
from tests.pipelines.corpora import dead_letters, decoded, encode, write_rows
from tests.shared_data import long_but

if TYPE_CHECKING:
    from pathlib import Path

RECORDS: list[dict[str, Any]] = [
    {"id": "a", "text": "one fox", "n": 1, "x": 1, "ok": True, "s": "é", "l": [1], "o": {"k": "v"}},
    {"id": "b", "text": "two", "n": -(1 << 63), "x": 2.5, "ok": None, "s": "", "l": [], "o": {}},
    {"id": "c", "text": "", "n": None, "x": None, "l": None, "o": {"m": [{"q": 1.5}]}},
    {"id": "d", "text": "the quick brown fox", "n": 4, "s": "\u2028", "l": [None, 2], "o": None},
]
NAMES = ("n", "x", "ok", "s", "l", "o")
TYPES = {
    "n": pa.int64(),
    "x": pa.float64(),
    "ok": pa.bool_(),
    "s": pa.string(),
    "l": pa.list_(pa.int64()),
    "o": pa.struct([("k", pa.string()), ("m", pa.list_(pa.struct([("q", pa.float64())])))]),
}


def inputs(path: Path, **more: Any) -> InputSettings:
    return InputSettings(patterns=(str(path),), **more)


def kept(folder: Path, model: Path, ids: Path, *names: str, **more: Any) -> pa.Table:
    """The columns that pass through, of all parts; verified."""
    settings = EncodeSettings(keep=names)
    encode(inputs(folder, **more), model, ids, encoding=settings)
    jobs.verify(directory=str(ids), inputs=inputs(folder, **more))
    return pa.concat_tables(pq.read_table(path) for path in sorted(ids.glob("data/train-*")))


def expected(record: dict[str, Any]) -> dict[str, Any]:
    """A record as a row: fields that are not there are null."""
    row = {name: record.get(name) for name in NAMES}
    if row["o"] is not None:
        row["o"] = {"k": row["o"].get("k"), "m": row["o"].get("m")}
    return row


@pytest.mark.parametrize("split_size", long_but([None, 90], 90))
def test_fields_pass_through_with_their_types(
    model: Path, tmp_path: Path, split_size: int | None
) -> None:
    write_rows(tmp_path / "in" / "a.jsonl", RECORDS)
    table = kept(tmp_path / "in", model, tmp_path / "ids", *NAMES, split_size=split_size)
    assert table.schema.names == ["id", *NAMES, "key", "input_ids", "num_tokens"]
    assert {name: table.schema.field(name).type for name in NAMES} == TYPES
    assert table.select(NAMES).to_pylist() == [expected(record) for record in RECORDS]


def test_columns_of_parquet_pass_through_with_their_types(model: Path, tmp_path: Path) -> None:
    zone = dt.timezone.utc
    when = dt.datetime(2026, 1, 2, 3, 4, 5, 6, zone)
    source = pa.table(
        {
            "text": ["one", "two", None, "four"],
            "when": pa.array([when, None, when, when], pa.timestamp("us", tz="UTC")),
            "day": pa.array([dt.date(2026, 1, 2)] * 4, pa.date32()),
            "small": pa.array([1, 2, 3, None], pa.int8()),
            "price": pa.array([None] * 4, pa.decimal128(10, 2)),
            "raw": pa.array([b"\xff", b"", b"x", None], pa.binary()),
            "fixed": pa.array([b"ab"] * 4, pa.binary(2)),
            "map": pa.array([[("k", 1)], [], [], None], pa.map_(pa.string(), pa.int64())),
            "wide": pa.array(["a"] * 4, pa.large_string()),
            "word": pa.array(["x", "y", "x", "x"]).dictionary_encode(),
            "nested": pa.array(
                [[{"a": 1}], [], [{"a": None}], [None]],
                pa.list_(pa.struct([pa.field("a", pa.float32())])),
            ),
            "many.dots": pa.array([1, 2, 3, 4], pa.uint64()),
            "nan": pa.array([float("nan"), -0.0, float("inf"), None], pa.float64()),
        }
    )
    (tmp_path / "in").mkdir()
    pq.write_table(source, tmp_path / "in" / "a.parquet", row_group_size=2)
    names = source.schema.names[1:]
    table = kept(tmp_path / "in", model, tmp_path / "ids", *names, max_failures=1)
    there = source.filter(source["text"].is_valid())
    for name in names:
        kind = source.schema.field(name).type
        kind = pa.string() if name == "word" else kind
        assert table.schema.field(name).type == kind
        assert repr(table[name].to_pylist()) == repr(there[name].to_pylist())


def test_types_of_several_files_come_together(model: Path, tmp_path: Path) -> None:
    folder = tmp_path / "in"
    write_rows(folder / "a.jsonl", [{"text": "one", "n": None, "o": {"a": 1}}])
    two = {"text": "two", "n": 2, "o": {"a": 1}, "late": [1]}
    write_rows(folder / "b.jsonl", [two, {"text": "", "late": [2.5]}])
    struct = pa.struct([pa.field("b", pa.string(), nullable=False)])
    columns = {"n": pa.array([3], pa.int16()), "o": pa.array([{"b": "x"}], struct)}
    late = pa.array([None], pa.list_(pa.float32()))
    pq.write_table(pa.table({"text": ["three"], **columns, "late": late}), folder / "c.parquet")
    table = kept(folder, model, tmp_path / "ids", "n", "o", "late")
    assert table["n"].to_pylist() == [None, 2, None, 3]
    assert table["o"].to_pylist() == [
        {"b": None, "a": 1},
        {"b": None, "a": 1},
        None,
        {"b": "x", "a": None},
    ]
    assert table["late"].to_pylist() == [None, [1.0], [2.5], None]


LATE: list[tuple[dict[str, Any], str]] = [
    ({"n": "x"}, "field 'n' is a string, not int64"),
    ({"n": 1 << 70}, "field 'n' is 1180591620717411303424, which int64 does not hold"),
    ({"n": 1.5}, "field 'n' is a number, not int64"),
    ({"n": 1 << 63}, "field 'n' is 9223372036854775808, which int64 does not hold"),
    ({"n": "9" * 5000}, "field 'n' is a number, not int64"),
    ({"n": True}, "field 'n' is true, not int64"),
    ({"x": (1 << 53) + 1}, "field 'x' is 9007199254740993, which double does not hold"),
    ({"ok": 1}, "field 'ok' is a number, not bool"),
    ({"s": "\ud800"}, "half a surrogate pair"),
    ({"l": [1, "x"]}, "field 'l[1]' is a string, not int64"),
    ({"l": {"a": 1}}, "field 'l' is an object, not list"),
    ({"day": "2026-01-01"}, "field 'day' is a string, not date32"),
    ({"o": {"new": 1}}, "field 'o' has a field 'new', which struct<"),
    ({"o": {"m": [{"q": []}]}}, "field 'o.m[0].q' is an array, not double"),
]


def test_records_that_do_not_fit_are_bad_records(model: Path, tmp_path: Path) -> None:
    first = [
        {"text": f"number {i}", **RECORDS[0], **RECORDS[2], "n": i, "x": 0.5} for i in range(1100)
    ]
    first[0] = RECORDS[0] | {"x": 0.5}
    path = write_rows(tmp_path / "in" / "a.jsonl", first)
    with path.open("a") as file:
        for late, _ in LATE:
            text = json.dumps({"id": "late", "text": "the last", **late})
            file.write(text.replace('"' + "9" * 5000 + '"', "9" * 5000) + "\n")
    reading = inputs(path, max_failures=len(LATE))
    settings = EncodeSettings(keep=(*NAMES, "day:date32"))
    summary = encode(reading, model, tmp_path / "ids", encoding=settings)
    assert (summary.documents, summary.failures) == (1100, len(LATE))
    for letter, (_, reason) in zip(dead_letters(tmp_path / "ids"), LATE, strict=True):
        assert letter["raw"].startswith('{"id": "late"')
        assert reason in letter["reason"]
    jobs.verify(directory=str(tmp_path / "ids"), inputs=reading)


def test_malformed_text_in_a_column_is_a_bad_record(model: Path, tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    names = pa.array([b"good", b"\xff", None]).view(pa.string())
    lists = pa.ListArray.from_arrays(pa.array([0, 1, 1, 3], pa.int32()), names)
    table = pa.table({"text": ["a", "b", "c"], "name": names, "names": lists})
    pq.write_table(table, tmp_path / "in" / "a.parquet")
    with pytest.raises(RecordError, match="column 'name' holds malformed UTF-8"):
        kept(tmp_path / "in", model, tmp_path / "ids", "name")
    found = kept(tmp_path / "in", model, tmp_path / "ids2", "name", "names", max_failures=2)
    assert found["name"].to_pylist() == ["good"]


X = {"text": "x"}
FILES: dict[str, Any] = {
    "text": ({"a.txt": "text"}, "n", ConfigError, r"a\.txt is read as text, which has no columns"),
    "two files": (
        {"a.jsonl": [{**X, "n": 1}], "b.parquet": {"text": ["x"], "n": ["y"]}},
        "n",
        ConfigError,
        r"b\.parquet has it as string, .*a\.jsonl as int64, and no type holds both",
    ),
    "no column": ({"b.parquet": {"text": ["x"]}}, "n", InputError, r"b\.parquet has no column 'n'"),
    "not asked": (
        {"b.parquet": {"text": ["x"], "n": ["y"]}},
        "n:int64",
        ConfigError,
        r"b\.parquet has it as string, which the int64 that was asked for",
    ),
}
RECORDS_REFUSED: dict[str, tuple[list[dict[str, Any]], str, str]] = {
    "missing": ([{**X, "m": 1}], "n", "no such field.*'m'"),
    "empty": ([{**X, "n": [[]]}], "n", "only null or empty"),
    "mixed": ([{**X, "n": [1]}, {**X, "n": 1}], "n", r"no type holds the values in .*a\.jsonl"),
    "no type": ([X], "n:strng", "'strng' is no type"),
    "twice": ([X], "n,n", "named twice"),
    "twice, with a type": ([X], "n,n:int8", "named twice"),
    **{
        name: ([{**X, name: 1}], name, f"`keep` {name}: a document has a column of that name")
        for name in ("id", "key", "input_ids", "num_tokens")
    },
}
FILES |= {
    f"JSON, {how}": ({"a.jsonl": records}, names, ConfigError, message)
    for how, (records, names, message) in RECORDS_REFUSED.items()
}


@pytest.mark.parametrize("how", FILES)
def test_what_cannot_pass_through_is_refused(model: Path, tmp_path: Path, how: str) -> None:
    files, names, error, message = FILES[how]
    for name, what in files.items():
        path = tmp_path / "in" / name
        path.parent.mkdir(exist_ok=True)
        if name.endswith("parquet"):
            pq.write_table(pa.table(what), path)
        elif name.endswith("jsonl"):
            write_rows(path, what)
        else:
            path.write_text(what)
    settings = EncodeSettings(keep=tuple(names.split(",")))
    with pytest.raises(error, match=message):
        encode(inputs(tmp_path / "in"), model, tmp_path / "ids", encoding=settings)
    assert not (tmp_path / "ids").exists()


def test_a_value_that_the_common_type_does_not_hold_is_an_error(
    model: Path, tmp_path: Path
) -> None:
    (tmp_path / "in").mkdir()
    for name, value in (("a", 0.5), ("b", 1 << 60)):
        pq.write_table(pa.table({"text": ["x"], "n": [value]}), tmp_path / "in" / f"{name}.parquet")
    message = r"b\.parquet: column 'n' has a value that double does not hold .*1152921504606846976"
    with pytest.raises(InputError, match=message):
        kept(tmp_path / "in", model, tmp_path / "ids", "n", max_failures=9)
    table = pa.table({"text": ["x"], "n": [2]})
    pq.write_table(table, tmp_path / "in" / "b.parquet")
    assert kept(tmp_path / "in", model, tmp_path / "ids2", "n")["n"].to_pylist() == [0.5, 2.0]


def test_names_of_other_layouts_are_free(model: Path, tmp_path: Path) -> None:
    """Also for columns with nulls, and where an error tells documents apart."""
    records: list[dict[str, Any]] = [
        {"text": "low", "documents": None},
        {"text": "fox", "chunk_index": 3, "length": 1, "a:b": "x"},
    ]
    file = write_rows(tmp_path / "in" / "a.jsonl", records)
    names = ("documents:string", "chunk_index", "offset:int64", "length:int8", "a:b:large_string")
    table = kept(tmp_path / "in", model, tmp_path / "ids", *names)
    assert table["documents"].to_pylist() == [None, None]
    assert table["chunk_index"].to_pylist() == [None, 3]
    assert table["length"].equals(pa.chunked_array([[None, 1]], pa.int8()))
    assert table["a:b"].equals(pa.chunked_array([[None, "x"]], pa.large_string()))
    assert [text for _, text in decoded(tmp_path / "ids")] == ["low", "fox"]
    file.write_bytes(file.read_bytes().replace(b"fox", b"dog"))
    with pytest.raises(VerificationError, match=r"document 'a\.jsonl:\d+': input_ids is"):
        jobs.verify(directory=str(tmp_path / "ids"), inputs=inputs(tmp_path / "in"))


def test_large_columns_make_small_row_groups(
    model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pipelines.parquet_writer.ROW_GROUP_BYTES", 8 << 20)
    (tmp_path / "in").mkdir()
    table = pa.table({"text": ["one"] * 30, "large": ["x" * (1 << 20)] * 30})
    pq.write_table(table, tmp_path / "in" / "a.parquet", row_group_size=1)
    found = kept(tmp_path / "in", model, tmp_path / "ids", "large")
    assert found.num_rows == 30
    (part,) = (tmp_path / "ids").glob("data/train-*")
    metadata = pq.ParquetFile(part).metadata
    rows = [metadata.row_group(i).num_rows for i in range(metadata.num_row_groups)]
    assert 1 < max(rows) <= 12


def test_a_damaged_parquet_file_is_a_bad_record_with_columns_too(
    model: Path, tmp_path: Path
) -> None:
    write_rows(tmp_path / "in" / "a.jsonl", [{"text": "x", "n": 1}])
    (tmp_path / "in" / "b.parquet").write_bytes(b"PAR1 no PAR1")
    table = kept(tmp_path / "in", model, tmp_path / "ids", "n", max_failures=1)
    assert table["n"].to_pylist() == [1]
    with pytest.raises(JobError, match=r"b\.parquet"):
        kept(tmp_path / "in", model, tmp_path / "ids2", "n")
