"""``bpe run`` from the corpus to an export, killed at any moment: in the end the same bytes."""

from __future__ import annotations

import random
import shutil
import signal
import subprocess
import time
from typing import TYPE_CHECKING

import pytest

from tests.cli.process import bpe
from tests.faults.running import PATIENCE, outcome, running, temporaries
from tests.faults.test_killed import EXPORT

if TYPE_CHECKING:
    from pathlib import Path

    from tests.faults.whole import WholeJob


@pytest.mark.long
def test_a_chain_that_is_killed_goes_on(whole: WholeJob, tmp_path: Path) -> None:
    out = tmp_path / "out"
    run = whole.command(tmp_path / "job.yaml", out, export=EXPORT)
    began = time.monotonic()
    bpe(*run, seconds=PATIENCE)
    took, expected = time.monotonic() - began, outcome(out)
    assert any(name.startswith("export/data/train-") for name in expected)
    chance, left = random.Random(30), 30
    while left:
        shutil.rmtree(out)
        done = False
        while not done and left:
            # A run that is resumed begins where the last one ended: mostly it lives for a moment.
            done = ended_before(run, chance.uniform(0.3, 0.7) * took)
            left -= not done
        if not done:
            bpe(*run, "--resume", seconds=PATIENCE)
        assert outcome(out) == expected
        assert temporaries(out) == []


def ended_before(run: list[str | Path], seconds: float) -> bool:
    """Go on with a run; whether it ended well within some time, else it is killed."""
    with running(*run, "--resume") as process:
        try:
            _, errors = process.communicate(timeout=seconds)
        except subprocess.TimeoutExpired:
            process.kill()
            _, errors = process.communicate()
            assert process.returncode == -signal.SIGKILL
            return False
    assert process.returncode == 0, errors
    return True
