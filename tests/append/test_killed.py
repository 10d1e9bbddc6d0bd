"""A loop that appends, killed while files arrive and started again: nothing twice, nothing lost."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from pipelines.count.appended import FAN_IN
from tests.append.drops import make_drops
from tests.append.killed import Batch

if TYPE_CHECKING:
    from pathlib import Path


pytestmark = pytest.mark.long


@pytest.fixture(scope="module")
def batch(tmp_path_factory: pytest.TempPathFactory) -> Batch:
    return Batch.of(make_drops(60), tmp_path_factory.mktemp("batch"))


def test_encoding(tmp_path: Path, batch: Batch) -> None:
    batch.check_encoding(tmp_path, seconds=4)


def test_counting(tmp_path: Path, batch: Batch) -> None:
    batch.check_counting(tmp_path, seconds=4)
    manifest = json.loads((tmp_path / "out" / "manifest.json").read_text())
    assert len(manifest["sets"]) < 2 * FAN_IN
