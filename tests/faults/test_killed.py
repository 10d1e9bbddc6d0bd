"""Workers and whole jobs that are killed: one error, no half file, the same bytes after."""

from __future__ import annotations

import json
import re
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
    from collections.abc import Callable

    from tests.faults.conftest import Undisturbed
    from tests.faults.whole import WholeJob


def parts(directory: Path) -> list[Path]:
    return list(directory.rglob("train-*.parquet"))


def check_resumed(undisturbed: Undisturbed, name: str, out: Path) -> None:
    """No half file was left, and ``--resume`` makes what an undisturbed job makes."""
    expected = undisturbed.made(name)
    for path in parts(out):  # under a final name, complete
        assert path.read_bytes() == expected[str(path.relative_to(out))]
    bpe(*undisturbed.command(name, out, "--resume"))
    assert outcome(out) == expected
    assert temporaries(out) == []


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
    end_at(undisturbed, name, tmp_path / "out", number, after=after)


def end_at(
    undisturbed: Undisturbed,
    name: str,
    out: Path,
    number: signal.Signals,
    *,
    after: int,
) -> None:
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
    check_resumed(undisturbed, name, out)


def is_counting(out: Path) -> bool:
    return (out / "counts" / ".plan.json").exists()


def is_encoding(out: Path) -> bool:
    return len(parts(out / "encoded")) >= 3


@pytest.mark.parametrize(
    "moments",
    [
        pytest.param([is_encoding], id="encoding"),
        pytest.param([is_counting, is_encoding], id="each", marks=pytest.mark.long),
    ],
)
def test_a_run_killed_in_one_step_after_another_is_resumed(
    whole: WholeJob, tmp_path: Path, moments: list[Callable[[Path], bool]]
) -> None:
    """Count, train and encode by one command: what was finished is not made again."""
    out = tmp_path / "out"
    run = whole.command(tmp_path / "job.yaml", out)
    for moment in moments:
        kill_run(run, out, moment)
    check_run(whole, run, out)


def kill_run(run: list[str | Path], out: Path, moment: Callable[[Path], bool]) -> None:
    """Go on with ``bpe run``, and kill it at a moment."""
    before = finished(out)
    with running(*run[:3], "--resume", *run[3:]) as process:
        until(lambda: moment(out), process)
        process.kill()
        assert ended(process) == (-signal.SIGKILL, [])
    assert not (out / "encoded" / "manifest.json").exists()
    assert finished(out).items() >= before.items()


def check_run(whole: WholeJob, run: list[str | Path], out: Path) -> None:
    """The parts that are there are right; ``--resume`` makes the others alone."""
    expected, before = whole.made(), finished(out)
    for name, data in outcome(out).items():
        assert is_temporary(Path(name).name) or data == expected[name], name
    done = bpe(*run, "--resume", "--json", seconds=PATIENCE)
    assert outcome(out) == expected
    assert temporaries(out) == []
    assert finished(out).items() >= before.items()
    kept = sum(name.startswith("encoded/data/train-") for name in before)
    assert json.loads(done.stdout)["encode"]["resumed_parts"] == kept


def finished(out: Path) -> dict[str, tuple[int, int]]:
    """The files of ``bpe run`` that must stay: of steps that ended, and parts with a record."""
    there = stamps(out)
    ended = {folder for folder in ("counts", "encoded") if f"{folder}/manifest.json" in there}
    recorded = {Path(name).stem for name in there if name.startswith("encoded/records/")}
    return {
        name: stamp
        for name, stamp in there.items()
        if re.search(r"/(part|train)-[0-9-]*of-[0-9]*[.]parquet$", name)
        and (name.partition("/")[0] in ended or Path(name).stem in recorded)
    }
