"""``bpe`` as a process that is disturbed while it runs, and always taken down."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import time
from typing import TYPE_CHECKING

from tests.cli.process import BPE, environment
from tests.pipelines.corpora import tree

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

PATIENCE = 600.0  # seconds: each call to a store takes its time where the machine is busy


@contextlib.contextmanager
def running(
    *arguments: str | Path,
    cwd: Path | None = None,
    inside: tuple[str, ...] = (),
    program: list[str] = BPE,
    log: Path | None = None,
) -> Iterator[subprocess.Popen[str]]:
    """Start ``bpe``; it and its workers go when the block ends.

    Args:
        arguments: after ``bpe``.
        cwd: where it runs.
        inside: a command that runs it, in a place of its own.
        program: the beginning of its command line.
        log: the file of its stderr; None for a pipe.
    """
    with contextlib.ExitStack() as held:
        errors = held.enter_context(log.open("w")) if log is not None else subprocess.PIPE
        process = subprocess.Popen(
            [*inside, *program, *arguments],
            cwd=cwd,
            env=environment(),
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
            start_new_session=True,
        )
        try:
            yield process
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)  # its own group: nobody else's processes
            process.communicate()


def until(condition: Callable[[], object], process: subprocess.Popen[str]) -> None:
    """Wait for ``condition``, as long as the process may still bring it about."""
    end = time.monotonic() + PATIENCE
    while not condition():
        assert process.poll() is None, f"it ended before: {process.communicate()}"
        assert time.monotonic() < end, "it never came about"
        time.sleep(0.005)


def ended(process: subprocess.Popen[str]) -> tuple[int, list[str]]:
    """Wait for the end: the exit status, and the lines of stderr that are errors of ours."""
    _, errors = process.communicate(timeout=PATIENCE)
    assert "Traceback" not in errors, errors
    lines = [line for line in errors.splitlines() if line.startswith("bpe: error:")]
    return process.returncode, lines


def outcome(directory: Path) -> dict[str, bytes]:
    """The `tree` without records, which go when a job is complete."""
    return {name: data for name, data in tree(directory).items() if "/records/" not in f"/{name}"}


def stamps(directory: Path) -> dict[str, tuple[int, int]]:
    """The inode and the time of the last write of all files below ``directory``."""
    found = {}
    for path in directory.rglob("*"):
        with contextlib.suppress(FileNotFoundError):  # a worker that outlives its job by a moment
            at = path.stat()
            found[str(path.relative_to(directory))] = (at.st_ino, at.st_mtime_ns)
    return found


def temporaries(directory: Path) -> list[str]:
    """The half-written files below ``directory``."""
    return [path.name for path in directory.rglob(".*.tmp")]
