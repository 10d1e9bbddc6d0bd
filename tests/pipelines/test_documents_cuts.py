"""A file cut anywhere gives the same documents, ids and places, each exactly once."""

from __future__ import annotations

import random
from itertools import accumulate, chain, pairwise
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipelines.corpus.documents import ReadOptions
from tests.examples import examples
from tests.pipelines.corpus_files import Found, cut, read, whole
from tests.shared_data import LONG, long_but

if TYPE_CHECKING:
    from pathlib import Path

    from pipelines.formats import FileFormat

DATA: list[tuple[FileFormat, bytes]] = [
    *(("lines", data) for data in (b"", b"\n", b"one", b"\none\n\n\ntwo\n\n", b"\r\r\n\r\n\r")),
    ("lines", "日本語\n𝔘\nñ\r\n\u2028\u0085x\x0b\x0c\n\ufeffmark\n".encode()),
    ("lines", b"\xef\xbb\xbfmark\nb\xffd\n\xc3\nlast"),
    ("lines", b"x" * 50 + b"\n" + b"y" * 50),
    *(("jsonl", data) for data in (b"\n \n\t\r\n", b'{"text":"a"}')),
    ("jsonl", b'\n{"text":"a"}\r\n\r\n{"text":""}\n\n{"text":"good"}\n{"text":\n"half"}\nnull'),
    ("jsonl", '{"text":"日本","id":"ñ"}\n{"text":"\\u00e9\\ud835\\udd18","id":7}\n'.encode()),
    ("jsonl", b'\xef\xbb\xbf{"text":"mark"}\n{"text":"no mark"}\n'),
    ("jsonl", b'\xef\xbb\xbf\n{"text":"second"}\n'),
]
SMALL = ReadOptions(block_bytes=5)
TIGHT = ReadOptions(max_record_bytes=6, block_bytes=4)


def same(found: Found, expected: Found) -> None:
    assert found.documents == expected.documents
    assert found.bad == expected.bad
    assert found.input_bytes == expected.input_bytes


@pytest.mark.parametrize("options", long_but([ReadOptions(), SMALL, TIGHT], SMALL, TIGHT))
@pytest.mark.parametrize(("format_", "data"), DATA)
def test_a_file_cut_at_every_byte(
    tmp_path: Path, format_: FileFormat, data: bytes, options: ReadOptions
) -> None:
    (tmp_path / "f").write_bytes(data)
    source, size, chance = whole(tmp_path / "f", format_), len(data), random.Random(len(data))
    expected = read(source, options=options)
    several = (
        sorted(chance.choices(range(size + 1), k=chance.randint(1, 9)))
        for _ in range(20 if LONG else 5)
    )
    for places in chain(([one] for one in range(size + 1)), several):
        pieces = [cut(source, a, b) for a, b in pairwise([0, *places, size])]
        same(read(*pieces, options=options), expected)


@examples(300)
@given(
    data=st.lists(
        st.sampled_from(
            [
                *(b"\n", b"\r\n", b"\r", b"a", b"long text", b"\xff", b"\n\n", b"\x0b\x0c"),
                *map(str.encode, ("é", "\u2028", "\ufeff", "\x85")),
            ]
        ),
        max_size=30,
    ).map(b"".join),
    bounds=st.lists(st.floats(0, 1), max_size=5),
    block=st.integers(1, 12),
    limit=st.integers(1, 12),
    format_=st.sampled_from(["lines", "jsonl"]),
)
def test_any_cut_of_any_lines_with_any_blocks(
    tmp_path_factory: pytest.TempPathFactory,
    data: bytes,
    bounds: list[float],
    block: int,
    limit: int,
    format_: FileFormat,
) -> None:
    path = tmp_path_factory.mktemp("cuts") / "f"
    path.write_bytes(data)
    source = whole(path, format_)
    expected = read(source, options=ReadOptions(max_record_bytes=limit))
    ends = sorted([0, len(data), *(round(bound * len(data)) for bound in bounds)])
    pieces = [cut(source, a, b) for a, b in pairwise(ends)]
    options = ReadOptions(max_record_bytes=limit, block_bytes=block)
    same(read(*pieces, options=options), expected)
    if format_ == "lines":
        lines = data.removesuffix(b"\n").split(b"\n") if data else []
        places = accumulate((len(line) + 1 for line in lines), initial=0)
        records = list(zip((line.removesuffix(b"\r") for line in lines), places, strict=False))
        good = [one for one in records if len(one[0]) <= limit and b"\xff" not in one[0]]
        assert [(text.encode(), place) for _, text, place in expected.documents] == good
        assert expected.ids == [f"f:{place}" for _, place in good]
        assert len(expected.bad) == len(lines) - len(good)
        assert all(record.size == len(record.raw) for record in expected.bad)
        long = [record for record in expected.bad if record.size > limit]
        assert len(long) == sum(len(line) > limit for line, _ in records)
