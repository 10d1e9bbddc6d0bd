"""XXH64 of rows: the core against the package ``xxhash``."""

from __future__ import annotations

import pyarrow as pa
import pytest
from xxhash import xxh64_intdigest as xxh64

from bpe._native import TextColumn, row_hashes
from pipelines.corpus.keys import row_hashes as arrow_hashes


@pytest.mark.parametrize("kind", [pa.binary(), pa.large_binary()])
def test_the_core_hashes_rows_of_every_length_as_xxhash_does(kind: pa.DataType) -> None:
    data = bytes(range(251)) * ((1 << 20) // 251 + 1)
    rows = [data[:size] for size in (*range(70), 1000, 1 << 20)]
    for column in (pa.array(rows, kind), pa.array([b"before", *rows], kind)[1:]):
        assert arrow_hashes(column).to_pylist() == [xxh64(row) for row in rows]


def test_no_row_and_rows_outside_their_data() -> None:
    assert arrow_hashes(pa.array([], pa.string())).to_pylist() == []
    offsets = b"\0" * 7 + b"\x01" + b"\xff" * 8
    with pytest.raises(ValueError, match="lies outside the data"):
        row_hashes(TextColumn(b"abc", offsets, 8, 0, 1))
