"""A poisoned corpus on Flink: what is good comes through, what is bad is set aside."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from pipelines.settings import Execution
from tests.faults.test_poison import SIZES, check_jobs

if TYPE_CHECKING:
    from pathlib import Path

    from tests.cluster.jobs import Submission


@pytest.mark.long
@pytest.mark.parametrize("sizes", SIZES)
def test_the_good_records_come_through(flink_local: Submission, tmp_path: Path, sizes: str) -> None:
    beam_args = ("--runner=PortableRunner", *flink_local.for_beam)
    check_jobs(tmp_path, Execution(workers=2, beam_args=beam_args), **SIZES[sizes])
