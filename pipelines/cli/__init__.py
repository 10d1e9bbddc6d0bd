"""The command line ``bpe``: the entry point."""

from __future__ import annotations

import atexit
import ctypes
import gc
import os
import sys
from contextlib import suppress
from typing import TYPE_CHECKING, NoReturn

from pipelines.cli.loading import end, end_interrupted, on_interrupt
from pipelines.interrupts import end_soon

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["main", "program"]


def program() -> NoReturn:
    """Run ``bpe`` as a process of its own, and end it."""
    gc.disable()  # until the modules of a job are loaded, see `pipelines.cli.loading.loading`
    statuses: list[int] = []
    # The first that is registered is called last: other modules have cleaned up by then.
    atexit.register(_end_at_once, statuses)
    # NumPy's BLAS begins a thread for each core when it is loaded, and nothing here multiplies.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    _use_one_heap()
    end_soon(lambda number: end_interrupted(number) if not statuses else os._exit(statuses[0]))
    statuses.append(main())
    sys.exit(statuses[0])


def _use_one_heap() -> None:
    """Let all threads, and Arrow, allocate from one heap, which gives back what nobody needs.

    glibc otherwise begins a heap for each thread and keeps what was freed in each (15 to 40 % of
    the peak of a job); Arrow's own allocator keeps a share of its own (20 to 25 %). Our threads
    allocate in large blocks: they do not wait for each other.
    """
    if sys.platform == "linux":
        os.environ.setdefault("ARROW_DEFAULT_MEMORY_POOL", "system")  # read when Arrow is loaded
        if "MALLOC_ARENA_MAX" not in os.environ:
            arena_max = -8  # M_ARENA_MAX of malloc.h
            with suppress(OSError, AttributeError):  # another C library has no such thing
                ctypes.CDLL(None).mallopt(arena_max, 1)


def _end_at_once(statuses: list[int]) -> None:
    """End the process without taking its modules apart, which takes 0.2 s once Beam is loaded."""
    if not statuses:
        return  # an exception ends it, and its status is not known here
    with suppress(OSError, ValueError):  # Python flushes again, and says what is wrong
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(statuses[0])


def main(arguments: Sequence[str] | None = None) -> int:
    """Run ``bpe`` with ``arguments`` (those of the process by default).

    Returns:
        The exit status.
    """
    with on_interrupt(end):
        from pipelines.cli.commands import main as run
    return run(arguments)
