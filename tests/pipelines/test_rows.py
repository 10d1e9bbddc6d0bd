"""Rows out of documents, and documents out of rows, without files."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bpe.reference.pack import best_fit
from pipelines.encode import rows as rows_module
from pipelines.encode.joining import joined, joiner, without_ends
from pipelines.encode.rows import (
    Documents,
    Dropped,
    RowLayout,
    RowMaker,
    carried_rows,
    columns_of,
    row_maker,
    with_ends,
)
from pipelines.errors import RecordError
from pipelines.settings import RowSettings

KEPT = (pa.field("lang", pa.string()),)
Lists = list[list[int]]
lists_of_ids = st.lists(st.lists(st.integers(0, 99), max_size=9), max_size=12)
portions = st.integers(1, 5)


def layout(
    prepend: int | None = None,
    append: int | None = None,
    pad: int | None = None,
    **settings: Any,
) -> RowLayout:
    return RowLayout(
        settings=RowSettings(**settings),
        id_type="uint16",
        kept=KEPT,
        prepend=prepend,
        append=append,
        pad=pad,
    )


def documents(lists: Lists, first: int = 0) -> Documents:
    numbers = range(first, first + len(lists))
    return Documents(
        ids=pa.array([f"d{i}" for i in numbers], pa.string()),
        kept=(pa.array([f"l{i}" if i % 3 else None for i in numbers], pa.string()),),
        input_ids=pa.array(lists, pa.list_(pa.uint32())),
    )


def made(how: RowLayout, lists: Lists, portion: int = 100) -> tuple[pa.Table, RowMaker]:
    """The rows of documents that come some at a time."""
    maker = row_maker(how)
    batches = []
    for first in range(0, len(lists), portion):
        some = documents(lists[first : first + portion], first)
        ids = with_ends(some.input_ids, prepend=how.prepend, append=how.append)
        batches.append(maker.add(replace(some, input_ids=ids)))
    batches.append(maker.finish())
    return pa.Table.from_batches(batches, how.schema), maker


def test_a_row_a_document() -> None:
    table, _ = made(layout(append=7), [[1, 2], [], [3]])
    assert table.to_pylist() == [
        {"id": "d0", "lang": None, "input_ids": [1, 2, 7], "num_tokens": 3},
        {"id": "d1", "lang": "l1", "input_ids": [7], "num_tokens": 1},
        {"id": "d2", "lang": "l2", "input_ids": [3, 7], "num_tokens": 2},
    ]
    element = pa.field("element", pa.uint16(), nullable=False)
    assert table.schema.field("input_ids").type == pa.list_(element)


def test_chunks_are_numbered_and_an_empty_document_keeps_a_row() -> None:
    table, _ = made(layout(max_tokens=2), [[1, 2, 3, 4, 5], [], [6, 7]])
    assert [tuple(row.values()) for row in table.to_pylist()] == [
        ("d0", 0, None, [1, 2], 2),
        ("d0", 1, None, [3, 4], 2),
        ("d0", 2, None, [5], 1),
        ("d1", 0, "l1", [], 0),
        ("d2", 0, "l2", [6, 7], 2),
    ]
    assert table.schema.field("chunk_index").type == pa.uint32()


def piece(number: int, offset: int, length: int) -> dict[str, Any]:
    lang = f"l{number}" if number % 3 else None
    return {"id": f"d{number}", "offset": offset, "length": length, "lang": lang}


def test_packed_rows_name_their_documents() -> None:
    table, _ = made(layout(pack=4), [[1, 2, 3], [], [4, 5, 6, 7, 8, 9], []])
    assert [tuple(row.values()) for row in table.to_pylist()] == [
        ([piece(0, 0, 3), piece(1, 0, 0), piece(2, 0, 1)], [1, 2, 3, 4], 4),
        ([piece(2, 1, 4)], [5, 6, 7, 8], 4),
        ([piece(2, 5, 1), piece(3, 0, 0)], [9], 1),
    ]


def test_an_empty_document_stands_where_the_one_before_it_ends() -> None:
    table, _ = made(layout(pack=2), [[], [1, 2], [], [3, 4], []], portion=1)
    assert [[p["id"] for p in row] for row in table["documents"].to_pylist()] == [
        ["d0", "d1", "d2"],
        ["d3", "d4"],
    ]
    only_empty, _ = made(layout(pack=2), [[], []])
    assert only_empty["input_ids"].to_pylist() == [[]]
    assert made(layout(pack=2), [])[0].num_rows == 0


def test_what_is_dropped_is_counted() -> None:
    drop = layout(pack=4, pack_remainder="drop")
    table, maker = made(drop, [[1, 2, 3, 4, 5], [6], []])
    assert table["input_ids"].to_pylist() == [[1, 2, 3, 4]]
    dropped = maker.dropped
    assert (dropped.tokens, dropped.documents, dropped.cut) == (2, 2, 1)
    _, maker = made(drop, [[1, 2, 3, 4], []])  # nothing remains
    assert (maker.dropped.tokens, maker.dropped.documents) == (0, 0)


def carried(how: RowLayout, parts: list[Lists]) -> tuple[list[pa.Table], pa.Table]:
    """The rows of parts, and of the part that has what is left of them."""
    tables, remainders, first = [], [], 0
    for lists in parts:
        maker = row_maker(how)
        rows = [maker.add(documents(lists, first)), maker.finish()]
        tables.append(pa.Table.from_batches(rows, how.schema))
        remainders += [] if maker.remainder is None else [maker.remainder]
        first += len(lists)
    return tables, pa.Table.from_batches([*carried_rows(how, remainders)], how.schema)


def test_what_is_left_is_carried_to_the_last_part() -> None:
    how = layout(pack=4, pack_remainder="carry")
    parts = [[[1, 2, 3, 4, 5, 6], [7], []], [[8, 9, 10, 11]], [[12, 13, 14]]]
    (one, two, three), last = carried(how, parts)
    assert one["input_ids"].to_pylist() == [[1, 2, 3, 4]]
    assert two["input_ids"].to_pylist() == [[8, 9, 10, 11]]
    assert len(three) == 0
    assert [tuple(row.values()) for row in last.to_pylist()] == [
        ([piece(0, 4, 2), piece(1, 0, 1), piece(2, 0, 0), piece(4, 0, 1)], [5, 6, 7, 12], 4),
        ([piece(4, 1, 2)], [13, 14], 2),
    ]
    assert carried(how, [[], [[1, 2, 3, 4]]])[1].num_rows == 0


@given(st.lists(lists_of_ids, max_size=5), st.integers(1, 9))
def test_carried_rows_are_those_of_all_remainders(parts: list[Lists], size: int) -> None:
    tables, last = carried(layout(pack=size, pack_remainder="carry"), parts)
    kept = [made(layout(pack=size), lists)[0]["input_ids"].to_pylist() for lists in parts]
    full = [[row for row in rows if len(row) == size] for rows in kept]
    assert [table["input_ids"].to_pylist() for table in tables] == full
    left = [id_ for rows in kept for row in rows if len(row) < size for id_ in row]
    rows = [left[i : i + size] for i in range(0, len(left), size)]
    assert [row for row in last["input_ids"].to_pylist() if row] == rows
    for row in last.to_pylist():
        assert sum(one["length"] for one in row["documents"]) == row["num_tokens"]


def numbered_piece(number: int, offset: int, length: int) -> dict[str, Any]:
    return {**piece(number, offset, length), "number": number}


def test_documents_go_where_they_fit_best() -> None:
    how = layout(pack=5, packing="best-fit")
    lists = [[1, 2, 3], [], list(range(10, 22)), [4, 5], [6], [7, 8, 9], [23, 24]]
    table, maker = made(how, lists)
    rows = [
        [(p["number"], p["offset"], p["length"]) for p in row["documents"]]
        for row in table.to_pylist()
    ]
    # 12 ids are two full rows and 2 more, which are the first of this length to join a 3.
    assert rows == [
        [(0, 0, 3), (1, 0, 0), (2, 10, 2)],
        [(2, 0, 5)],
        [(2, 5, 5)],
        [(3, 0, 2), (5, 0, 3)],
        [(4, 0, 1), (6, 0, 2)],
    ]
    assert table["input_ids"].to_pylist()[0] == [1, 2, 3, 20, 21]
    assert table["documents"][0].as_py()[0] == numbered_piece(0, 0, 3)
    assert (maker.cut, maker.dropped) == (1, Dropped())
    only_empty, _ = made(how, [[], []])
    assert only_empty["input_ids"].to_pylist() == [[]]
    assert made(how, [])[0].num_rows == 0


@given(lists_of_ids, st.integers(1, 7), portions, st.sampled_from([1, 9, 1 << 24]))
def test_best_fit_cuts_long_documents_alone(
    lists: Lists, size: int, portion: int, window: int
) -> None:
    names = ("cu_seqlens", "document_ids", "position_ids")
    how = layout(pack=size, packing="best-fit", pack_remainder="pad", pad=9, add_column=names)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(rows_module, "WINDOW_IDS", window)
        table, maker = made(how, lists, portion)
        assert made(how, lists)[0].equals(table)  # however they come
    assert maker.cut == sum(len(ids) > size for ids in lists)
    pieces = [
        (one["number"], one["offset"], one["length"])
        for row in table["documents"].to_pylist()
        for one in row
    ]
    assert sorted(pieces) == [
        (number, begin, min(size, len(ids) - begin))
        for number, ids in enumerate(lists)
        for begin in range(0, max(len(ids), 1), size)
    ]
    for row in table.to_pylist():
        assert len(row["input_ids"]) == size
        assert {name: row[name] for name in names} == added_by_the_book(row)
    if window > 1000:  # by the book, where empty ones are left out
        sizes = [length for _, _, length in sorted(pieces) if length]
        assert len(set(best_fit(sizes, size))) == (len(table) if sizes else 0) or not sizes


def test_the_last_row_is_filled_up() -> None:
    pad = layout(pack=4, pack_remainder="pad", pad=9)
    table, _ = made(pad, [[1, 2, 3, 4, 5], [9], []])
    assert table["input_ids"].to_pylist() == [[1, 2, 3, 4], [5, 9, 9, 9]]
    assert table["num_tokens"].to_pylist() == [4, 2]
    only_empty, _ = made(pad, [[], []])
    assert only_empty["input_ids"].to_pylist() == [[9] * 4]
    assert made(pad, [[1, 2, 3, 4]])[0]["input_ids"].to_pylist() == [[1, 2, 3, 4]]


def test_what_was_dropped_before_the_end_counts_too() -> None:
    maker = row_maker(layout(pack=4, pack_remainder="drop"))
    maker.dropped += Dropped(tokens=3, documents=1)
    assert len(maker.add(documents([[1, 2, 3, 4, 5], [6]]))) == 1
    assert len(maker.finish()) == 0
    assert maker.dropped == Dropped(tokens=5, documents=2, cut=1)


def packed_by_the_book(lists: Lists, size: int) -> list[tuple[list[int], list[tuple[str, int]]]]:
    """Rows, and in them each id's document and place, one id after the other."""
    stream = [(id_, f"d{i}", at) for i, ids in enumerate(lists) for at, id_ in enumerate(ids)]
    cut = [stream[i : i + size] for i in range(0, len(stream), size)]
    return [([id_ for id_, _, _ in row], [(name, at) for _, name, at in row]) for row in cut]


