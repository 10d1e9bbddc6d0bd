from __future__ import annotations

from array import array
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bpe import _native
from bpe._native import SortedCounts, add_counts, stable_hash
from bpe.counting import PretokenCounter
from bpe.counts.files import counts_from_ipc, counts_from_table, counts_table, counts_to_ipc
from bpe.errors import CountsError
from bpe.pretokenizer import Pretokenizer
from tests.bpe.texts import byte_texts

if TYPE_CHECKING:
    import random

LARGEST = 2**63 - 1

# Keys that share long prefixes, and end around the sizes at which the layout changes.
keys = st.binary(min_size=1, max_size=4) | st.builds(
    lambda size, end: b"\0" * size + end, st.integers(0, 20), st.binary(min_size=1, max_size=2)
)
ordered_counts = st.dictionaries(
    keys, st.tuples(st.integers(1, 2**58), st.integers(0, 99), st.integers(0, 99)), max_size=12
)


def make_run(counts: dict[bytes, tuple[int, int, int]], *, ordered: bool = True) -> SortedCounts:
    rows = sorted(counts.items())
    columns = {
        "pretoken": pa.array([key for key, _ in rows], pa.large_binary()),
        "count": pa.array([count for _, (count, _, _) in rows], pa.int64()),
    }
    if ordered:
        columns["first_document"] = pa.array([place for _, (_, place, _) in rows], pa.int64())
        columns["first_position"] = pa.array([place for _, (_, _, place) in rows], pa.int64())
    return counts_from_table(pa.table(columns), where="test")


def same(a: SortedCounts, b: SortedCounts) -> bool:
    return bool(counts_table(a).equals(counts_table(b)))


@given(st.lists(ordered_counts, max_size=8), st.booleans(), st.randoms(use_true_random=False))
def test_runs_merge_in_any_order_and_grouping(
    parts: list[dict[bytes, tuple[int, int, int]]], ordered: bool, shuffle: random.Random
) -> None:
    expected: dict[bytes, tuple[int, int, int]] = {}
    for part in parts:
        for key, (count, document, position) in part.items():
            before = expected.get(key)
            first = min((document, position), before[1:] if before else (document, position))
            expected[key] = (count + (before[0] if before else 0), *first)
    runs = [make_run(part, ordered=ordered) for part in parts]
    merged = add_counts(runs)
    if parts:
        assert same(merged, make_run(expected, ordered=ordered))
    shuffle.shuffle(runs)
    while len(runs) > 1:
        taken = [runs.pop() for _ in range(shuffle.randint(2, len(runs)))]
        runs.insert(shuffle.randint(0, len(runs)), add_counts(taken))
    assert not runs or same(runs[0], merged)


def by_definition(data: bytes) -> int:
    """FNV-1a, then MurmurHash3's finaliser: counts on disk are dealt to parts by it."""
    value = 0xCBF29CE484222325
    for byte in data:
        value = (value ^ byte) * 0x100000001B3 % 2**64
    value = (value ^ value >> 33) * 0xFF51AFD7ED558CCD % 2**64
    value = (value ^ value >> 33) * 0xC4CEB9FE1A85EC53 % 2**64
    return value ^ value >> 33


@given(st.binary(max_size=40))
def test_the_hash_is_what_its_definition_says(data: bytes) -> None:
    assert stable_hash(data) == by_definition(data)


@given(st.lists(byte_texts, max_size=8), st.integers(1, 5), st.randoms(use_true_random=False))
def test_counts_do_not_depend_on_blocks_or_their_order(
    texts: list[bytes], shards: int, shuffle: random.Random
) -> None:
    column = pa.array(texts, pa.binary())
    places = pa.array(range(7, 7 + 3 * len(texts), 3), pa.int64())
    whole = PretokenCounter(Pretokenizer("gpt2"), track_order=True)
    total = whole.add(column, places)
    ends = [0, *sorted(shuffle.randint(0, len(texts)) for _ in range(3)), len(texts)]
    blocks = [slice(begin, end) for begin, end in pairwise(ends)]
    shuffle.shuffle(blocks)
    counter = PretokenCounter(Pretokenizer("gpt2"), track_order=True)
    counted, drained = 0, []
    for block in blocks:
        counted += counter.add(column[block], places[block])
        if shuffle.random() < 0.5:
            drained.append(counter.drain(shards))
    drained.append(counter.drain(shards))
    assert counted == total
    for run, *runs in zip(whole.drain(shards), *drained, strict=True):
        assert same(add_counts(runs), run)


