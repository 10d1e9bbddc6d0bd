"""XXH64 of rows: the core against the package ``xxhash``."""

from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from xxhash import xxh64_intdigest as xxh64

from bpe._native import TextColumn, row_hashes
from pipelines.corpus.keys import row_hashes as arrow_hashes


@given(st.lists(st.binary(max_size=100)), st.integers(0, 5))
def test_the_core_hashes_rows_as_xxhash_does(rows: list[bytes], first: int) -> None:
    for kind in (pa.binary(), pa.large_binary()):
        column = pa.array(rows, kind)[first:]
        assert arrow_hashes(column).to_pylist() == [xxh64(row) for row in rows[first:]]


def test_every_length() -> None:
    data = bytes(range(251)) * ((1 << 20) // 251 + 1)
    rows = [data[:size] for size in (*range(70), 1000, 1 << 20)]
    assert arrow_hashes(pa.array(rows)).to_pylist() == [xxh64(row) for row in rows]


def test_no_row_and_rows_outside_their_data() -> None:
    assert arrow_hashes(pa.array([], pa.string())).to_pylist() == []
    offsets = b"\0" * 7 + b"\x01" + b"\xff" * 8
    with pytest.raises(ValueError, match="lies outside the data"):
        row_hashes(TextColumn(b"abc", offsets, 8, 0, 1))
