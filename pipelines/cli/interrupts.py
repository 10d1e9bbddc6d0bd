"""What Ctrl-C (SIGINT) does while modules are imported, and what it leaves unsaid later."""

from __future__ import annotations

import os
import signal
import sys
import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

INTERRUPTED = 130  # 128 + SIGINT, as shells report it


def is_debugged() -> bool:
    """Whether tracebacks were asked for."""
    return "--traceback" in sys.argv or bool(os.environ.get("BPE_DEBUG"))


def _end(*_: object) -> None:
    """Say that the command was interrupted, and end the process."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    from pipelines.cli.logs import choose_format, log_line

    choose_format(sys.argv[1:])
    line = log_line("ERROR", "interrupted")
    try:
        os.write(2, f"{line}\n".encode())
    finally:
        os._exit(INTERRUPTED)


@contextmanager
def ended_by_interrupts() -> Iterator[None]:
    """Let SIGINT end the process while the block imports modules: nothing has been made yet.

    An exception would not do: raised inside an import, some modules swallow it, and the import
    system prints a traceback where it runs in one of its callbacks.
    """
    before = signal.getsignal(signal.SIGINT)
    in_charge = threading.current_thread() is threading.main_thread()
    if not in_charge or not callable(before) or is_debugged():  # a shell may have us ignore it
        yield
        return
    signal.signal(signal.SIGINT, _end)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
