from __future__ import annotations

import subprocess
import sys

import pyarrow as pa
import unicodedata2

from bpe._arrow import text_column
from bpe._native import malformed_rows
from tests.bpe.texts import MALFORMED, code_points, is_doubtful
from tests.shared_data import ROOT


def bad_rows(texts: list[bytes]) -> list[int]:
    column = text_column(pa.array(texts, type=pa.binary()))
    return memoryview(malformed_rows(column)).cast("q").tolist()


def is_well_formed(text: bytes) -> bool:
    try:
        text.decode("utf-8")
    except UnicodeDecodeError:
        return False
    return True


def test_the_tables_are_those_the_script_makes() -> None:
    script = ROOT / "scripts" / "generate_unicode_tables.py"
    done = subprocess.run(
        [sys.executable, script, "--check"], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")


def test_the_regex_package_differs_only_where_unicode_moved_on() -> None:
    differences = [c for c in code_points() if is_doubtful(c)]
    assigned = [c for c in differences if unicodedata2.category(c) != "Cn"]
    assert len(differences) < 50_000
    assert len(assigned) < 16  # U+0295 became a letter without case in Unicode 17


def test_each_kind_of_malformed_bytes_is_found_wherever_it_stands() -> None:
    texts = [
        b"x" * before + bad + b"x" * after
        for bad in MALFORMED
        for before in range(10)
        for after in range(10)
    ]
    assert bad_rows(texts) == list(range(len(texts)))


def test_every_code_point_is_well_formed_and_every_surrogate_is_not() -> None:
    points = [chr(point).encode("utf-8", "surrogatepass") for point in range(0x110000)]
    assert bad_rows(points) == list(range(0xD800, 0xE000))


def test_every_pair_of_bytes_and_every_start_of_four() -> None:
    pairs = [bytes([a, b]) for a in range(256) for b in range(256)]
    edges = (0x7F, 0x80, 0x8F, 0x90, 0x9F, 0xA0, 0xBF, 0xC0)
    fours = [
        bytes([a, b, c, d]) for a in range(0xE0, 0x100) for b in edges for c in edges for d in edges
    ]
    for texts in (pairs, fours):
        assert bad_rows(texts) == [i for i, text in enumerate(texts) if not is_well_formed(text)]
