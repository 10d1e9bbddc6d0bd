"""Compressed files that are cut short, damaged, padded, or not compressed at all."""

from __future__ import annotations

import functools
import random
import struct
from typing import TYPE_CHECKING

import pytest
import zstandard

from pipelines.corpus.documents import ReadOptions
from tests.pipelines.corpus_files import COMPRESSIONS, Found, pack, read, whole
from tests.shared_data import LONG

if TYPE_CHECKING:
    from pathlib import Path

    from pipelines.corpus.files import Compression

PACKED = [compression for compression in COMPRESSIONS if compression != "none"]
CHANCE = random.Random(0)
LINES = [f"{i} " + CHANCE.randbytes(CHANCE.randint(0, 40)).hex() for i in range(6_000)]
DATA = "".join(line + "\n" for line in LINES).encode()
LABEL = {"gz": "gzip", "zst": "Zstandard", "bz2": "bzip2", "xz": "xz"}


@functools.cache
def packed_data(compression: Compression) -> bytes:
    return pack(DATA, compression)


def read_packed(tmp_path: Path, data: bytes, compression: Compression) -> Found:
    path = tmp_path / f"f.{compression}"
    path.write_bytes(data)
    return read(whole(path, "lines", compression), options=ReadOptions(block_bytes=30_000))


@pytest.mark.parametrize("compression", PACKED)
def test_a_truncated_file_gives_the_lines_before_the_cut(
    tmp_path: Path, compression: Compression
) -> None:
    packed = packed_data(compression)
    lengths = []
    for size in (10, len(packed) // 3, len(packed) * 9 // 10, len(packed) - 1):
        found = read_packed(tmp_path, packed[:size], compression)
        assert found.texts == LINES[: len(found.texts)]
        (bad,) = found.bad
        assert "truncated" in bad.reason
        assert LABEL[compression] in bad.reason
        assert f"{size} bytes" in bad.reason
        assert bad.place == sum(len(line) + 1 for line in LINES[: len(found.texts)])
        assert DATA[bad.place :].startswith(bad.raw)
        lengths.append(len(found.texts))
    assert lengths == sorted(lengths)
    assert lengths[-2] > len(LINES) // 3  # bzip2 and zstd give whole blocks
    if compression in ("gz", "zst"):  # only the checksum is missing
        assert lengths[-1] == len(LINES)


@pytest.mark.parametrize("compression", PACKED)
def test_a_cut_between_members_is_no_damage_and_inside_is(
    tmp_path: Path, compression: Compression
) -> None:
    first, second = pack(b"a\nb\n", compression), pack(b"c\nd\n", compression)
    assert read_packed(tmp_path, first, compression).bad == []
    for before, texts in ((first, ["a", "b"]), (b"", [])):
        for size in range(1, len(second)):
            found = read_packed(tmp_path, before + second[:size], compression)
            assert found.texts[: len(texts)] == texts
            assert len(found.bad) == 1
    assert read_packed(tmp_path, first + second, compression).texts == ["a", "b", "c", "d"]


GARBAGE = [b"garbage", b"\xff" * 100, b"a", b"text\n" * 1000]


@pytest.mark.parametrize("compression", PACKED)
@pytest.mark.parametrize(
    ("before", "garbage"),
    [*((True, one) for one in GARBAGE), *((False, one) for one in (*GARBAGE, b"", bytes(100)))],
)
def test_what_is_not_compressed_is_one_bad_record(
    tmp_path: Path, compression: Compression, before: bool, garbage: bytes
) -> None:
    packed = packed_data(compression) if before else b""
    found = read_packed(tmp_path, packed + garbage, compression)
    assert found.texts == (LINES if before else [])
    assert found.blocks > 8 * before
    (bad,) = found.bad
    assert bad.place == len(DATA) * before
    assert LABEL[compression] in bad.reason


@pytest.mark.parametrize("compression", ["gz", "xz"])
def test_zeros_behind_the_data_are_padding(tmp_path: Path, compression: Compression) -> None:
    line, more = pack(b"line\n", compression), pack(b"more\n", compression)
    for zeros in (4, 512, 200_000):
        found = read_packed(tmp_path, line + bytes(zeros), compression)
        assert (found.texts, found.bad) == (["line"], [])
        packed = line + bytes(zeros) + more
        assert read_packed(tmp_path, packed, compression).texts == ["line", "more"]


@pytest.mark.parametrize("compression", PACKED)
def test_flipped_bits_are_never_silent(tmp_path: Path, compression: Compression) -> None:
    packed = bytearray(packed_data(compression))
    chance = random.Random(1)
    for _ in range(15 if LONG else 4):
        position = chance.randrange(20, len(packed) - 20)
        packed[position] ^= 0x55
        found = read_packed(tmp_path, bytes(packed), compression)
        assert found.bad
        packed[position] ^= 0x55


@pytest.mark.parametrize("lines", [50, len(LINES)])
@pytest.mark.parametrize("before", [0, 1])
def test_a_wrong_checksum_keeps_the_lines_before_it(
    tmp_path: Path, lines: int, before: int
) -> None:
    data = "".join(line + "\n" for line in LINES[:lines]).encode()
    checksums: tuple[tuple[Compression, int], ...] = (("gz", -8), ("zst", -1))
    for compression, checksum in checksums:
        packed = bytearray(pack(data, compression))
        packed[checksum] ^= 0xFF
        found = read_packed(tmp_path, pack(b"member\n", compression) * before + packed, compression)
        assert found.texts == ["member"] * before + LINES[:lines]
        (bad,) = found.bad
        assert "is damaged before byte" in bad.reason
        assert bad.place == len(data) + 7 * before


def test_frames_that_are_skipped(tmp_path: Path) -> None:
    skippable = b"\x50\x2a\x4d\x18" + struct.pack("<I", 100_000) + b"x" * 100_000
    packed = skippable + pack(b"line\n", "zst") + skippable + pack(b"line\n", "zst") + skippable
    found = read_packed(tmp_path, packed, "zst")
    assert (found.texts, found.bad) == (["line", "line"], [])


def test_a_window_that_would_fill_the_memory_is_refused(tmp_path: Path) -> None:
    parameters = zstandard.ZstdCompressionParameters.from_level(1, window_log=30, enable_ldm=False)
    compressor = zstandard.ZstdCompressor(compression_params=parameters)
    writer = compressor.compressobj()
    packed = writer.compress(DATA) + writer.flush()
    (bad,) = read_packed(tmp_path, packed, "zst").bad
    assert "memory" in bad.reason


@pytest.mark.parametrize("compression", PACKED)
def test_a_damaged_text_is_one_bad_document(tmp_path: Path, compression: Compression) -> None:
    packed = packed_data(compression)
    for data in (packed[: len(packed) // 2], packed + b"garbage", b"plain"):
        path = tmp_path / "f"
        path.write_bytes(data)
        found = read(whole(path, "text", compression))
        assert found.documents == []
        (bad,) = found.bad
        assert bad.place == 0
        assert DATA.startswith(bad.raw)
