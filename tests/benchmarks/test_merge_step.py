"""Partial counts are merged and trained on within a stated memory."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from tests.shared_data import ROOT

if TYPE_CHECKING:
    from pathlib import Path

DISTINCT = int(os.environ.get("BPE_DISTINCT", "100000"))  # make test-scale: 20 million
# What the process of a job takes before it has any counts, and bytes a distinct pre-token.
PROCESS, EACH = 400_000_000, 180


@pytest.mark.long
def test_counts_are_merged_and_trained_on_in_bounded_memory(tmp_path: Path) -> None:
    most = PROCESS + EACH * DISTINCT
    done = subprocess.run(
        [
            *(sys.executable, "-m", "benchmarks.merge_step", "--distinct", str(DISTINCT)),
            *("--most-bytes", str(most), "--vocab-size", str(min(32_000, DISTINCT // 50))),
            *("--output", str(tmp_path / "results.json")),
        ],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr  # it compares the counts itself
    steps = json.loads((tmp_path / "results.json").read_text())["steps"]
    assert {name: step["peak_bytes"] <= most for name, step in steps.items()} == {
        "merge": True,
        "train": True,
    }
