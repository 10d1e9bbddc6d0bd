"""Every format, every compression and every mode together: the same rows, proved and decoded."""

from __future__ import annotations

import io
import json
from dataclasses import replace
from itertools import islice
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from pipelines.formats import FILE_FORMATS, WITH_COLUMNS
from pipelines.settings import InputSettings
from tests import jobs
from tests.pipelines.corpora import MODES, count, encode, sentence
from tests.pipelines.corpus_files import COMPRESSIONS, pack
from tests.shared_data import LONG

if TYPE_CHECKING:
    from pathlib import Path

    from pipelines.corpus.files import Compression
    from pipelines.formats import FileFormat

TEXTS = [sentence(i).replace("\n", " ") if i % 4 else "" for i in range(24)]
CASES: list[tuple[FileFormat, Compression]] = [
    (name, packed)
    for name, traits in FILE_FORMATS.items()
    for packed in (COMPRESSIONS if traits.can_be_compressed else ("none",))
]


def write(folder: Path, format_: FileFormat, packed: Compression) -> None:
    """The texts in two files; as ``text``, each has one of its own."""
    folder.mkdir()
    suffix = "" if packed == "none" else f".{packed}"
    if format_ == "text":
        for i, text in enumerate(TEXTS):
            (folder / f"{i:02}.txt{suffix}").write_bytes(pack(text.encode(), packed))
        return
    for name, begin, end in (("a", 0, 10), ("b", 10, len(TEXTS))):
        records = [{"text": TEXTS[i], "n": i} for i in range(begin, end)]
        if format_ == "parquet":
            table = pa.Table.from_pylist(records)
            pq.write_table(table, folder / f"{name}.parquet", row_group_size=4)
            continue
        if format_ not in ("lines", "jsonl"):
            raise NotImplementedError(format_)
        lines = [json.dumps(r) if format_ == "jsonl" else str(r["text"]) for r in records]
        data = "".join(line + "\n" for line in lines).encode()
        (folder / f"{name}.{format_}{suffix}").write_bytes(pack(data, packed))


def rows(folder: Path) -> list[dict[str, Any]]:
    return [
        row
        for path in sorted(folder.glob("data/*.parquet"))
        for row in pq.read_table(path).to_pylist()
    ]


# In the short form, the mixed corpus below has every compression and all formats but lines; modes
# have their rows in test_encode_rows, and columns pass through in test_keep.
@pytest.mark.long
@pytest.mark.parametrize(("format_", "packed"), CASES)
def test_the_matrix(model: Path, tmp_path: Path, format_: FileFormat, packed: Compression) -> None:
    write(tmp_path / "in", format_, packed)
    inputs = InputSettings(patterns=(str(tmp_path / "in"),), format=format_, split_size=400)
    modes = dict(MODES)
    if format_ in WITH_COLUMNS:
        modes |= {f"{name}, kept": replace(mode, keep=("n",)) for name, mode in MODES.items()}
    for name, settings in modes.items():
        ids = tmp_path / name
        summary = encode(inputs, model, ids, encoding=settings)
        assert jobs.verify(directory=str(ids), inputs=inputs).documents == len(TEXTS), name
        stream = io.BytesIO()
        jobs.decode(directory=str(ids), stream=stream)
        found = [json.loads(line)["text"] for line in stream.getvalue().decode().splitlines()]
        assert found == TEXTS, name
        stored = sum(len(row["input_ids"]) for row in rows(ids))
        assert stored == summary.tokens, name
        if settings.keep:
            assert [row["n"] for row in rows(ids)] == list(range(len(TEXTS))), name
    assert count(inputs, tmp_path / "counts").documents == len(TEXTS)
    assert jobs.verify(directory=str(tmp_path / "counts"), inputs=inputs).documents == len(TEXTS)


def test_formats_and_compressions_mix_in_one_corpus(model: Path, tmp_path: Path) -> None:
    for format_, packed in CASES:
        if format_ != "lines":  # a file of lines looks like any text: it is asked for by --format
            write(tmp_path / "in", format_, packed)
            (tmp_path / "in").rename(tmp_path / f"{format_} {packed}")
    corpus = [str(path) for path in sorted(tmp_path.iterdir())]
    inputs = InputSettings(patterns=tuple(corpus), split_size=1000)
    for name, settings in islice(MODES.items(), 0, None, 1 if LONG else 3):
        encode(inputs, model, tmp_path / name, encoding=settings)
        verified = jobs.verify(directory=str(tmp_path / name), inputs=inputs)
        assert verified.documents == len(corpus) * len(TEXTS)
