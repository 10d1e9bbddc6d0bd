"""Workers and whole jobs that are killed: one error, no half file, the same bytes after."""

from __future__ import annotations

import os
import signal
import sys
from typing import TYPE_CHECKING

import pytest

from tests.cli.process import bpe
from tests.faults.running import PROCESSES, ended, outcome, running, temporaries, until, workers_of

if TYPE_CHECKING:
    from pathlib import Path

    from tests.faults.conftest import Undisturbed

linux = pytest.mark.skipif(sys.platform != "linux", reason="worker processes are found in /proc")


def parts(directory: Path) -> list[Path]:
    return list(directory.rglob("part-*.parquet"))


def check_resumed(undisturbed: Undisturbed, name: str, out: Path) -> None:
    """No half file was left, and ``--resume`` makes what an undisturbed job makes."""
    expected = undisturbed.made(name)
    for path in parts(out):  # under a final name, complete
        assert path.read_bytes() == expected[str(path.relative_to(out))]
    bpe(*undisturbed.command(name, out, "--resume"))
    assert outcome(out) == expected
    assert temporaries(out) == []


def kill_worker(undisturbed: Undisturbed, name: str, out: Path, after: int) -> None:
    """Kill a worker once ``after`` parts are there (0: once it runs)."""
    with running(*undisturbed.command(name, out, *PROCESSES)) as process:
        until(lambda: len(workers_of(process)) == 2, process)
        until(lambda: len(parts(out)) >= after, process)
        os.kill(workers_of(process)[0], signal.SIGKILL)
        status, errors = ended(process)
    (error,) = errors
    assert status == 1
    assert "a worker process was killed by signal 9 (SIGKILL)" in error
    assert "fewer --workers" in error
    assert "--resume" in error
    assert not (out / "manifest.json").exists()
    check_resumed(undisturbed, name, out)


@linux
def test_a_killed_worker_ends_the_job_with_one_error(
    undisturbed: Undisturbed, tmp_path: Path
) -> None:
    kill_worker(undisturbed, "encode", tmp_path / "out", after=3)


@linux
@pytest.mark.long
@pytest.mark.parametrize(
    ("name", "after"), [("encode", 0), ("encode", 1), ("encode", 60), ("train", 0)]
)
def test_a_worker_killed_at_any_moment(
    undisturbed: Undisturbed, tmp_path: Path, name: str, after: int
) -> None:
    kill_worker(undisturbed, name, tmp_path / "out", after)


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM], ids=["kill", "term"])
def test_a_job_that_is_ended_is_resumed(
    undisturbed: Undisturbed, tmp_path: Path, number: signal.Signals
) -> None:
    end_at(undisturbed, "encode", tmp_path / "out", number, after=3)


@pytest.mark.long
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
@pytest.mark.parametrize("more", [(), PROCESSES], ids=["threads", "processes"])
@pytest.mark.parametrize(("name", "after"), [("encode", 0), ("encode", 60), ("train", 0)])
def test_a_job_ended_at_any_moment(
    undisturbed: Undisturbed,
    tmp_path: Path,
    number: signal.Signals,
    more: tuple[str, ...],
    name: str,
    after: int,
) -> None:
    end_at(undisturbed, name, tmp_path / "out", number, *more, after=after)


def end_at(
    undisturbed: Undisturbed,
    name: str,
    out: Path,
    number: signal.Signals,
    *more: str,
    after: int,
) -> None:
    with running(*undisturbed.command(name, out, *more)) as process:
        until((out / ".plan.json").exists, process)
        until(lambda: len(parts(out)) >= after, process)
        process.send_signal(number)
        status, errors = ended(process)
    if number == signal.SIGKILL or (number == signal.SIGTERM and after == 0 and status < 0):
        assert (status, errors) == (-number, [])  # before or between jobs, SIGTERM ends it at once
    else:
        said = {signal.SIGINT: "interrupted", signal.SIGTERM: "terminated"}[number]
        assert (status, errors) == (128 + number, [f"bpe: error: {said}"])
        assert temporaries(out) == []
    assert not (out / "manifest.json").exists()
    check_resumed(undisturbed, name, out)
