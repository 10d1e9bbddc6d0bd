"""Facts that the core of ``make sanitize`` and ``make fuzz`` adds to its results."""

from __future__ import annotations

import ctypes
import gc
import inspect
import sys
import traceback
from bisect import bisect_left
from typing import Literal

from bpe import _native

_PLACES = 1 << 16
# How often a branch was taken, as one bit of eight, as AFL and libFuzzer tell "once" from "often".
_LARGEST = (1, 2, 3, 7, 15, 31, 127)  # of each but the last
_BUCKETS = bytes([0, *(1 << bisect_left(_LARGEST, times) for times in range(1, 256))])


class Coverage:
    """The branches of the core that were taken, if it was built to count them."""

    def __init__(self) -> None:
        self._passed: ctypes.Array[ctypes.c_uint8] | None = None
        core = ctypes.PyDLL(_native.__file__)
        if hasattr(core, "bpe_coverage"):
            core.bpe_coverage.restype = ctypes.POINTER(ctypes.c_uint8 * _PLACES)
            self._passed = core.bpe_coverage().contents

    def __bool__(self) -> bool:
        return self._passed is not None

    def begin(self) -> None:
        """Forget what was taken so far."""
        if self._passed is not None:
            ctypes.memset(self._passed, 0, _PLACES)

    def taken(self) -> int:
        """A set of bits: each branch with how often it was taken since, roughly."""
        if self._passed is None:
            return 0
        return int.from_bytes(bytes(self._passed).translate(_BUCKETS), "little")


def finds_leaks() -> bool:
    """Return whether LeakSanitizer is loaded and active."""
    return hasattr(ctypes.CDLL(None), "__lsan_do_recoverable_leak_check")


def leaks() -> bool:
    """Look for memory that nothing points to, and print where it came from.

    While Python runs, so that all it holds is pointed to: when it ends, it forgets much that
    modules hold for ever. Objects must come from malloc (``PYTHONMALLOC=malloc``).
    """
    gc.collect()
    sys.stderr.flush()
    # Python's own stack, which LeakSanitizer does not read, alone points to objects of its frames;
    # a warning or an exception makes some.
    frames = [*traceback.walk_stack(inspect.currentframe())]
    found = bool(ctypes.CDLL(None).__lsan_do_recoverable_leak_check())
    del frames
    return found


def leak(what: Literal["memory", "object"]) -> None:
    """Lose 400 bytes in the core, or an object of Python."""
    core = ctypes.PyDLL(_native.__file__)
    core[f"bpe_leak_{what}"]()
