"""Workers and whole jobs that are killed: one error, no half file, the same bytes after."""

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

if TYPE_CHECKING:
    from tests.faults.conftest import Undisturbed
    from tests.faults.whole import WholeJob


def parts(directory: Path) -> list[Path]:
    return list(directory.rglob("train-*.parquet"))


@pytest.mark.long
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
@pytest.mark.parametrize(
    ("name", "after"), [("encode", 0), ("encode", 3), ("encode", 60), ("train", 0)]
)
def test_a_job_ended_at_any_moment(
    undisturbed: Undisturbed,
    tmp_path: Path,
    number: signal.Signals,
    name: str,
    after: int,
) -> None:
    """No half file is left, and ``--resume`` makes what an undisturbed job makes."""
    out, expected = tmp_path / "out", undisturbed.made(name)
    with running(*undisturbed.command(name, out)) as process:
        until((out / ".plan.json").exists, process)
        until(lambda: len(parts(out)) >= after, process)
        process.send_signal(number)
        status, errors = ended(process)
    if number == signal.SIGKILL or (number == signal.SIGTERM and after == 0 and status < 0):
        assert (status, errors) == (-number, [])  # before or between jobs, SIGTERM ends it at once
    else:
        said = {signal.SIGINT: "interrupted", signal.SIGTERM: "terminated"}[number]
        assert (status, errors) == (128 + number, [f"bpe: error: {said}"])
    assert not (out / "manifest.json").exists()
    for path in parts(out):  # under a final name, complete
        assert path.read_bytes() == expected[str(path.relative_to(out))]
    bpe(*undisturbed.command(name, out, "--resume"))
    assert outcome(out) == expected
    assert temporaries(out) == []


def test_a_run_that_is_killed_while_it_encodes_is_resumed(whole: WholeJob, tmp_path: Path) -> None:
    """Complete counts, and parts with a record, are not made again."""
    out, expected = tmp_path / "out", whole.made()
    run = whole.command(tmp_path / "job.yaml", out)
    with running(*run) as process:
        until(lambda: len(parts(out / "encoded")) >= 3, process)
        process.kill()
        assert ended(process) == (-signal.SIGKILL, [])
    assert not (out / "encoded" / "manifest.json").exists()
    for name, data in outcome(out).items():
        assert is_temporary(Path(name).name) or data == expected[name], name
    recorded = {path.stem for path in (out / "encoded" / "records").glob("train-*")}
    finished = {
        name: stamp
        for name, stamp in stamps(out).items()
        if name.endswith(".parquet") and (name[:7] == "counts/" or Path(name).stem in recorded)
    }
    done = bpe(*run, "--resume", "--json", seconds=PATIENCE)
    assert outcome(out) == expected
    assert temporaries(out) == []
    after = stamps(out)
    assert {name: after[name] for name in finished} == finished
    assert json.loads(done.stdout)["encode"]["resumed_parts"] == len(recorded)
