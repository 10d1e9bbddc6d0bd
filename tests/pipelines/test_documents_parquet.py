from __future__ import annotations

from datetime import datetime, timezone
from decimal import Decimal
from itertools import chain, pairwise
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipelines.corpus.documents import ReadOptions
from pipelines.errors import InputError
from tests.examples import examples
from tests.pipelines.corpus_files import Found, cut, read, read_blocks, whole

if TYPE_CHECKING:
    from pathlib import Path


def write(path: Path, columns: dict[str, Any], **options: Any) -> None:
    pq.write_table(pa.table(columns), path, **options)


def whole_file(path: Path, **options: Any) -> Found:
    return read(whole(path, "parquet"), options=ReadOptions(**options))


texts = st.lists(st.one_of(st.none(), st.text(st.characters(exclude_categories=["Cs"]))))


@examples(200)
@given(
    groups=st.lists(texts, max_size=6),
    bounds=st.lists(st.floats(0, 1), max_size=5),
    block_bytes=st.integers(1, 60),
    kind=st.sampled_from(
        ["string", "large_string", "string_view", "binary", "large_binary", "dictionary"]
    ),
    encoding=st.sampled_from(["PLAIN", "DELTA_BYTE_ARRAY", "DELTA_LENGTH_BYTE_ARRAY", None]),
    field=st.sampled_from(["text", "data.text"]),
)
def test_rows_come_back_however_they_are_stored(
    tmp_path_factory: pytest.TempPathFactory,
    groups: list[list[str | None]],
    bounds: list[float],
    block_bytes: int,
    kind: str,
    encoding: str | None,
    field: str,
) -> None:
    """Also in no row group, and next to some without rows; wherever the file is cut.

    In structs, some are null for the text that they hold.
    """
    path = tmp_path_factory.mktemp("parquet") / "f.parquet"
    layout: dict[str, Any] = {}
    if encoding and kind != "dictionary":  # pyarrow cannot read the others back as a dictionary
        layout = {"use_dictionary": False, "column_encoding": {field: encoding}}
    text = pa.dictionary(pa.int32(), pa.string()) if kind == "dictionary" else getattr(pa, kind)()
    nested = field != "text"
    column = ("data", pa.struct([("text", text)])) if nested else ("text", text)
    with pq.ParquetWriter(path, pa.schema([column]), **layout) as writer:
        for group in groups:
            array = pa.array(group, pa.string()).cast(text)
            if nested:
                null = [one is None and row % 2 == 0 for row, one in enumerate(group)]
                mask = pa.array(null, pa.bool_())
                array = pa.StructArray.from_arrays([array], ["text"], mask=mask)
            writer.write_table(pa.table([array], [column[0]]))
    values = list(chain.from_iterable(groups))
    source = whole(path, "parquet")
    ends = sorted([0, source.file_size, *(round(bound * source.file_size) for bound in bounds)])
    pieces = [cut(source, a, b) for a, b in pairwise(ends)]
    found = read(*pieces, options=ReadOptions(text_field=field, block_bytes=block_bytes))
    rows = [(f"f.parquet:{row}", value, row) for row, value in enumerate(values)]
    assert found.documents == [one for one in rows if one[1] is not None]
    assert [(bad.place, bad.reason) for bad in found.bad] == [
        (row, "the text is null") for _, value, row in rows if value is None
    ]


def test_a_column_of_nulls_is_bad_row_by_row(tmp_path: Path) -> None:
    write(tmp_path / "f", {"text": pa.nulls(3)})
    assert [bad.place for bad in whole_file(tmp_path / "f").bad] == [0, 1, 2]


def test_malformed_utf8_is_bad_and_its_neighbours_are_not(tmp_path: Path) -> None:
    values = [b"one", b"two\xff", b"", b"\xed\xa0\x80", "fünf".encode()]
    for name, column in (
        ("binary", pa.array(values, pa.binary())),
        ("string", pa.array(values, pa.binary()).view(pa.string())),
    ):
        write(tmp_path / name, {"text": column})
        found = read(whole(tmp_path / name, "parquet"))
        assert found.texts == ["one", "", "fünf"]
        assert [(bad.place, bad.raw, bad.size) for bad in found.bad] == [
            (1, b"two\xff", 4),
            (3, b"\xed\xa0\x80", 3),
        ]
        assert "malformed UTF-8 at byte 3 of the record (0xff: " in found.bad[0].reason


def test_a_malformed_id_makes_a_bad_record(tmp_path: Path) -> None:
    ids = pa.array([b"a", b"\xff", None], pa.binary())
    write(tmp_path / "f", {"text": ["1", "2", "3"], "id": ids})
    found = whole_file(tmp_path / "f")
    assert found.ids == ["a", "f:2"]
    remedy = "(name another column with `id_field`)"
    assert [bad.reason for bad in found.bad] == [f"id field 'id' is not well-formed UTF-8 {remedy}"]
    found = whole_file(tmp_path / "f", id_field="id")
    assert found.ids == ["a"]
    assert [bad.reason for bad in found.bad] == [
        f"id field 'id' is not well-formed UTF-8 {remedy}",
        f"id field 'id' is null {remedy}",
    ]


