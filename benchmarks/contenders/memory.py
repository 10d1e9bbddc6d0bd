"""Memory of processes, as Linux tells it.

Not ``ru_maxrss``: that of a process that was started by a large one begins with what the large one
had.
"""

from __future__ import annotations

import mmap
from pathlib import Path


def memory(pid: int | str = "self") -> int:
    """Bytes that a process has now, of shared pages its share; 0 if it has ended, or elsewhere."""
    return _bytes(f"/proc/{pid}/smaps_rollup", "Pss:")


def peak_memory(pid: int | str = "self") -> int:
    """Bytes that it had at most, shared pages included; 0 as above."""
    return _bytes(f"/proc/{pid}/status", "VmHWM:")


def use_memory(size: int = 1 << 30) -> None:
    """Write to memory and give it back, so that what is timed next gets pages that are at hand.

    A virtual machine hands out pages slowly that none of its processes had lately: by that alone,
    one first pass over 100 MB took 0.33 s and the next 0.64 s, of ours and of others. In huge
    pages, since small ones that are given back do not become huge ones.
    """
    with mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS) as memory:
        if hasattr(mmap, "MADV_HUGEPAGE"):  # Linux
            memory.madvise(mmap.MADV_HUGEPAGE)
        memory[:: mmap.PAGESIZE] = bytes(size // mmap.PAGESIZE)


def forget_peak() -> None:
    """Let the peak of this process begin anew."""
    Path("/proc/self/clear_refs").write_text("5")


def _bytes(path: str, key: str) -> int:
    try:
        lines = Path(path).read_text().splitlines()
    except OSError:
        return 0
    return sum(int(line.split()[1]) << 10 for line in lines if line.startswith(key))
