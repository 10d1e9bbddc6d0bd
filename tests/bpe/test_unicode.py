from __future__ import annotations

import subprocess
import sys
from itertools import product

import pyarrow as pa
import unicodedata2

from pipelines.corpus.documents.block import malformed_rows
from tests.bpe.texts import MALFORMED, code_points, is_doubtful
from tests.shared_data import ROOT


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


def test_rows_are_malformed_that_python_does_not_decode() -> None:
    """Malformed bytes wherever they stand; every code point, pair of bytes, and start of four."""
    texts = [b"x" * a + bad + b"x" * b for bad in MALFORMED for a in range(10) for b in range(10)]
    texts += [chr(point).encode("utf-8", "surrogatepass") for point in range(0x110000)]
    texts += [bytes([a, b]) for a in range(256) for b in range(256)]
    edges = (0x7F, 0x80, 0x8F, 0x90, 0x9F, 0xA0, 0xBF, 0xC0)
    texts += [
        bytes([a, *others]) for a in range(0xE0, 0x100) for others in product(edges, repeat=3)
    ]
    expected = [row for row, text in enumerate(texts) if not is_well_formed(text)]
    assert malformed_rows(pa.array(texts, pa.binary())) == expected