@pytest.mark.parametrize("pretokenizer", [Pretokenizer("cl100k"), Pretokenizer(pattern=r"\w+")])
def test_threads_may_share_a_counter(pretokenizer: Pretokenizer) -> None:
    texts = pa.array([f"thread {i % 97} counts {i % 13}" for i in range(2_000)])
    counter = PretokenCounter(pretokenizer)
    alone = PretokenCounter(pretokenizer)
    with ThreadPoolExecutor(4) as pool:
        together = [*pool.map(counter.add, [texts] * 4)]
    assert together == [alone.add(texts) for _ in range(4)]
    assert same(counter.drain(1)[0], alone.drain(1)[0])


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


@given(ordered_counts, st.booleans())
def test_runs_travel_as_arrow(counts: dict[bytes, tuple[int, int, int]], ordered: bool) -> None:
    run = make_run(counts, ordered=ordered)
    assert same(counts_from_ipc(counts_to_ipc(run)), run)
    table = counts_table(run)
    padded = pa.concat_tables([counts_table(make_run({b"pad": (1, 0, 0)}, ordered=ordered)), table])
    assert same(counts_from_table(padded[1:], where="slice"), run)
    assert same(counts_from_table(padded.combine_chunks()[1:], where="slice"), run)
    binary = table.set_column(0, "pretoken", table["pretoken"].cast(pa.binary()))
    assert same(counts_from_table(binary, where="binary"), run)


@pytest.mark.parametrize("message", [b"", b"not a stream", counts_to_ipc(make_run({}))[:-20]])
def test_damaged_messages(message: bytes) -> None:
    with pytest.raises(CountsError, match=r"partial counts cannot be read|has the columns"):
        counts_from_ipc(message)


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([(b"b", 1), (b"a", 1)], r"row 1, pre-token b'a': it is not in byte order after b'b'"),
        ([(b"a", 1), (b"a", 1)], r"row 1, pre-token b'a': it stands there twice"),
        ([(b"x" * 20, 1), (b"x" * 20, 1)], r"it stands there twice"),
        ([(b"x" * 16, 1), (b"x" * 15, 1)], r"not in byte order"),
        ([(b"\xff'\\\n", 0)], r"b'\\xff\\'\\\\\\x0a': count 0 is not positive"),
        ([(b"", 1)], r"a pre-token is never empty"),
        ([(b"y" * 50, 0)], r"b'y{40}'\.\.\. \(50 bytes\): count 0"),
    ],
)
def test_rows_that_are_no_run(rows: list[tuple[bytes, int]], message: str) -> None:
    table = pa.table(
        {
            "pretoken": pa.array([key for key, _ in rows], pa.binary()),
            "count": pa.array([count for _, count in rows], pa.int64()),
        }
    )
    with pytest.raises(CountsError, match=message):
        counts_from_table(table, where="test")


def test_columns_that_are_no_run() -> None:
    good = counts_table(make_run({b"a": (1, 2, 3)}))
    for table in (
        good.select(["count", "pretoken"]),
        good.drop_columns(["first_position"]),
        good.rename_columns(["pretoken", "n", "first_document", "first_position"]),
        pa.table({"pretoken": [b"a"], "count": pa.array([1], pa.int32())}),
    ):
        with pytest.raises(CountsError, match=r"test has the columns \(.*\), not those of counts"):
            counts_from_table(table, where="test")
    for keys, counts in (([None, b"a"], [1, 1]), ([b"a", b"b"], [1, None])):
        nulls = pa.table({"pretoken": keys, "count": pa.array(counts, pa.int64())})
        with pytest.raises(CountsError, match="holds nulls"):
            counts_from_table(nulls, where="test")
    for place in ((-1, 0), (0, -1)):
        with pytest.raises(CountsError, match="first seen is negative"):
            make_run({b"a": (1, *place)})


def numbers(*values: int) -> array[int]:
    return array("q", values)


