"""Processes that keep to some of the machine's cores."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import time
from typing import IO, TYPE_CHECKING, Any

import click

from benchmarks.contenders.report import Report
from benchmarks.corpora import ROOT

if TYPE_CHECKING:
    from collections.abc import Iterator

    from benchmarks.work import Contender


class ContenderError(Exception):
    """A contender failed, or made something else than the others."""


def prepare(contender: Contender) -> None:
    """Let a process make the files that a contender needs; raises as `run_contender`."""
    _run("prepare", contender, cores=cores_there())


def run_contender(contender: Contender, *, cores: int, check: bool) -> Report:
    """Run a contender in a process of its own.

    Args:
        contender: who.
        cores: how many processors it may use.
        check: whether it says what it makes and the memory it takes, instead of the time.

    Raises:
        ContenderError: it ended with an error; the message has the end of what it printed.
    """
    output = _run("check" if check else "time", contender, cores=cores)
    return Report(**json.loads(output.splitlines()[-1]))


def _run(mode: str, contender: Contender, *, cores: int) -> str:
    with pinned(cores):
        done = subprocess.run(
            [sys.executable, "-m", "benchmarks.contenders", mode, *contender.command],
            cwd=ROOT,
            capture_output=True,
            text=True,
            check=False,
        )
    if done.returncode:
        raise ContenderError(
            f"{' '.join(contender.command)} ended with status {done.returncode}:\n"
            + done.stderr[-4000:]
        )
    return done.stdout


def run_measured(*command: str, stdout: IO[bytes] | int = subprocess.DEVNULL) -> dict[str, Any]:
    """Run a command; its time and the peak of its memory.

    Raises:
        ClickException: it fails.
    """
    began = time.perf_counter()
    process = subprocess.Popen(command, cwd=ROOT, stdout=stdout)
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if status:
        raise click.ClickException(f"{' '.join(command)} ended with {process.returncode}")
    return {
        "seconds": round(time.perf_counter() - began, 1),
        "cpu_seconds": round(usage.ru_utime + usage.ru_stime, 1),
        "peak_bytes": usage.ru_maxrss * (1 if sys.platform == "darwin" else 1024),
    }


def cores_there() -> int:
    """Processors that this process may use."""
    if sys.platform == "linux":
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


@contextlib.contextmanager
def pinned(cores: int) -> Iterator[None]:
    """Processes started inside keep to the last ``cores`` processors, where the system can do it.

    The first one also serves interrupts on most machines.
    """
    if sys.platform != "linux":
        yield
        return
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, sorted(before)[-cores:])
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)
