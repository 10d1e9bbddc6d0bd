from __future__ import annotations

import pyarrow as pa
import pytest

from bpe._arrow import text_column
from bpe._native import TextColumn, malformed_rows


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
