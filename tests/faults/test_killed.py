"""Whole jobs that are killed or told to end: one error, no half file, the same bytes after."""

from __future__ import annotations

import json
import signal
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from pipelines.storage import is_temporary
from tests.cli.process import bpe
from tests.faults.running import (
    PATIENCE,
    ended,
    outcome,
    running,
    stamps,
    temporaries,
    until,
)
from tests.shared_data import long_but

if TYPE_CHECKING:
    from tests.faults.whole import WholeJob

ENDS = {
    signal.SIGKILL: (-signal.SIGKILL, []),
    signal.SIGTERM: (128 + signal.SIGTERM, ["bpe: error: terminated"]),
    signal.SIGINT: (128 + signal.SIGINT, ["bpe: error: interrupted"]),
}


def parts(directory: Path) -> list[Path]:
    return list(directory.rglob("train-*.parquet"))


@pytest.mark.parametrize("number", long_but(ENDS, signal.SIGKILL))
@pytest.mark.parametrize("after", long_but([0, 3, 60], 3))
def test_a_run_that_is_ended_at_any_moment_is_resumed(
    whole: WholeJob, tmp_path: Path, number: signal.Signals, after: int
) -> None:
    """Complete counts, and parts with a record, are not made again."""
    out, expected = tmp_path / "out", whole.made()
    run = whole.command(tmp_path / "job.yaml", out)
    with running(*run) as process:
        until((out / ".plan.json").exists, process)
        until(lambda: len(parts(out)) >= after, process)
        process.send_signal(number)
        status, errors = ended(process)
    # Before and between jobs, SIGTERM ends it at once.
    at_once = after == 0 and (status, errors) == (-signal.SIGTERM, [])
    assert at_once or (status, errors) == ENDS[number]
    assert not (out / "encoded" / "manifest.json").exists()
    for name, data in outcome(out).items():
        assert is_temporary(Path(name).name) or data == expected[name], name
    recorded = {path.stem for path in (out / "encoded" / "records").glob("train-*")}
    finished = {
        name: stamp
        for name, stamp in stamps(out).items()
        if name.endswith(".parquet")
        and ((name[:7] == "counts/" and after) or Path(name).stem in recorded)
    }
    done = bpe(*run, "--resume", "--json", seconds=PATIENCE)
    assert outcome(out) == expected
    assert temporaries(out) == []
    now = stamps(out)
    assert {name: now[name] for name in finished} == finished
    assert json.loads(done.stdout)["encode"]["resumed_parts"] == len(recorded)
