from __future__ import annotations

import pyarrow as pa
import pytest

from bpe._arrow import text_column
from bpe._native import TextColumn, malformed_rows

ROWS = [b"plain", b"", b"\xff", "é".encode(), b"\xc3", b""]


def bad_rows(array: pa.Array) -> list[int]:
    return memoryview(malformed_rows(text_column(array))).cast("q").tolist()


@pytest.mark.parametrize("kind", [pa.binary(), pa.large_binary()])
def test_a_slice_is_its_own_rows(kind: pa.DataType) -> None:
    array = pa.array(ROWS, type=kind)
    for start in range(len(ROWS) + 1):
        for stop in range(start, len(ROWS) + 1):
            part = array.slice(start, stop - start)
            assert len(text_column(part)) == len(part)
            assert bad_rows(part) == [i - start for i in (2, 4) if start <= i < stop]


def test_the_array_may_be_gone_before_its_column() -> None:
    column = text_column(pa.array([bytes([255]) * 100_000] * 3))
    pa.array([b"x" * 100_000] * 3)
    assert memoryview(malformed_rows(column)).cast("q").tolist() == [0, 1, 2]


def test_offsets_outside_the_data_are_refused() -> None:
    offsets = b"".join(n.to_bytes(4, "little") for n in (0, 3, 99))
    with pytest.raises(ValueError, match="row 1 lies outside the data"):
        TextColumn(b"abcd", offsets, 4, 0, 2)
    with pytest.raises(ValueError, match="fewer offsets than rows"):
        TextColumn(b"abcd", offsets, 4, 1, 2)
