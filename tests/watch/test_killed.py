"""A watch that is killed while files arrive and started again: nothing twice, nothing lost."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from pipelines.output.entries import key_of, keyed_files
from tests.watch.drops import make_drops
from tests.watch.killed import Batch

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture(scope="module")
def batch(tmp_path_factory: pytest.TempPathFactory) -> Batch:
    return Batch.of(make_drops(60), tmp_path_factory.mktemp("batch"))


def test_encoding(tmp_path: Path, batch: Batch) -> None:
    batch.check_encoding(tmp_path, seconds=4)


def test_counting(tmp_path: Path, batch: Batch) -> None:
    batch.check_counting(tmp_path, seconds=4)
    keys = {key_of(file) for file in keyed_files(str(tmp_path / "out")) if file.startswith("data/")}
    assert len(keys) < len(batch.drops.contents) / 2  # they were brought together
