"""Runs ``bpe`` as users do.

``BPE_FRESH=1`` starts a process for each command; else most run in the process of the test, which
has imported Beam, and one worker does a job: two cost three times as much.
"""

from __future__ import annotations

import contextlib
import io
import os
import pty
import subprocess
import sys
from pathlib import Path
from typing import IO, Any
from unittest.mock import patch

from pipelines.cli import main
from tests.shared_data import LONG

ROOT = Path(__file__).resolve().parents[2]
BPE = [sys.executable, "-m", "pipelines.cli"]
FRESH = LONG or bool(os.environ.get("BPE_FRESH"))


def environment(**changes: str) -> dict[str, str]:
    """That of this process, with the package to be found from any folder."""
    known = {name: value for name, value in os.environ.items() if name != "BPE_DEBUG"}
    path = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH", "")]))
    return {**known, "PYTHONPATH": path, "COLUMNS": "100", **changes}


def execute(
    *command: str | Path | bytes,
    cwd: Path | None = None,
    stdin: str = "",
    stdout: int | IO[bytes] = subprocess.PIPE,
    status: int | None = 0,
    seconds: float = 120,
    **env: str,
) -> subprocess.CompletedProcess[str]:
    """Run a program and check its exit status (``status=None``: any); give up after ``seconds``."""
    done = subprocess.run(
        command,
        cwd=cwd,
        input=stdin,
        stdout=stdout,
        stderr=subprocess.PIPE,
        text=True,
        encoding="utf-8",
        env=environment(**env),
        timeout=seconds,
        check=False,
    )
    if status is not None:
        assert done.returncode == status, f"exit {done.returncode}\n{done.stdout}\n{done.stderr}"
    return done


def bpe(
    *arguments: str | Path | bytes,
    cwd: Path | None = None,
    status: int | None = 0,
    inside: tuple[str, ...] = (),
    **how: Any,
) -> subprocess.CompletedProcess[str]:
    """Run ``bpe`` as `execute` does; in this process, on one core, unless its environment differs.

    ``inside`` is a command that runs another one, in a place of its own.
    """
    if FRESH or inside or how.keys() - {"stdin", "seconds"}:
        return execute(*inside, *BPE, *arguments, cwd=cwd, status=status, **how)
    words, folder = [os.fsdecode(one) for one in arguments], Path.cwd()
    written = io.BytesIO(), io.BytesIO()
    out, err = (io.TextIOWrapper(one, "utf-8", write_through=True) for one in written)
    os.chdir(cwd or folder)
    try:
        with (
            patch.dict(os.environ, COLUMNS="100", BPE_DEBUG=""),
            patch("os.sched_getaffinity", return_value={0}, create=True),
            patch("sys.stdin", io.StringIO(how.get("stdin", ""))),
            contextlib.redirect_stdout(out),
            contextlib.redirect_stderr(err),
        ):
            done = main(words)
    finally:
        os.chdir(folder)
    stdout, stderr = (one.getvalue().decode() for one in written)
    if status is not None:
        assert done == status, f"exit {done}\n{stdout}\n{stderr}"
    return subprocess.CompletedProcess(words, done, stdout, stderr)


def refused(
    message: str, *arguments: str | Path, cwd: Path, status: tuple[int, ...] = (1, 2)
) -> None:
    """Run ``bpe``, which must say why it fails, print nothing else, and make no file in ``cwd``."""
    before = set(cwd.rglob("*"))
    done = bpe(*arguments, cwd=cwd, status=None)
    assert done.returncode in status, done.stdout
    assert message in " ".join(done.stderr.split())
    assert done.stderr.count("bpe: error: ") == 1
    assert "Traceback" not in done.stderr
    assert done.stdout == ""
    assert set(cwd.rglob("*")) == before


def on_a_terminal(
    *arguments: str | Path, cwd: Path | None = None, stdout: IO[bytes] | None = None, **env: str
) -> str:
    """The output of ``bpe`` on a terminal, which is its stdout too unless that is a file."""
    master, slave = pty.openpty()
    process = subprocess.Popen(
        [*BPE, *arguments],
        cwd=cwd,
        env=environment(**env),
        stdout=stdout or slave,
        stderr=slave,
    )
    os.close(slave)
    drawn = b""
    try:
        while chunk := os.read(master, 65536):
            drawn += chunk
    except OSError:  # Linux says so when the other end is closed
        pass
    os.close(master)
    assert process.wait(timeout=120) == 0
    return drawn.decode().replace("\r\n", "\n")
