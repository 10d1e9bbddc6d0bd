"""Two jobs that write to one directory: one is refused, and a dead one stands in nobody's way."""

from __future__ import annotations

import os
import signal
from typing import TYPE_CHECKING

import pytest

from tests.cli.process import bpe
from tests.faults.running import ended, outcome, running, until

if TYPE_CHECKING:
    from pathlib import Path

    from tests.faults.conftest import Undisturbed


@pytest.mark.parametrize("name", ["encode", pytest.param("train", marks=pytest.mark.long)])
def test_the_second_of_two_jobs_is_refused(
    undisturbed: Undisturbed, tmp_path: Path, name: str
) -> None:
    out = tmp_path / "out"
    with running(*undisturbed.command(name, out)) as first:
        until((out / ".plan.json").exists, first)
        os.killpg(first.pid, signal.SIGSTOP)  # it holds the directory for as long as we look
        for how in ("--overwrite", "--resume"):
            second = bpe(*undisturbed.command(name, out, how), status=1)
            assert second.stderr == (
                f"bpe: error: {out}: another job is writing to it: wait for it, or choose another "
                "directory\n"
            )
        os.killpg(first.pid, signal.SIGCONT)
        assert ended(first) == (0, [])
    assert outcome(out) == undisturbed.made(name)