@given(lists_of_ids, st.integers(1, 7), portions)
def test_packing_is_what_the_book_says(lists: Lists, size: int, portion: int) -> None:
    table, _ = made(layout(pack=size), lists, portion)
    assert table.equals(made(layout(pack=size), lists)[0])
    found = [
        (
            row["input_ids"],
            [(p["id"], p["offset"] + i) for p in row["documents"] for i in range(p["length"])],
        )
        for row in table.to_pylist()
    ]
    if not any(lists):
        assert len(found) == (len(lists) > 0)
    else:
        assert found == packed_by_the_book(lists, size)
    begun = [p["id"] for row in table["documents"].to_pylist() for p in row if p["offset"] == 0]
    assert begun == [f"d{i}" for i in range(len(lists))]


def added_by_the_book(row: dict[str, Any]) -> dict[str, list[int]]:
    """The columns on demand of a row, one id after the other."""
    size = len(row["input_ids"])
    lengths = [(number, piece["length"]) for number, piece in enumerate(row["documents"])]
    lengths.append((-1, size - row["num_tokens"]))
    borders = {sum(length for _, length in lengths[:end]) for end in range(len(lengths) + 1)}
    return {
        "cu_seqlens": sorted(borders),
        "document_ids": [number for number, length in lengths for _ in range(length)],
        "position_ids": [place for _, length in lengths for place in range(length)],
    }


