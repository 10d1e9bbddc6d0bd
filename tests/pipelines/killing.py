"""Jobs in a process of their own, which is killed on the way."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence


def run_until(
    script: str, arguments: Sequence[Path | str], out: Path, pattern: str, files: int
) -> bool:
    """Run a job, and kill it when it has so many files; whether that came before its end.

    Args:
        script: Python, which is given the arguments and ``out``.
        arguments: of the script.
        out: the directory that it writes to.
        pattern: of the files.
        files: how many.
    """
    process = subprocess.Popen(
        [sys.executable, "-c", script, *map(str, arguments), str(out)],
        cwd=Path(__file__).resolve().parents[2],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
    )
    while process.poll() is None:
        if sum(1 for _ in out.glob(pattern)) >= files:
            process.send_signal(signal.SIGKILL)
            process.communicate()
            return process.returncode == -signal.SIGKILL
        time.sleep(0.002)
    _, errors = process.communicate()
    assert process.returncode == 0, errors.decode()
    return False
