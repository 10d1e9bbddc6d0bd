"""Sorted counts: by threads, in a stated memory, as Arrow, and what is refused."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bpe._native import add_counts
from bpe.counting import PretokenCounter
from bpe.counts import PretokenCounts
from bpe.counts.files import counts_from_ipc, counts_from_table, counts_table, counts_to_ipc
from bpe.errors import CountsError
from bpe.pretokenizer import Pretokenizer

# Keys that share long prefixes, and end around the sizes at which the layout changes.
keys = st.binary(min_size=1, max_size=4) | st.builds(
    lambda size, end: b"\0" * size + end, st.integers(0, 20), st.binary(min_size=1, max_size=2)
)


@pytest.mark.parametrize("pretokenizer", [Pretokenizer("cl100k"), Pretokenizer(pattern=r"\w+")])
def test_threads_may_share_a_counter(pretokenizer: Pretokenizer) -> None:
    texts = pa.array([f"thread {i % 97} counts {i % 13}" for i in range(2_000)])
    counter = PretokenCounter(pretokenizer)
    alone = PretokenCounter(pretokenizer)
    with ThreadPoolExecutor(4) as pool:
        together = [*pool.map(counter.add, [texts] * 4)]
    assert together == [alone.add(texts) for _ in range(4)]
    assert counts_table(counter.drain(1)[0]) == counts_table(alone.drain(1)[0])


@pytest.mark.parametrize("track_order", [False, True])
def test_memory_is_told_and_given_back(track_order: bool) -> None:
    counter = PretokenCounter(Pretokenizer("none"), track_order=track_order)
    empty = counter.nbytes
    rows = [b"%032d" % i for i in range(50_000)] + [b"x" * 5_000_000]
    texts = pa.array(rows)
    counter.add(texts, pa.array(range(len(texts)), pa.int64()))
    assert len(counter) == 50_001
    assert counter.nbytes > 50_000 * (32 + 32 + 16 * track_order) + 5_000_000
    assert counts_table(add_counts(counter.drain(4)))["pretoken"].to_pylist() == rows
    assert counter.nbytes == empty


@given(st.dictionaries(keys, st.integers(1, 2**58), max_size=12), st.booleans())
def test_counts_travel_as_arrow(items: dict[bytes, int], track_order: bool) -> None:
    counts = PretokenCounts.from_items(items, track_order=track_order).sorted_counts
    table = counts_table(counts)
    assert counts_table(counts_from_ipc(counts_to_ipc(counts))) == table
    padded = pa.concat_tables([table, table])[len(table) :]
    binary = table.set_column(0, "pretoken", table["pretoken"].cast(pa.binary()))
    for other in (padded, binary):
        assert counts_table(counts_from_table(other, where="test")) == table


@pytest.mark.parametrize("message", [b"", b"not a stream", counts_to_ipc(add_counts([]))[:-20]])
def test_damaged_messages(message: bytes) -> None:
    with pytest.raises(CountsError, match=r"partial counts cannot be read|has the columns"):
        counts_from_ipc(message)


GOOD = PretokenCounts.from_items({"a": 1, "b": 1}, track_order=True).to_table()


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"pretoken": [b"b", b"a"]}, "row 1, pre-token b'a': it is not in byte order after b'b'"),
        ({"pretoken": [b"a", b"a"]}, "row 1, pre-token b'a': it stands there twice"),
        ({"pretoken": [b"x" * 20, b"x" * 20]}, "it stands there twice"),
        ({"pretoken": [b"x" * 16, b"x" * 15]}, "not in byte order"),
        ({"pretoken": [b"", b"a"]}, "a pre-token is never empty"),
        ({"pretoken": [None, b"a"]}, "holds nulls"),
        ({"count": [1, None]}, "holds nulls"),
        (
            {"pretoken": [b"a", b"b\xff'\\\n"], "count": [1, 0]},
            r"b'b\\xff\\'\\\\\\x0a': count 0 is not positive",
        ),
        ({"pretoken": [b"y" * 50, b"z"], "count": [0, 1]}, r"b'y{40}'\.\.\. \(50 bytes\): count 0"),
        ({"first_document": [-1, 0]}, "first seen is negative"),
        ({"first_position": [0, -1]}, "first seen is negative"),
        (
            {"count": pa.array([1, 1], pa.int32())},
            r"test has the columns \(.*\), not those of counts",
        ),
        ({"n": [1, 1]}, r"test has the columns \(.*\), not those of counts"),
    ],
)
def test_columns_that_are_no_counts(columns: dict[str, Any], message: str) -> None:
    good = dict(zip(GOOD.column_names, GOOD.columns, strict=True))
    with pytest.raises(CountsError, match=message):
        counts_from_table(pa.table(good | columns), where="test")


@pytest.mark.parametrize("way", [{"name": "gpt2"}, {"name": "words", "normalizer": ("nfc",)}])
def test_places_are_checked(way: dict[str, Any]) -> None:
    texts = pa.array(["a", "b"])
    counter = PretokenCounter(Pretokenizer(**way), track_order=True)
    for places, message in (
        (None, "one place for each of 2 rows, got 0"),
        (pa.array([0, -1], pa.int64()), "negative: -1"),
        (pa.array([0, None], pa.int64()), "int64 without nulls"),
    ):
        with pytest.raises(ValueError, match=message):
            counter.add(texts, places)
    assert len(counter) == 0
