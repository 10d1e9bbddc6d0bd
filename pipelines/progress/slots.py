"""Collect the work done on each part of a step by the workers of this process.

A slot holds totals, not increments, so a part that is done twice counts once. A worker of another
process finds no slots, and its writer does nothing: progress never decides whether a job succeeds.
"""

from __future__ import annotations

import uuid
from typing import final

# Documents, bytes of input, of these bytes of an earlier run; steps done and to do, of other work.
_NOTHING = (0, 0, 0, 0, 0)
_SLOTS: dict[str, dict[int, tuple[int, ...]]] = {}  # of each step that is watched, by part


def open_slots() -> str:
    """Make slots for the parts of a step; return the name by which workers find the slots."""
    name = uuid.uuid4().hex
    _SLOTS[name] = {}
    return name


def add_slots(name: str) -> tuple[int, ...]:
    """Add up the slots of a step, in the order of their fields."""
    return tuple(map(sum, zip(_NOTHING, *list(_SLOTS[name].values()), strict=True)))


def close_slots(name: str) -> None:
    """Forget the slots of a step; later updates have no effect."""
    del _SLOTS[name]


@final
class SlotWriter:
    """Writer of the work done on one part, used inside a worker.

    Args:
        slots: `StageProgress.slots`; None, or those of another process, makes every call a no-op.
        part: the number of the part.
    """

    def __init__(self, slots: str | None, part: int) -> None:
        self._slots = _SLOTS.get(slots or "")
        self._part = part

    def update(self, *, documents: int, bytes: int) -> None:  # noqa: A002 - the unit is the name
        """Set the work done on the part so far: documents, and bytes of input as stored."""
        self._write(documents, bytes, 0, 0, 0)

    def keep(self, *, documents: int, bytes: int) -> None:  # noqa: A002
        """Set the work that an earlier run did on the part, which does not count for the speed."""
        self._write(documents, bytes, bytes, 0, 0)

    def advance(self, done: int, total: int) -> None:
        """Set the steps done and the total of work that is not measured in bytes."""
        self._write(0, 0, 0, done, total)

    def _write(self, *values: int) -> None:
        if self._slots is not None:
            self._slots[self._part] = values
