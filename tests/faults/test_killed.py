"""Whole jobs that are killed or told to end: one error, no half file, the same bytes after."""

from __future__ import annotations

import shutil
import signal
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from bpe.files import final_name
from tests.cli.process import bpe
from tests.faults.running import PATIENCE, ended, outcome, running, stamps, temporaries, until
from tests.shared_data import LONG, long_but

if TYPE_CHECKING:
    from tests.faults.whole import WholeJob

ENDS = {
    signal.SIGKILL: (-signal.SIGKILL, []),
    signal.SIGTERM: (128 + signal.SIGTERM, ["bpe: error: terminated"]),
    signal.SIGINT: (128 + signal.SIGINT, ["bpe: error: interrupted"]),
}
PARTS = "encoded/data/train-*"
# Files of which there are as many: while it counts, encodes, and exports.
MOMENTS = ((".plan.json", 1), (PARTS, 3), (PARTS, 60), ("export/.plan.json", 1))
EXPORT = {"to": "parquet", "pack": 64, "shuffle": 7, "validation": "10%", "token_budget": 150_000}


@pytest.mark.parametrize("number", long_but(ENDS, signal.SIGKILL))
def test_a_run_that_is_ended_again_and_again_goes_on(
    whole: WholeJob, tmp_path: Path, number: signal.Signals
) -> None:
    """Complete counts, and parts with a record, are not made again."""
    undisturbed, out = shutil.copytree(whole.disk, tmp_path / "undisturbed"), tmp_path / "out"
    bpe(*whole.command(tmp_path / "job.yaml", undisturbed, export=EXPORT), "--resume")
    expected = outcome(undisturbed)
    assert any(name.startswith("export/data/train-") for name in expected)
    run = (*whole.command(tmp_path / "job.yaml", out, export=EXPORT), "--resume")
    finished: dict[str, tuple[int, int]] = {}
    for pattern, files in MOMENTS if LONG else MOMENTS[1:2]:
        with running(*run) as process:
            until(lambda: len(list(out.glob(pattern))) >= files, process)  # noqa: B023  # at once
            process.send_signal(number)
            status, errors = ended(process)
        # Before and between jobs, SIGTERM ends it at once.
        at_once = pattern != PARTS and (status, errors) == (-signal.SIGTERM, [])
        assert at_once or (status, errors) == ENDS[number]
        assert not (out / "export" / "manifest.json").exists()
        for name, data in outcome(out).items():
            base = Path(name).name
            assert final_name(base) != base or data == expected[name], name
        now = stamps(out)
        assert {name: now[name] for name in finished} == finished
        complete = {path.parent.name for path in out.glob("*/manifest.json")}
        recorded = {path.stem for path in out.glob("encoded/records/train-*")}
        finished = {
            name: stamp
            for name, stamp in now.items()
            if "/data/" in name
            and (name.partition("/")[0] in complete or Path(name).stem in recorded)
        }
    bpe(*run, seconds=PATIENCE)
    assert outcome(out) == expected
    assert temporaries(out) == []
    now = stamps(out)
    assert {name: now[name] for name in finished} == finished
