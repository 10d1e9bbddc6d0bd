"""Promises of every format: documents in = rows out, ids, limits, files that change."""

from __future__ import annotations

from itertools import accumulate, pairwise, product
from typing import TYPE_CHECKING, Any

import pytest

from pipelines.corpus.documents import ReadOptions, read_split
from pipelines.corpus.inputs import find_inputs
from pipelines.corpus.splits import plan_splits
from pipelines.errors import ConfigError
from pipelines.formats import FILE_FORMATS, WITH_COLUMNS
from pipelines.option import declared
from pipelines.settings import EncodeSettings, InputSettings
from tests.pipelines.corpus_files import COMPRESSIONS, pack, read, stored, whole

if TYPE_CHECKING:
    from pathlib import Path

    from pipelines.corpus.files import Compression
    from pipelines.formats import FileFormat

TEXTS = ["one", "", "zwei\ttab", "日本語 𝔘", "one", "\x00 nul", " space ", "last"]
PACKED = [name for name, traits in FILE_FORMATS.items() if traits.can_be_compressed]
SUFFIX = {"text": ".txt", "lines": ".txt", "jsonl": ".jsonl", "parquet": ".parquet"}


@pytest.mark.parametrize("compression", COMPRESSIONS)
@pytest.mark.parametrize("format_", PACKED)
@pytest.mark.parametrize("members", [1, 3, 1000])  # of which most are empty
def test_documents_in_are_rows_out(
    tmp_path: Path, format_: FileFormat, compression: Compression, members: int
) -> None:
    data = stored(format_, TEXTS)
    bounds = [len(data) * i // members for i in range(members + 1)]
    packed = b"".join(pack(data[a:b], compression) for a, b in pairwise(bounds))
    suffix = "" if compression == "none" else f".{compression}"
    path = tmp_path / f"f{SUFFIX[format_]}{suffix}"
    path.write_bytes(packed)
    for block_bytes in (1, 7, 4 << 20):
        found = read(
            whole(path, format_, compression), options=ReadOptions(block_bytes=block_bytes)
        )
        assert found.bad == []
        assert found.texts == (TEXTS if format_ != "text" else [data.decode()])
        if format_ == "text":
            assert (found.ids, found.places) == ([path.name], [0])
        else:
            assert found.ids == [f"{path.name}:{place}" for place in found.places]
            starts = [0]
            for line in data.split(b"\n")[:-2]:
                starts.append(starts[-1] + len(line) + 1)
            assert found.places == starts


def test_a_byte_order_mark_is_text_except_before_json(tmp_path: Path) -> None:
    mark = "\ufeff"
    (tmp_path / "f").write_bytes(f"{mark}a\n{mark}b\n".encode())
    assert read(whole(tmp_path / "f", "text")).texts == [f"{mark}a\n{mark}b\n"]
    assert read(whole(tmp_path / "f", "lines")).texts == [f"{mark}a", f"{mark}b"]
    (tmp_path / "f").write_bytes(f'{mark}{{"text":"a"}}\n{mark}{{"text":"b"}}\n'.encode())
    found = read(whole(tmp_path / "f", "jsonl"))
    assert found.documents == [("f:3", "a", 3)]
    assert len(found.bad) == 1


def test_the_text_can_be_the_id(tmp_path: Path) -> None:
    for format_ in WITH_COLUMNS:
        (tmp_path / "f").write_bytes(stored(format_, ["a", "b"]))
        found = read(whole(tmp_path / "f", format_), options=ReadOptions(id_field="text"))
        assert found.ids == found.texts == ["a", "b"]


RECORDS = [*product(("lines", "jsonl"), COMPRESSIONS), ("parquet", "none")]


@pytest.mark.parametrize(("format_", "compression"), RECORDS)
def test_a_long_record_is_bad_and_its_neighbours_are_not(
    tmp_path: Path, format_: FileFormat, compression: Compression
) -> None:
    more = len('{"text": ""}') if format_ == "jsonl" else 0
    texts = ["before", "x" * 300_000, "y" * (100 - more), "z" * (101 - more)]
    path = tmp_path / "f"
    path.write_bytes(pack(stored(format_, texts), compression))
    places = [*accumulate((len(text) + more + 1 for text in texts), initial=0)]
    for block_bytes in (10, 1000, 1 << 20):
        options = ReadOptions(max_record_bytes=100, block_bytes=block_bytes)
        found = read(whole(path, format_, compression), options=options)
        assert found.texts == [texts[0], texts[2]]
        assert [record.size for record in found.bad] == [300_000 + more, 101]
        expected = [1, 3] if format_ == "parquet" else [places[1], places[3]]
        assert [record.place for record in found.bad] == expected
        assert len(found.bad[0].raw) == 64 << 10
        assert "100" in found.bad[0].reason


@pytest.mark.parametrize("compression", COMPRESSIONS)
def test_a_long_file_is_a_bad_document(tmp_path: Path, compression: Compression) -> None:
    path = tmp_path / "f"
    for size, documents in ((100, 1), (101, 0), (200_000, 0)):
        path.write_bytes(pack(b"x" * size, compression))
        options = ReadOptions(max_record_bytes=100)
        found = read(whole(path, "text", compression), options=options)
        assert (len(found.documents), len(found.bad)) == (documents, 1 - documents)


def test_small_files_share_a_block(tmp_path: Path) -> None:
    for i in range(100):
        (tmp_path / f"{i:03}.txt").write_text(f"text {i}" if i % 10 else "")
    (tmp_path / "050.txt").write_bytes(b"\xff")
    (split,) = plan_splits(find_inputs(InputSettings(patterns=(str(tmp_path),))).files)
    (block,) = read_split(split, ReadOptions())
    expected = [i for i in range(100) if i != 50]
    assert block.ids.to_pylist() == [f"{i:03}.txt" for i in expected]
    assert block.texts.to_pylist() == [f"text {i}" if i % 10 else "" for i in expected]
    assert block.file_indexes.to_pylist() == expected
    assert block.places.to_pylist() == [0] * 99
    assert [(bad.name, bad.size) for bad in block.bad] == [("050.txt", 1)]
    assert block.input_bytes == split.size


@pytest.mark.parametrize("changes", [{"text_field": "\ud800"}, {"id_field": "\udfff"}])
def test_options_are_checked(changes: dict[str, Any]) -> None:
    with pytest.raises(ConfigError):
        ReadOptions(**changes)


def test_the_help_names_every_format_and_ending() -> None:
    options = declared(InputSettings)
    for name, traits in FILE_FORMATS.items():
        assert name in options["format"].help
        assert " ".join(traits.suffixes) in options["format"].help
    for option in (options["text_field"], declared(EncodeSettings)["keep"]):
        assert f"({', '.join(WITH_COLUMNS)})" in option.help