@given(lists_of_ids, st.integers(1, 7), portions, st.sampled_from(["keep", "drop", "pad"]))
def test_added_columns_are_what_the_book_says(
    lists: Lists, size: int, portion: int, remainder: str
) -> None:
    names = ("cu_seqlens", "document_ids", "position_ids")
    pad = 9 if remainder == "pad" else None
    how = layout(pack=size, pack_remainder=remainder, pad=pad, add_column=names)
    table, _ = made(how, lists, portion)
    for row in table.to_pylist():
        assert {name: row[name] for name in names} == added_by_the_book(row)
    pieces = [table.slice(first, 2) for first in range(0, len(table), 2)]
    for some in pieces:
        columns = {name: some[name].combine_chunks() for name in ("documents", "input_ids")}
        sizes = np.array([len(ids) for ids in some["input_ids"].to_pylist()])
        for name, column in columns_of(columns["documents"], sizes, names).items():
            assert column.equals(some[name].combine_chunks())


LAYOUTS = [
    layout(),
    layout(prepend=1, append=2),
    layout(max_tokens=3),
    layout(max_tokens=1, append=2),
    layout(pack=4),
    layout(pack=3, prepend=1),
    layout(pack=2, append=2),
    layout(pack=5, pack_remainder="pad", pad=9, append=2),
    layout(pack=4, packing="best-fit"),
    layout(pack=3, packing="best-fit", prepend=1, append=2),
    layout(pack=5, packing="best-fit", pack_remainder="pad", pad=9),
]


