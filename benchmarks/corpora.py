"""The texts that are measured: shared data where it is, else Python's standard library."""

from __future__ import annotations

import json
import os
import sysconfig
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).resolve().parent.parent
DATA = ROOT / "benchmarks" / "data"
SCRIPTS = ROOT / "benchmarks" / "scripts"
SHARED = Path(os.environ.get("BPE_SHARED", ROOT.parent / "shared"))
ENGLISH, MULTILINGUAL = "en", "multi"
# Below the standard library, but not part of it.
_NOT_OURS = {"site-packages", "dist-packages", "__pycache__"}


def shared_path(corpus: str) -> Path | None:
    """The Parquet file of a corpus of the shared data; None where it is absent."""
    path = SHARED / "corpora" / f"{corpus}.parquet"
    return path if path.is_file() else None


def source(corpus: str) -> str:
    """The corpus itself, or ``library`` where it is absent."""
    return corpus if shared_path(corpus) else "library"


def described(corpus: str) -> str:
    """The name of a corpus in a table."""
    names = {ENGLISH: "English", MULTILINGUAL: "multilingual", "library": "Python's library"}
    return names[source(corpus)]


def column(corpus: str, size: int) -> pa.LargeStringArray:
    """The first documents of a corpus that make about ``size`` bytes; all, within one per cent.

    Past its end it begins again; the number of distinct words does not grow from there.

    Args:
        corpus: ``en`` or ``multi``.
        size: bytes of UTF-8, at least 1.

    Returns:
        One array without offset, and without empty texts (gigatoken leaves them out).
    """
    path = DATA / f"{source(corpus)}-{size}.arrow"
    if not path.is_file():
        texts = _all(corpus)
        lengths = pc.binary_length(texts).to_numpy()
        times, rest = divmod(size, int(lengths.sum()))
        if abs(size - round(size / lengths.sum()) * lengths.sum()) < size / 100:
            times, rest = round(size / lengths.sum()), 0
        rows = int(np.searchsorted(np.cumsum(lengths), rest)) + 1 if rest else 0
        table = pa.table({"text": pa.chunked_array([*[texts] * times, texts.slice(0, rows)])})
        with made(path) as partial, pa.ipc.new_file(str(partial), table.schema) as file:
            file.write_table(table)
    with pa.OSFile(str(path)) as file:
        return pa.concat_arrays(pa.ipc.open_file(file).read_all()["text"].chunks)


def parquet_file(corpus: str, size: int, *, copies: int = 1) -> Path:
    """Copies of the same documents with the columns id, all of them new, and text.

    The shared file where it is all of it.
    """
    shared = shared_path(corpus)
    texts = column(corpus, size)
    if copies == 1 and shared is not None and len(texts) == pq.read_metadata(shared).num_rows:
        return shared
    path = DATA / f"{source(corpus)}-{copies}x{size}.parquet"
    if not path.is_file():
        table = _table(pa.chunked_array([texts] * copies))
        with made(path) as partial:
            pq.write_table(table, partial, compression="zstd", row_group_size=5000)
    return path


def jsonl_file(corpus: str, size: int, *, copies: int) -> Path:
    """Copies of the same documents as JSON lines with the fields id, all of them new, and text."""
    path = DATA / f"{source(corpus)}-{copies}x{size}.jsonl"
    if not path.is_file():
        table = _table(pa.chunked_array([column(corpus, size)] * copies))
        with made(path) as partial, partial.open("w", encoding="utf-8") as file:
            for batch in table.to_batches(max_chunksize=1000):
                for row in batch.to_pylist():
                    file.write(json.dumps(row, ensure_ascii=False) + "\n")
    return path


def _table(texts: pa.Array | pa.ChunkedArray) -> pa.Table:
    return pa.table({"id": [f"document-{row:07}" for row in range(len(texts))], "text": texts})


@contextmanager
def made(path: Path) -> Iterator[Path]:
    """A path to write to, which becomes ``path`` when everything is there."""
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_name(f"partial-{path.name}")
    yield partial
    partial.replace(path)


def text_bytes(texts: pa.Array) -> int:
    """Bytes of UTF-8 in a column."""
    return int(pc.sum(pc.binary_length(texts)).as_py() or 0)


@cache
def _all(corpus: str) -> pa.LargeStringArray:
    path = shared_path(corpus)
    if path is None:
        return pa.array(_library(), pa.large_string())
    texts = pq.read_table(path, columns=["text"])["text"].cast(pa.large_string())
    whole = pa.concat_arrays(texts.chunks)
    return whole.filter(pc.greater(pc.binary_length(whole), 0))


def _library() -> list[str]:
    """The modules of the standard library, but for those that are malformed on purpose."""
    library = Path(sysconfig.get_path("stdlib"))
    texts = []
    for path in sorted(library.rglob("*.py")):
        if _NOT_OURS.intersection(path.relative_to(library).parts):
            continue
        try:
            texts.append(path.read_text("utf-8"))
        except (UnicodeDecodeError, OSError):
            continue
    return [text for text in texts if text]