@pytest.mark.parametrize(
    ("ids", "expected"),
    [
        (pa.array([1, 2**64 - 1], pa.uint64()), ["1", "18446744073709551615"]),
        (pa.array(["a", "b"]).dictionary_encode(), ["a", "b"]),
        (pa.array([b"ab", b"cd"], pa.binary(2)), ["ab", "cd"]),
        (pa.array(["a", None], pa.large_string()), ["a"]),
        (pa.array([1.5, 2.0, None]), ["1.5", "2"]),
        (pa.array([0.1, 7.0], pa.float32()), ["0.1", "7"]),
        (pa.array([Decimal("1.50"), Decimal("2.00")]), ["1.50", "2.00"]),
        (pa.array([1.5, 1.5, None]).dictionary_encode(), ["1.5", "1.5"]),
        (pa.array(["nan", "inf"]), ["nan", "inf"]),
    ],
)
def test_ids_of_any_fitting_type(tmp_path: Path, ids: pa.Array, expected: list[str]) -> None:
    write(tmp_path / "f", {"text": ["x"] * len(ids), "id": ids})
    assert whole_file(tmp_path / "f", id_field="id").ids == expected
    own = [f"f:{row}" for row in range(len(expected), len(ids))]
    assert whole_file(tmp_path / "f").ids == expected + own


@pytest.mark.parametrize(
    ("ids", "reason"),
    [
        (pa.array([True, None]), "is of type bool, neither a string nor a number"),
        (pa.array([[1], None]), "neither a string nor a number"),
        (pa.array([datetime(2026, 1, 1, tzinfo=timezone.utc), None]), "is of type timestamp"),
        (pa.array([float("nan"), None]), "is nan, which is no number"),
    ],
)
def test_what_cannot_be_an_id_makes_a_bad_record(
    tmp_path: Path, ids: pa.Array, reason: str
) -> None:
    write(tmp_path / "f", {"text": ["x", "y"], "id": ids})
    found = whole_file(tmp_path / "f")
    assert found.documents == [("f:1", "y", 1)]
    (bad,) = found.bad
    assert (bad.place, bad.raw) == (0, b"x")
    assert reason in bad.reason
    assert "`id_field`" in bad.reason


NOT_TEXT = r"f: column 'text' holds .*, not text"


@pytest.mark.parametrize(
    ("columns", "options", "message"),
    [
        *(({"text": column}, {}, NOT_TEXT) for column in (["a"], {"a": "b"}, 1, 1.5, True)),
        ({"text": "a", "key": True}, {"id_field": "key"}, "neither strings nor numbers"),
        ({"content": "a"}, {"text_field": "content", "id_field": "key"}, "no column 'key'"),
        (
            {"content": "a", "n": 1},
            {},
            r"f has no column 'text': name one with `text_field` .*content: string, n: int64",
        ),
        *(
            ({name: value}, {"text_field": "data.text"}, message)
            for name, value, message in (
                ("body", "x", r"has no column 'data\.text': name one .*columns are body: string"),
                ("data", "x", r"'data\.text': column 'data' holds string, not a struct"),
                ("data", {"a": 1}, r"'data' has no fields 'text', but a: int64 \(see `text_field`"),
                ("data", {"text": 1}, r"column 'data\.text' holds int64, not text"),
            )
        ),
    ],
)
def test_columns_that_do_not_fit_are_refused(
    tmp_path: Path, columns: dict[str, Any], options: dict[str, str], message: str
) -> None:
    write(tmp_path / "f", {name: pa.array([value]) for name, value in columns.items()})
    with pytest.raises(InputError, match=message):
        whole_file(tmp_path / "f", **options)


def test_two_columns_of_one_name_are_refused(tmp_path: Path) -> None:
    table = pa.Table.from_arrays([pa.array(["a"]), pa.array(["b"])], names=["text", "text"])
    pq.write_table(table, tmp_path / "f")
    with pytest.raises(InputError, match="2 columns 'text'"):
        whole_file(tmp_path / "f")


