"""A poisoned corpus on Flink: what is good comes through, what is bad is set aside."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.faults.test_poison import LONG, SHORT, check, run

if TYPE_CHECKING:
    from pathlib import Path

    from tests.cluster.jobs import Submission


@pytest.mark.long
@pytest.mark.parametrize("lines", [False, True], ids=["auto", "lines"])
@pytest.mark.parametrize("sizes", [SHORT, LONG], ids=["small", "a line of 500 MB and bombs"])
def test_the_good_records_come_through(
    flink_local: Submission, tmp_path: Path, lines: bool, sizes: dict[str, int]
) -> None:
    beam = ("--runner=PortableRunner", *flink_local.for_beam)
    result = run(tmp_path, *beam, lines=lines, **sizes)
    check(tmp_path, result, limit=sizes["limit"])
