"""Memory follows blocks and records, not files: measured in processes of their own."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.pipelines.corpus_files import pack
from tests.shared_data import long_but

if TYPE_CHECKING:
    from pathlib import Path

    from pipelines.corpus.files import Compression
    from pipelines.formats import FileFormat

MEASURE = """
import resource, sys
from pathlib import Path
from pipelines.corpus.documents import ReadOptions
from tests.pipelines.corpus_files import read_blocks, whole
path, format_, compression, limit = sys.argv[1:]
options = ReadOptions(max_record_bytes=int(limit))
rows = bad = size = 0
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
for block in read_blocks(whole(Path(path), format_, compression), options):
    rows += len(block)
    bad += len(block.bad)
    size += block.texts.nbytes
print(rows, bad, size, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)
"""
KIB_A_MIB = 1 << 10


def measure(
    path: Path, format_: FileFormat, compression: Compression, limit: int = 1 << 30
) -> tuple[int, int, int, int]:
    """Rows, bad records, bytes of text, and by how many KiB the process grew."""
    command = [sys.executable, "-c", MEASURE, str(path), format_, compression, str(limit)]
    result = subprocess.run(command, capture_output=True, check=True, text=True)
    rows, bad, size, grown = map(int, result.stdout.split())
    return rows, bad, size, grown


def test_a_file_takes_no_more_memory_than_some_blocks(tmp_path: Path) -> None:
    path = tmp_path / "f"
    with path.open("wb") as file:
        file.writelines([b"some words in a line\n" * 50_000] * 200)
    rows, bad, _, grown = measure(path, "lines", "none")
    assert (rows, bad) == (10_000_000, 0)
    assert grown < 80 * KIB_A_MIB


@pytest.mark.long
def test_a_line_of_100_mb_takes_a_few_times_its_size(tmp_path: Path) -> None:
    path = tmp_path / "f"
    path.write_bytes(b"before\n" + b"x" * 100_000_000 + b"\nafter\n")
    rows, bad, size, grown = measure(path, "lines", "none")
    assert (rows, bad) == (3, 0)
    assert size > 100_000_000
    assert grown < 300 * KIB_A_MIB
    path.write_bytes(b'{"text":"a"}\n{"text":"' + b"x" * 100_000_000 + b'"}\n{"text":"b"}\n')
    rows, bad, size, grown = measure(path, "jsonl", "none")
    assert (rows, bad) == (3, 0)
    assert grown < 300 * KIB_A_MIB


@pytest.mark.parametrize("compression", long_but(["zst", "gz", "bz2", "xz"], "zst"))
def test_a_bomb_of_one_line_is_passed_over_in_little_memory(
    tmp_path: Path, compression: Compression
) -> None:
    path = tmp_path / "f"
    bomb = pack(bytes(80_000_000), compression)
    path.write_bytes(bomb * (1 if compression == "bz2" else 4) + pack(b"\nlast\n", compression))
    rows, bad, _, grown = measure(path, "lines", compression, limit=1_000_000)
    assert (rows, bad) == (1, 1)
    assert grown < 150 * KIB_A_MIB
    rows, bad, _, grown = measure(path, "text", compression, limit=1_000_000)
    assert (rows, bad) == (0, 1)
    assert grown < 150 * KIB_A_MIB


def test_a_large_value_that_repeats_does_not_fill_the_memory(tmp_path: Path) -> None:
    value = pa.array(["x" * 1_000_000])
    plain = pa.DictionaryArray.from_arrays(pa.array([0] * 600, pa.int32()), value)
    path = tmp_path / "f.parquet"
    pq.write_table(pa.table({"text": plain}), path, compression="zstd", store_schema=False)
    assert path.stat().st_size < 10_000
    rows, bad, _, grown = measure(path, "parquet", "none")
    assert (rows, bad) == (600, 0)
    assert grown < 200 * KIB_A_MIB  # of the 600 MB that the file unpacks to
