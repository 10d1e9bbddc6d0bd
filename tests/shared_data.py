"""The folder of the real corpora and vocabularies, for tests marked ``shared``."""

from __future__ import annotations

import os
from contextvars import ContextVar
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

if TYPE_CHECKING:
    from collections.abc import Iterable

ROOT = Path(__file__).resolve().parents[1]
SHARED = Path(os.environ.get("BPE_SHARED", ROOT.parent / "shared"))
# Whether the running test is marked ``shared``.
shared_test = ContextVar("shared_test", default=False)
LONG = bool(os.environ.get("BPE_LONG"))  # make test-long: all of what make test takes samples of


def long_but(values: Iterable[Any], *short: Any) -> list[Any]:
    """Parameters of a test, of which the short form takes only some."""
    return [one if one in short else pytest.param(one, marks=pytest.mark.long) for one in values]


def missing(what: str, required: str) -> NoReturn:
    """Skip the calling test, or let it fail where a variable of the environment requires it."""
    if os.environ.get(required, "0") not in ("", "0"):
        pytest.fail(what)
    pytest.skip(what)


def shared_file(relative: str) -> Path:
    """The path of a shared data file; skips the calling test where it is absent.

    Raises:
        LookupError: the test is not marked ``shared``, so that ``make test-shared`` would miss it.
    """
    if not shared_test.get():
        raise LookupError(f"mark the test with @pytest.mark.shared: it reads {relative}")
    path = SHARED / relative
    if not path.exists():
        pytest.skip(f"no shared data here: {relative} (set BPE_SHARED to its folder)")
    return path


def shared_rows(corpus: str, *, sample: int) -> pa.Table:
    """Documents of a shared corpus (id, text): ``sample`` of all places, or all if LONG."""
    table = pq.read_table(shared_file(f"corpora/{corpus}.parquet"), columns=["id", "text"])
    if LONG or len(table) <= sample:
        return table
    return table.take([row * len(table) // sample for row in range(sample)]).combine_chunks()
