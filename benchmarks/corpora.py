"""The texts that are measured: shared data where it is, else Python's standard library."""

from __future__ import annotations

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
SHARED = Path(os.environ.get("BPE_SHARED", ROOT.parent / "shared"))
ENGLISH, MULTILINGUAL = "en", "multi"
# Below the standard library, but not part of it.
_NOT_OURS = {"site-packages", "dist-packages", "__pycache__"}


def shared_path(corpus: str) -> Path | None:
    """The Parquet file of a corpus of the shared data; None where it is absent."""
    path = SHARED / "corpora" / f"{corpus}.parquet"
    return path if path.is_file() else None


def described(corpus: str) -> str:
    """What a table calls a corpus."""
    if shared_path(corpus) is None:
        return "Python's library"
    return {ENGLISH: "English", MULTILINGUAL: "multilingual"}[corpus]


def column(corpus: str, size: int) -> pa.LargeStringArray:
    """The first documents of a corpus that make about ``size`` bytes (all, where it is smaller).

    Args:
        corpus: ``en`` or ``multi``.
        size: bytes of UTF-8, at least 1.

    Returns:
        One array without offset, and without empty texts (gigatoken leaves them out).
    """
    path = DATA / f"{corpus if shared_path(corpus) else 'library'}-{size}.arrow"
    if not path.is_file():
        texts = _all(corpus)
        ends = np.cumsum(pc.binary_length(texts).to_numpy())
        table = pa.table({"text": texts.slice(0, int(np.searchsorted(ends, size)) + 1)})
        with made(path) as partial, pa.ipc.new_file(str(partial), table.schema) as file:
            file.write_table(table)
    with pa.OSFile(str(path)) as file:
        return pa.concat_arrays(pa.ipc.open_file(file).read_all()["text"].chunks)


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