def test_a_file_that_is_not_parquet_is_one_bad_record(tmp_path: Path) -> None:
    """Or that is truncated."""
    write(tmp_path / "f", {"text": ["a"] * 100})
    good = (tmp_path / "f").read_bytes()
    truncated = [good[:size] for size in (4, len(good) // 2, len(good) - 9, len(good) - 1)]
    for data in (b"", b"PAR1", b"not parquet at all" * 10, b"PAR1" + b"\0" * 99, *truncated):
        (tmp_path / "f").write_bytes(data)
        found = whole_file(tmp_path / "f")
        assert found.documents == []
        (bad,) = found.bad
        assert (bad.place, bad.raw, bad.size) == (0, data, len(data))
        assert "not a Parquet file" in bad.reason


def test_a_damaged_row_group_loses_its_own_rows_only(tmp_path: Path) -> None:
    values = [f"{i:05}" * 20 for i in range(3000)]
    write(tmp_path / "f", {"text": values}, row_group_size=1000, use_dictionary=False)
    chunk = pq.ParquetFile(tmp_path / "f").metadata.row_group(1).column(0)
    data = bytearray((tmp_path / "f").read_bytes())
    middle = chunk.data_page_offset + chunk.total_compressed_size // 2
    data[middle : middle + 200] = b"\xaa" * 200
    (tmp_path / "f").write_bytes(data)
    found = whole_file(tmp_path / "f")
    (bad,) = found.bad
    assert "row group 1 cannot be read" in bad.reason
    assert 1000 <= bad.place < 2000
    assert found.texts == values[: bad.place] + values[2000:]
    assert found.places == [*range(bad.place), *range(2000, 3000)]


def test_a_footer_that_tells_other_numbers_of_rows_is_damaged(tmp_path: Path) -> None:
    """Each byte of the footer in turn: what pyarrow then takes for the truth may be fewer rows."""
    path = tmp_path / "f.parquet"
    write(path, {"text": [f"{i}" for i in range(60)]}, row_group_size=20)
    good = path.read_bytes()
    reasons = set()
    for position in range(len(good) - 8 - int.from_bytes(good[-8:-4], "little"), len(good) - 8):
        for value in {good[position] ^ 1, 0} - {good[position]}:
            data = bytearray(good)
            data[position] = value
            path.write_bytes(data)
            try:
                found = read(whole(path, "parquet"))
            except InputError:
                continue
            assert found.bad or found.texts == [f"{i}" for i in range(60)], position
            reasons |= {bad.reason.rpartition(": ")[2] for bad in found.bad}
    assert {
        "its row groups have 40 rows, the file 60",
        "its row groups have 60 rows, the file 0",
    } <= reasons


@examples(80)
@given(
    flips=st.lists(st.tuples(st.floats(0, 1), st.integers(0, 255)), min_size=1, max_size=4),
    bound=st.floats(0, 1),
    dictionary=st.booleans(),
)
def test_no_damage_ends_the_process_or_hides(
    tmp_path_factory: pytest.TempPathFactory,
    flips: list[tuple[float, int]],
    bound: float,
    dictionary: bool,
) -> None:
    path = tmp_path_factory.mktemp("parquet") / "f.parquet"
    values = [f"{i} words " * (i % 9) for i in range(60)]
    write(path, {"id": range(60), "text": values}, row_group_size=20, use_dictionary=dictionary)
    data = bytearray(path.read_bytes())
    for position, byte in flips:
        data[round(position * (len(data) - 1))] = byte
    path.write_bytes(data)
    source = whole(path, "parquet")
    middle = round(bound * len(data))
    try:
        found = read(cut(source, 0, middle), cut(source, middle, len(data)))
    except InputError:  # a column that is named or typed otherwise now
        return
    assert found.bad or len(found.documents) == 60


@pytest.mark.parametrize("field", ["text", "data.text"])
def test_blocks_are_about_as_large_as_asked(tmp_path: Path, field: str) -> None:
    """Whatever repeats, in the file or by its type."""
    texts = pa.array([f"{i} " * 100 for i in range(20_000)])
    few = pa.concat_arrays([texts[:500]] * 40)
    for column, most in ((texts, 300_000), (few, 900_000), (few.dictionary_encode(), 300_000)):
        for ids in (range(20_000), [f"{i % 7}" for i in range(20_000)]):
            struct = pa.StructArray.from_arrays([column, pa.array(ids)], ["text", "id"])
            write(tmp_path / "f", {"id": ids, "text": column, "data": struct})
            id_field = field.replace("text", "id")
            options = ReadOptions(text_field=field, id_field=id_field, block_bytes=100_000)
            blocks = list(read_blocks(whole(tmp_path / "f", "parquet"), options))
            assert pa.concat_arrays([b.texts for b in blocks]).to_pylist() == column.to_pylist()
            assert pa.concat_arrays([b.ids for b in blocks]).to_pylist() == [*map(str, ids)]
            assert all(block.texts.nbytes < most for block in blocks)
            assert all(block.texts.nbytes > 50_000 for block in blocks[:-1])


def test_a_column_of_the_whole_name_wins(tmp_path: Path) -> None:
    write(tmp_path / "f", {"data": [{"text": "inside"}], "data.text": ["whole"]})
    assert whole_file(tmp_path / "f", text_field="data.text").texts == ["whole"]
