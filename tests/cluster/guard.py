"""Runs a program, and takes it and all it started down when whoever asked for it is gone.

``python guard.py PROGRAM ARGUMENT…``: prints the program's process id, then waits for the end of
its own standard input, which comes with the end of the process that holds it, whatever that died
of. A program that ends by itself leaves its children running until then, as a machine would.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

_PR_SET_CHILD_SUBREAPER = 36


def main() -> None:
    """Run the program, and wait."""
    if sys.platform == "linux":  # what loses its parent becomes our child, and is found below us
        ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    child = subprocess.Popen(
        sys.argv[1:], stdin=subprocess.DEVNULL, stdout=sys.stderr, start_new_session=True
    )
    os.write(1, f"{child.pid}\n".encode())
    os.dup2(2, 1)  # whoever reads the number sees the end of the line
    threading.Thread(target=_reap, daemon=True).start()
    while os.read(0, 4096):
        pass
    while _kill(child.pid):
        pass


def _reap() -> None:
    """Let what ended be gone, orphans too."""
    while True:
        with contextlib.suppress(ChildProcessError):
            while os.waitpid(-1, 0):
                pass
        time.sleep(0.2)


def _kill(child: int) -> bool:
    """Kill every process below this one; whether there was any."""
    found = descendants(os.getpid()) if sys.platform == "linux" else []
    for process in found:
        with contextlib.suppress(ProcessLookupError):
            os.kill(process, signal.SIGKILL)
    if sys.platform != "linux":
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(child, signal.SIGKILL)
    time.sleep(0.02)
    return bool(found)


def descendants(ancestor: int) -> list[int]:
    """The processes below one, of any generation, on Linux."""
    parents: dict[int, int] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                state, parent = (entry / "stat").read_text().rpartition(")")[2].split()[:2]
            except (OSError, ValueError):
                continue  # gone by now
            if state != "Z":
                parents[int(entry.name)] = int(parent)
    found = [ancestor]
    for process in found:
        found.extend(child for child, parent in parents.items() if parent == process)
    return found[1:]


if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for whoever started us
    main()
