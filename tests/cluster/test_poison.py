"""A poisoned corpus on Flink: what is good comes through, what is bad is set aside."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.faults.test_poison import LONG, SHORT, check, run

if TYPE_CHECKING:
    from pathlib import Path

    from tests.cluster.jobs import Submission

RUNNER = "--runner=PortableRunner"


@pytest.mark.long
def test_the_good_records_come_through(flink_local: Submission, tmp_path: Path) -> None:
    result = run(tmp_path, RUNNER, *flink_local.for_beam, lines=False, **SHORT)
    check(tmp_path, result, limit=SHORT["limit"])


@pytest.mark.long
def test_in_files_of_lines(flink_local: Submission, tmp_path: Path) -> None:
    result = run(tmp_path, RUNNER, *flink_local.for_beam, lines=True, **SHORT)
    check(tmp_path, result, limit=SHORT["limit"])


@pytest.mark.long
@pytest.mark.parametrize("lines", [False, True], ids=["auto", "lines"])
def test_a_line_of_500_mb_and_bombs(flink_local: Submission, tmp_path: Path, lines: bool) -> None:
    result = run(tmp_path, RUNNER, *flink_local.for_beam, lines=lines, **LONG)
    check(tmp_path, result, limit=LONG["limit"])
