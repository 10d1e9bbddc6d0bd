"""XXH64 of rows: the core against the plain Python, and that against known values."""

from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bpe._native import TextColumn, row_hashes
from bpe.reference.xxh64 import xxh64
from pipelines.corpus.keys import row_hashes as arrow_hashes


@given(st.lists(st.binary(max_size=100)), st.integers(0, 5))
def test_the_core_hashes_rows_as_plain_python_does(rows: list[bytes], first: int) -> None:
    for kind in (pa.binary(), pa.large_binary()):
        column = pa.array(rows, kind)[first:]
        assert arrow_hashes(column).to_pylist() == [xxh64(row) for row in rows[first:]]


@pytest.mark.parametrize("size", [*range(70), 1000, 1 << 20])
def test_every_length(size: int) -> None:
    data = bytes(range(251)) * (size // 251 + 1)
    row = data[:size]
    assert arrow_hashes(pa.array([row])).to_pylist() == [xxh64(row)]


def test_known_values() -> None:
    # Of the published test vectors (xxHash, tests/sanity_test_vectors.h): bytes of a generator.
    generator, data = 2654435761, bytearray()
    for _ in range(222):
        data.append(generator >> 56)
        generator = generator * 11400714785074694797 % 2**64
    known = {
        0: 0xEF46DB3751D8E999,
        1: 0xE934A84ADB052768,
        14: 0x8282DCC4994E35C8,
        222: 0xB641AE8CB691C174,
    }
    for size, value in known.items():
        assert xxh64(bytes(data[:size])) == value
    assert xxh64(b"xxhash") == 0x32DD38952C4BC720


@given(st.binary(max_size=200))
def test_other_programs_find_the_same(data: bytes) -> None:
    xxhash = pytest.importorskip("xxhash")
    assert xxh64(data) == xxhash.xxh64_intdigest(data)


def test_no_row_and_rows_outside_their_data() -> None:
    assert arrow_hashes(pa.array([], pa.string())).to_pylist() == []
    offsets = b"\0" * 7 + b"\x01" + b"\xff" * 8
    with pytest.raises(ValueError, match="lies outside the data"):
        row_hashes(TextColumn(b"abc", offsets, 8, 0, 1))