@pytest.mark.parametrize(
    "columns",
    [
        (b"a", numbers(0), 8, numbers(1), None, None),
        (b"ab", numbers(1, 0), 8, numbers(1), None, None),
        (b"a", numbers(0, 2**62), 8, numbers(1), None, None),
        (b"a", numbers(0, 1), 3, numbers(1), None, None),
        (b"a", numbers(0, 1), 8, b"1234567", None, None),
        (b"a", numbers(0, 1), 8, numbers(1), numbers(0), None),
        (b"a", numbers(0, 1), 8, numbers(1), numbers(0), numbers(0, 0)),
    ],
)
def test_hostile_buffers(columns: tuple[object, ...]) -> None:
    with pytest.raises(ValueError, match=r"offset|row 0|documents|buffer size"):
        SortedCounts(*columns)  # type: ignore[arg-type]


def test_offsets_of_32_bits_and_other_columns() -> None:
    run = SortedCounts(b"xab", array("i", [1, 2, 3]), 4, numbers(5, 6))
    assert bytes(run.data) == b"ab"
    assert memoryview(run.offsets).cast("q").tolist() == [0, 1, 2]
    assert memoryview(run.counts).cast("q").tolist() == [5, 6]
    assert run.documents is None
    assert run.positions is None
    assert run.total() == 11


def test_merging_what_does_not_fit() -> None:
    plain, ordered = make_run({b"a": (1, 0, 0)}, ordered=False), make_run({b"a": (1, 0, 0)})
    with pytest.raises(ValueError, match="others do not"):
        add_counts([plain, ordered])
    with pytest.raises(ValueError, match="None"):
        add_counts([None])  # type: ignore[list-item]
    assert same(add_counts([make_run({}, ordered=False), ordered]), ordered)
    assert same(add_counts([make_run({}), plain]), plain)
    assert len(add_counts([])) == 0


def test_sums_are_checked() -> None:
    most, one = make_run({b"a": (LARGEST, 0, 0)}), make_run({b"a": (1, 0, 0)})
    assert most.total() == LARGEST
    with pytest.raises(OverflowError, match=r"pre-token b'a' passes 2\^63 - 1"):
        add_counts([most, one])
    both = add_counts([most, make_run({b"b": (1, 0, 0)})])
    with pytest.raises(OverflowError, match=r"sum of all counts passes 2\^63 - 1"):
        both.total()


@pytest.mark.parametrize(
    "way", [{"name": "gpt2"}, {"name": "words", "normalizer": ("nfc",)}, {"pattern": "a"}]
)
def test_places_are_checked(way: dict[str, Any]) -> None:
    texts = pa.array(["a", "b"])
    counter = PretokenCounter(Pretokenizer(**way), track_order=True)
    for places, message in (
        (None, "one place for each of 2 rows, got 0"),
        (pa.array([0], pa.int64()), "one place for each of 2 rows, got 1"),
        (pa.array([0, -1], pa.int64()), "negative: -1"),
        (pa.array([0, None], pa.int64()), "int64 without nulls"),
        (pa.array([0, 1], pa.int32()), "int64 without nulls"),
    ):
        with pytest.raises(ValueError, match=message):
            counter.add(texts, places)
    assert len(counter) == 0


def test_the_core_checks_its_arguments() -> None:
    with pytest.raises(ValueError, match="unknown pre-tokenizer 'gpt3'"):
        _native.Counter(["gpt3"], [], track_order=False)
    with pytest.raises(ValueError, match="special token 0 is empty"):
        _native.Counter(["gpt2"], [b""], track_order=False)
    counter = _native.Counter([], [], track_order=False)
    with pytest.raises(ValueError, match="no pre-tokenizer: give pieces"):
        counter.add(_native.TextColumn(b"", numbers(0), 8, 0, 0))
    run = make_run({b"a": (1, 0, 0)})
    for shards in (0, -1, 2**32):
        with pytest.raises(ValueError, match="number of shards must be at least 1"):
            run.split(shards)
        with pytest.raises(ValueError, match="number of shards must be at least 1"):
            counter.drain(shards)
    with pytest.raises(ValueError, match="no such shard"):
        run.misplaced(3, 3)
