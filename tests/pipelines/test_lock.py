"""One job at a time: the kernel's lock on a disk."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from pipelines.errors import OutputError
from pipelines.output.lock import locked
from tests.pipelines.object_store import ObjectStore

if TYPE_CHECKING:
    from pathlib import Path


def test_two_jobs_do_not_write_to_one_directory(tmp_path: Path) -> None:
    again = locked(str(tmp_path))
    with locked(str(tmp_path)), pytest.raises(OutputError, match="another job is writing"):
        again.__enter__()
    with locked(str(tmp_path)):
        pass
    assert list(tmp_path.iterdir()) == []


def test_a_store_has_no_lock() -> None:
    with locked("store://bucket/out"), locked("store://bucket/out"):
        assert not ObjectStore.objects
