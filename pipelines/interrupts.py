"""Wind a job down at the first Ctrl-C (SIGINT) or SIGTERM; a second signal acts at once.

The command ``bpe`` gives a job a limited time to wind down (`end_soon`).
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

    from typing_extensions import Self

NAMES: dict[int, str] = {signal.SIGINT: "interrupted", signal.SIGTERM: "terminated"}
GRACE = 1.5  # seconds that a job has to wind down
_patient = 0  # blocks of `unhurried` that run now


def end_soon(end: Callable[[int], object]) -> None:
    """Call ``end`` with the number of each signal that the process outlives by `GRACE` seconds.

    A thread calls ``end``: the main thread handles signals only between its own steps, and a worker
    may be in a search, or in the core, for long.

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
    """Suspend the time limit of `end_soon` for signals that come while the block runs."""
    global _patient  # noqa: PLW0603 - signals are those of the process
    _patient += 1
    try:
        yield
    finally:
        _patient -= 1


class Interrupts:
    """Call ``act`` with the number of the first SIGINT or SIGTERM that comes while a block runs.

    Signals are handled only if the main thread runs the block.

    Attributes:
        first: the signal that came first; None if no signal has come.
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

    def __enter__(self) -> Self:
        self.take()
        return self

    def __exit__(self, *_: object) -> None:
        self.give_back()

    def take(self) -> None:
        """Handle the signals, unless one has come; replace handlers that others set since."""
        if self.first is None:
            for number in self._before:
                signal.signal(number, self._come)

    def give_back(self) -> None:
        """Restore the handlers that the signals had before."""
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def _come(self, number: int, _: object) -> None:
        self.give_back()
        self.first = number
        self._act(number)

    def error(self, more: str = "") -> Interrupted:
        """Return the error that names the first signal, and says ``more``."""
        number = self.first or signal.SIGINT
        return Interrupted(NAMES[number] + more, exit_status=128 + number)

    def raise_first(self) -> None:
        """Act on the first signal; do nothing if no signal has come.

        Raises:
            KeyboardInterrupt: the signal was SIGINT, with Python's own handler before.
            Interrupted: the signal was SIGTERM, or came inside a loop of jobs.
        """
        if self.first == signal.SIGINT and not self._outer:
            self._before[signal.SIGINT](signal.SIGINT, None)
        elif self.first is not None:
            raise self.error()
