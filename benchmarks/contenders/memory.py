"""Memory of processes, as Linux tells it.

Not ``ru_maxrss``: that of a process that was started by a large one begins with what the large one
had.
"""

from __future__ import annotations

from pathlib import Path


def memory(pid: int | str = "self") -> int:
    """Bytes that a process has now, of shared pages its share; 0 if it has ended, or elsewhere."""
    return _bytes(f"/proc/{pid}/smaps_rollup", "Pss:")


def peak_memory(pid: int | str = "self") -> int:
    """Bytes that it had at most, shared pages included; 0 as above."""
    return _bytes(f"/proc/{pid}/status", "VmHWM:")


def forget_peak() -> None:
    """Let the peak of this process begin anew."""
    Path("/proc/self/clear_refs").write_text("5")


def _bytes(path: str, key: str) -> int:
    try:
        lines = Path(path).read_text().splitlines()
    except OSError:
        return 0
    return sum(int(line.split()[1]) << 10 for line in lines if line.startswith(key))
