"""A file that cannot be divided keeps one worker busy: the job warns when it begins."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from pipelines.corpus.files import InputFile
from pipelines.corpus.inputs import MIN_SPLIT
from pipelines.corpus.splits import SEVERAL, straggler
from tests.cli.process import bpe

if TYPE_CHECKING:
    from pathlib import Path

MIB = 1 << 20
GZ: dict[str, Any] = {"format": "jsonl", "compression": "gz"}
TEXT: dict[str, Any] = {"format": "text", "compression": "none"}
LINES: dict[str, Any] = {"format": "lines", "compression": "none"}


def corpus(*files: tuple[int, dict[str, Any]]) -> list[InputFile]:
    return [
        InputFile(path=f"/{i}", name=str(i), file_size=size * MIB, **kind)
        for i, (size, kind) in enumerate(files)
    ]


@pytest.mark.parametrize(
    ("files", "split_size", "named"),
    [
        ([(50_000, GZ), (10_000, LINES)], None, "/0"),
        ([(10_000, LINES), (2_000, TEXT), (3_000, TEXT)], None, "/2"),
        ([(50_000, GZ)], None, "/0"),  # alone, it is all the job
        ([(300, GZ), (10, GZ), (10, GZ)], None, "/0"),
        ([(33, TEXT), (1, LINES)], 1 * MIB, "/0"),
        ([(50_000, LINES)], None, None),
        ([(900, GZ), (10_000, LINES)], 256 * MIB, None),  # a few times a split is no matter
        ([(900, GZ), (10_000, LINES)], 200 * MIB, "/0"),
        ([(30, GZ), (1, LINES)], 1 * MIB, None),  # seconds
        ([(100, GZ)] * 100, None, None),  # as many as there is to do at once
        ([], None, None),
    ],
)
def test_it_is_named_where_it_is_several_times_a_split(
    files: list[tuple[int, dict[str, Any]]], split_size: int | None, named: str | None
) -> None:
    found = corpus(*files)
    late = straggler(found, split_size)
    assert (late and late.path) == named


def test_a_line_says_so_before_the_work(tmp_path: Path) -> None:
    large, small = tmp_path / "in" / "large.txt", tmp_path / "in" / "small.jsonl"
    large.parent.mkdir()
    large.write_bytes(b"rose " * (SEVERAL * MIN_SPLIT // 5 + 1000))
    small.write_text('{"text": "a rose"}\n')
    done = bpe(
        *("count", "--input", large, "--input", small, "--output", tmp_path / "counts"),
        seconds=600,
    )
    (line,) = (line for line in done.stderr.splitlines() if "cannot be divided" in line)
    assert line == (
        f"bpe: count: {large}, 33.6 MB, is one document (`format` text) and cannot be divided: it "
        "is one of 2 splits and keeps one worker busy: divide it beforehand, or store it "
        "uncompressed as lines, jsonl or Parquet"
    )
    done = bpe("count", "--input", small, "--output", tmp_path / "small")
    assert "cannot be divided" not in done.stderr