@given(st.sampled_from(LAYOUTS), lists_of_ids, portions, portions, st.sampled_from([1, 9, 1 << 24]))
def test_joining_undoes_it(
    how: RowLayout, lists: Lists, portion: int, rows: int, window: int
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(rows_module, "WINDOW_IDS", window)
        table, _ = made(how, lists, portion)
    pieces = [table.slice(first, rows) for first in range(0, len(table), rows)]
    found = [
        pair
        for ids, tokens in joined(pieces, how, cut=False)
        for pair in zip(ids.to_pylist(), tokens.to_pylist(), strict=True)
    ]
    assert found == [(f"d{i}", ids) for i, ids in enumerate(lists)]


@given(lists_of_ids, st.integers(1, 7), portions)
def test_joining_what_was_dropped_gives_what_is_left(lists: Lists, size: int, rows: int) -> None:
    how = layout(pack=size, pack_remainder="drop", append=2)
    table, maker = made(how, lists)
    dropped = maker.dropped
    pieces = [table.slice(first, rows) for first in range(0, len(table), rows)]
    found = [ids for _, tokens in joined(pieces, how, cut=bool(dropped.cut)) for ids in tokens]
    assert len(found) == len(lists) - dropped.documents
    whole = len(found) - dropped.cut
    assert [ids.as_py() for ids in found[:whole]] == lists[:whole]
    total = sum(map(len, lists)) + len(lists)
    assert sum(table["num_tokens"].to_pylist()) + dropped.tokens == total
    if dropped.cut:
        left = found[-1].as_py()
        assert left == lists[whole][: len(left)]


def changed(table: pa.Table, row: int, **values: Any) -> pa.Table:
    records = table.to_pylist()
    records[row].update(values)
    return pa.Table.from_pylist(records, table.schema)


TWO = [[1, 2, 3, 4, 5], [6]]
PADDED = layout(pack=4, pack_remainder="pad", pad=9)
WRONG: dict[str, tuple[RowLayout, Lists, Any, str]] = {
    "number of tokens": (layout(), TWO, {"num_tokens": 4}, "row 0: num_tokens is not the length"),
    "chunk of another": (layout(max_tokens=2), TWO, {"id": "x"}, "goes on with document 'd0' "),
    "chunk numbers": (layout(max_tokens=2), TWO, {"chunk_index": 1}, "does not follow"),
    "long chunk": (
        layout(max_tokens=2),
        TWO,
        {"input_ids": [1, 2, 3], "num_tokens": 3},
        "row 0 has more than the 2 ids",
    ),
    "short chunk": (
        layout(max_tokens=2),
        TWO,
        {"input_ids": [1], "num_tokens": 1},
        "row 1 goes on with a document that stopped elsewhere",
    ),
    "short row": (
        layout(pack=2),
        TWO,
        {"input_ids": [1], "num_tokens": 1, "documents": [piece(0, 0, 1)]},
        "row 0 has fewer than the 2 ids",
    ),
    "lengths": (layout(pack=2), TWO, {"documents": [piece(0, 0, 1)]}, "do not add up"),
    "offset": (layout(pack=2), TWO, {"documents": [piece(0, 1, 2)]}, "row 0 goes on with"),
    "huge length": (layout(pack=2), TWO, {"documents": [piece(0, 0, 2**63)]}, "do not add up"),
    "twice in a row": (
        layout(pack=2),
        TWO,
        {"documents": [piece(0, 0, 1), piece(0, 1, 1)]},
        "row 0 goes on with",
    ),
    "number of another": (
        layout(pack=2, packing="best-fit"),
        TWO,
        {"documents": [numbered_piece(1, 0, 2)]},
        "are not in order|does not begin or go on",
    ),
    "cut elsewhere": (
        layout(pack=2, packing="best-fit"),
        TWO,
        {"documents": [numbered_piece(0, 1, 2)]},
        "was not cut where a row is full",
    ),
    "name of another": (
        layout(pack=2, packing="best-fit"),
        TWO,
        {"documents": [{**numbered_piece(0, 0, 2), "id": "x"}]},
        "goes on with document 'd0', which was 'x' before",
    ),
    "no id": (layout(pack=2), TWO, {"documents": [{**piece(0, 0, 2), "id": None}]}, "nulls"),
    "not padded": (PADDED, TWO, {"input_ids": [1, 2, 3]}, "row 0 is not filled to 4 ids"),
    "other padding": (PADDED, [[1]], {"input_ids": [1, 9, 8, 9]}, "is not filled with the id 9"),
    "padding before the end": (
        PADDED,
        TWO,
        {"input_ids": [1, 2, 9, 9], "num_tokens": 2, "documents": [piece(0, 0, 2)]},
        "row 0 has fewer than the 4 ids",
    ),
    "more than there is": (PADDED, TWO, {"num_tokens": 5}, "is not the length"),
    "no end": (layout(append=2), TWO, {"input_ids": [1, 2, 3, 4, 5, 9]}, "does not end with"),
}


@pytest.mark.parametrize("how", WRONG)
def test_rows_that_cannot_be_are_refused(how: str) -> None:
    wanted, lists, values, message = WRONG[how]
    table = changed(made(wanted, lists)[0], 0, **values)
    with pytest.raises(ValueError, match=message):
        list(joined([table], wanted, cut=False))


def test_a_jump_in_the_numbers_of_chunks_is_refused() -> None:
    table = changed(made(layout(max_tokens=2), TWO)[0], 2, chunk_index=3)
    with pytest.raises(ValueError, match="row 2: its chunk_index does not follow"):
        joiner(layout(max_tokens=2)).add(table)


def test_a_list_that_is_too_short_has_no_ends() -> None:
    lists = pa.array([[1]], pa.list_(pa.uint32()))
    with pytest.raises(ValueError, match="shorter than the tokens"):
        without_ends(lists, prepend=1, append=2)


def test_a_row_names_no_endless_number_of_documents(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rows_module, "MAX_ROW_DOCUMENTS", 5)
    made(layout(pack=2), [[1], *[[]] * 3, [2]])
    with pytest.raises(RecordError, match=r"document 'd5': more than 5 documents.*`append_token`"):
        made(layout(pack=2), [[1], *[[]] * 5, [2]], portion=2)
