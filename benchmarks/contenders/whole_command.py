"""Runs a whole command: seconds from its start to its end, or memory of it and its children."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks.contenders.memory import memory, peak_memory

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

_EVERY = 0.02  # seconds between two samples of memory


def own_python() -> str:
    """The interpreter with what the package needs, and none of the peers.

    Beam imports pandas where it is there: the peers' environment has it, that of a user need not.
    """
    own = Path(sys.prefix, "ours", "bin", "python")
    return str(own) if own.exists() else sys.executable


def measured(command: Sequence[str | Path], *, check: bool) -> dict[str, float]:
    """Run a command; ends this process with its status where it fails.

    Args:
        command: the program and its arguments; its standard output goes to standard error.
        check: whether memory is sampled, which takes time, and the time is not measured.

    Returns:
        ``seconds`` from its start to its end; or ``memory`` in bytes, the most that the process
        and all its descendants had in one of the samples, 20 ms apart (a page that several share
        counts once), or that one of them had for itself at any time.
    """
    environment = os.environ | {"HF_HUB_OFFLINE": "1"}
    began = time.perf_counter()
    process = subprocess.Popen(
        [str(word) for word in command], stdout=sys.stderr, env=environment, cwd=Path.cwd()
    )
    ended = threading.Event()
    peaks = [0]

    def watch() -> None:
        while not ended.wait(_EVERY):
            tree = list(_tree(process.pid))
            peaks.append(sum(memory(pid) for pid in tree))
            peaks.extend(peak_memory(pid) for pid in tree)

    watcher = threading.Thread(target=watch)
    if check:
        watcher.start()
    status = process.wait()
    seconds = time.perf_counter() - began
    ended.set()
    if check:
        watcher.join()
    if status:
        sys.exit(status)
    return {"memory": max(peaks)} if check else {"seconds": seconds}


def _tree(pid: int) -> Iterator[int]:
    """A process and its descendants."""
    yield pid
    try:
        for task in Path(f"/proc/{pid}/task").iterdir():
            for child in (task / "children").read_text().split():
                yield from _tree(int(child))
    except OSError:  # it has ended meanwhile
        return
