"""A watch on Prism and on Flink, where it is a streaming job, killed twice and started again."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.watch.drops import make_drops
from tests.watch.killed import Batch

if TYPE_CHECKING:
    from pathlib import Path

    from tests.cluster.conftest import Pool, Standalone
    from tests.cluster.jobs import Submission
    from tests.cluster.package import Package


@pytest.fixture(scope="module")
def few(tmp_path_factory: pytest.TempPathFactory) -> Batch:
    return Batch.of(make_drops(20), tmp_path_factory.mktemp("few"))


@pytest.fixture(scope="module")
def many(tmp_path_factory: pytest.TempPathFactory) -> Batch:
    return Batch.of(make_drops(200), tmp_path_factory.mktemp("many"))


def test_on_prism(few: Batch, on_prism: Submission, tmp_path: Path) -> None:
    few.check_encoding(tmp_path, *on_prism.options, seconds=3)


@pytest.mark.long
@pytest.mark.parametrize("what", ["encode", "count"])
def test_200_files_here(many: Batch, what: str, tmp_path: Path) -> None:
    check = many.check_encoding if what == "encode" else many.check_counting
    check(tmp_path, seconds=60)


@pytest.mark.long
@pytest.mark.parametrize("what", ["encode", "count"])
def test_200_files_on_prism(many: Batch, on_prism: Submission, what: str, tmp_path: Path) -> None:
    check = many.check_encoding if what == "encode" else many.check_counting
    check(tmp_path, *on_prism.options, seconds=60)


@pytest.mark.long
@pytest.mark.parametrize("what", ["encode", "count"])
def test_200_files_on_flink(
    many: Batch, flink_local: Submission, what: str, tmp_path: Path
) -> None:
    check = many.check_encoding if what == "encode" else many.check_counting
    check(tmp_path, *flink_local.options, seconds=60)


@pytest.mark.long
@pytest.mark.parametrize("what", ["encode", "count"])
@pytest.mark.usefixtures("quiet")  # jobs of commands that were killed hold slots
def test_workers_of_a_pool(
    few: Batch, standalone: Standalone, pool: Pool, what: str, tmp_path: Path
) -> None:
    """Their jobs outlive a command that is killed, and end when the next one begins."""
    check = few.check_encoding if what == "encode" else few.check_counting
    check(tmp_path, *standalone.external(pool, parallelism=1).options, seconds=3)


@pytest.mark.long
@pytest.mark.parametrize("what", ["encode", "count"])
@pytest.mark.usefixtures("quiet")
def test_workers_that_are_sent_the_package(
    few: Batch, standalone: Standalone, package: Package, what: str, tmp_path: Path
) -> None:
    booted = standalone.process(parallelism=1) + package.as_wheel
    check = few.check_encoding if what == "encode" else few.check_counting
    check(tmp_path, *booted.options, seconds=3)
