"""Loading modules that take long, and what Ctrl-C (SIGINT) does meanwhile and later.

`pipelines.cli.main` imports this before anything else, so it imports nothing that takes long.
"""

from __future__ import annotations

import gc
import os
import signal
import sys
import threading
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

from pipelines.interrupts import NAMES

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

INTERRUPTED = 130  # 128 + SIGINT, as shells report it


@contextmanager
def loading() -> Iterator[None]:
    """Return a context to import Beam in: logging is set up, and garbage is looked for afterwards.

    A process begins without, which takes 4 to 25 % less time. What modules are made of stays until
    the process ends, so it is not looked through later either.
    """
    from pipelines.cli.logs import set_up_logging

    set_up_logging()
    with on_interrupt(end):
        yield
    if not gc.isenabled():
        gc.freeze()
        gc.enable()


@contextmanager
def on_interrupt(act: Callable[..., None]) -> Iterator[None]:
    """Let ``act`` handle SIGINT, unless a shell has us ignore it, or a program handles it.

    With BPE_DEBUG, Python's own exception and traceback show what was interrupted.
    """
    before = signal.getsignal(signal.SIGINT)
    in_charge = threading.current_thread() is threading.main_thread()
    is_default = before in (signal.default_int_handler, interrupt_quietly)
    if not in_charge or not is_default or os.environ.get("BPE_DEBUG"):
        yield
        return
    signal.signal(signal.SIGINT, act)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def interrupt_quietly(*_: object) -> None:
    """Interrupt, and keep what Beam's threads have to say about it off stderr.

    They lose their connections one after the other, and each prints a traceback of its own, until
    the process ends.
    """
    sys.stderr = Path(os.devnull).open("w", encoding="utf-8")  # noqa: SIM115 - until the end
    raise KeyboardInterrupt


def end(*_: object) -> None:
    """End the process on SIGINT while it imports modules: nothing has been made yet.

    An exception would not do: raised inside an import, some modules swallow it, and the import
    system prints a traceback where it runs in one of its callbacks.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    end_interrupted(signal.SIGINT)


def end_interrupted(number: int) -> NoReturn:
    """Say that a signal ended the command, and end the process."""
    from pipelines.cli.logs import choose_format, log_line

    choose_format(sys.argv[1:])
    line = log_line("ERROR", NAMES[number])
    try:
        os.write(2, f"{line}\n".encode())
    finally:
        os._exit(128 + number)
