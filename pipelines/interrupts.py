"""The first Ctrl-C (SIGINT) or SIGTERM winds a job down; a second one acts at once, as ever.

In a process of its own, ``bpe`` does not wait for ever until a job has wound down (`end_soon`).
"""

from __future__ import annotations

import contextlib
import os
import signal
import threading
import time
from typing import TYPE_CHECKING, Any

from pipelines.errors import Interrupted

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

NAMES: dict[int, str] = {signal.SIGINT: "interrupted", signal.SIGTERM: "terminated"}
GRACE = 1.5  # seconds that a job has to wind down
_patient = 0  # blocks of `unhurried` that run now


def end_soon(end: Callable[[int], object]) -> None:
    """Call ``end`` with the number of each signal that the process outlives by `GRACE` seconds.

    It is called in a thread: the main thread handles signals only between its own steps, and a
    worker may be in a search, or in the core, for long.

    Only the main thread may call this.
    """
    reader, writer = os.pipe()
    os.set_blocking(writer, False)
    signal.set_wakeup_fd(writer, warn_on_full_buffer=False)
    threading.Thread(target=_end_late, args=(reader, end), daemon=True).start()


def _end_late(reader: int, end: Callable[[int], object]) -> None:
    while numbers := os.read(reader, 1):
        if numbers[0] in NAMES and not _patient:
            time.sleep(GRACE)
            end(numbers[0])


@contextlib.contextmanager
def unhurried() -> Iterator[None]:
    """Let a signal that comes while the block runs have the time that it needs."""
    global _patient  # noqa: PLW0603 - signals are those of the process
    _patient += 1
    try:
        yield
    finally:
        _patient -= 1


class Interrupts:
    """The signals of a job.

    Attributes:
        first: the signal that came first; None where none has come.
    """

    def __init__(self, act: Callable[[int], object]) -> None:
        self.first: int | None = None
        self._act = act
        self._before: dict[int, Any] = {}
        self._outer = False
        if threading.current_thread() is not threading.main_thread():
            return
        interrupt, terminate = signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGTERM)
        if callable(interrupt):  # a shell may have us ignore it
            self._before[signal.SIGINT] = interrupt
        # Else the program handles it, unless that is a loop of jobs which this is one of.
        self._outer = isinstance(getattr(terminate, "__self__", None), Interrupts)
        if terminate is signal.SIG_DFL or self._outer:
            self._before[signal.SIGTERM] = terminate

    def take(self) -> None:
        """Handle the signals, unless one has come; again, where somebody else took them."""
        if self.first is None:
            for number in self._before:
                signal.signal(number, self._come)

    def give_back(self) -> None:
        """Let the signals do what they did before."""
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def _come(self, number: int, _: object) -> None:
        self.give_back()
        self.first = number
        self._act(number)

    def error(self) -> Interrupted:
        """The error that says which signal came first."""
        number = self.first or signal.SIGINT
        return Interrupted(NAMES[number], exit_status=128 + number)

    def raise_first(self) -> None:
        """Do what the first signal would have done; nothing where none has come.

        Raises:
            KeyboardInterrupt: it was SIGINT, and nobody handles that otherwise.
            Interrupted: it was SIGTERM.
        """
        if self.first == signal.SIGINT and not self._outer:
            self._before[signal.SIGINT](signal.SIGINT, None)
        elif self.first is not None:
            raise self.error()


@contextlib.contextmanager
def interrupts(act: Callable[[int], object]) -> Iterator[Interrupts]:
    """Call ``act`` with the number of the first SIGINT or SIGTERM that comes while the block runs.

    Only where the main thread runs the block; elsewhere signals are left alone.
    """
    taken = Interrupts(act)
    taken.take()
    try:
        yield taken
    finally:
        taken.give_back()
