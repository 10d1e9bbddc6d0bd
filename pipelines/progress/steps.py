"""A step of a job, how far it is at one moment, and where a job says so."""

from __future__ import annotations

import contextlib
import time
import uuid
from dataclasses import dataclass, replace
from typing import final

from pipelines.progress.text import duration, many, size_text

# A runner elsewhere reports what it has counted every few seconds, within a bundle too.
_STALLED = 60.0
# Documents, bytes of input, of these bytes of an earlier run; steps done and to do, of other work.
_NOTHING = (0, 0, 0, 0, 0)
# Of each step that is watched, by part. A slot holds totals, not increments, so a part that is done
# twice counts once.
_SLOTS: dict[str, dict[int, tuple[int, ...]]] = {}
_TELLING = 0.02  # of the merges: the first ones say little about later ones


@dataclass(frozen=True, kw_only=True)
class Snapshot:
    """Progress of a step at one moment; ``seconds`` since it began, sizes in bytes.

    ``state`` is what a runner elsewhere calls it, which is all there may be to say; ``unchanged``
    is the number of seconds since that runner reported new work.
    """

    seconds: float
    documents: int = 0
    bytes: int = 0
    kept_bytes: int = 0
    total_bytes: int | None = None
    done: int = 0
    total: int = 0
    unit: str = "merges"
    state: str = ""
    unchanged: float = 0.0

    @property
    def is_stalled(self) -> bool:
        """True if the workers of a runner elsewhere seem to do nothing, with work left."""
        return bool(self.state) and self.unchanged >= _STALLED and self.fraction != 1.0

    @property
    def _unmeasured(self) -> bool:
        """True if only a runner knows how far the step is."""
        return bool(self.state) and not (self.bytes or self.documents or self.done)

    @property
    def fraction(self) -> float | None:
        """Return the share that is done, 0 to 1; None where the end is not known."""
        if self.total:
            return min(1.0, self.done / self.total)
        if not self.total_bytes:
            return None
        return min(1.0, self.bytes / self.total_bytes)

    @property
    def speed(self) -> float:
        """Bytes a second of this run."""
        return (self.bytes - self.kept_bytes) / max(self.seconds, 1e-9)

    @property
    def seconds_left(self) -> float | None:
        """Return an estimate from the speed so far; None before there is one."""
        if self.is_stalled or not (self.total or self.total_bytes):
            return None
        if self.total and self.done < _TELLING * self.total:
            return None  # merges begin slowly
        rate = self.done / max(self.seconds, 1e-9) if self.total else self.speed
        left = self.total - self.done if self.total else (self.total_bytes or 0) - self.bytes
        return max(0.0, left / rate) if rate > 0 else None

    def measures(self) -> str:
        """Counts and speed, as one phrase."""
        if self.total:
            return f"{self.done:,} of {self.total:,} {self.unit}"
        nothing = not self.bytes and not self.documents
        if nothing and (self.total_bytes is None or self._unmeasured):
            return ""
        size = size_text(self.bytes)
        if self.total_bytes and self.bytes < self.total_bytes:
            size += f" of {size_text(self.total_bytes)}"
        parts = [many(self.documents, "document"), f"{size} read"]
        if self.bytes > self.kept_bytes:
            parts.append(f"{size_text(self.speed)}/s")
        elif self.kept_bytes and self.bytes >= (self.total_bytes or 0):
            parts.append("all by an earlier run")
        return ", ".join(parts)

    def at_end(self) -> str:
        """Counts and speed of a step that is done, as one phrase."""
        if self.total_bytes and not (self.bytes or self.documents or self.state):
            return "all by an earlier run"
        return self.measures()

    def stall(self) -> str:
        """Return a phrase that explains why nothing moves; empty if something does."""
        if not self.is_stalled:
            return ""
        return (
            f"no progress for {duration(self.unchanged)}: if a worker was lost, the job waits for "
            "slots until you start another (docs/running.md: When something dies); the runner's "
            "page shows which tasks are scheduled"
        )

    def running(self) -> str:
        """Return the step under way, as one phrase."""
        if self._unmeasured:
            return f"{self.state.lower()} for {duration(self.seconds)}"
        share = "" if self.fraction is None else f"{self.fraction:.0%}: "
        if self.is_stalled:
            return f"{share}{self.measures()}; {self.stall()}"
        left = "" if self.seconds_left is None else f", {duration(self.seconds_left)} left"
        if self.fraction == 1.0:
            left = ", finishing"
        return f"{share}{self.measures()}{left}" or "begun"


class StageProgress:
    """One step of a job.

    Args:
        name: of the step.
        total_bytes: the size of its input as stored; None where that is not the measure.
        unit: what ``SlotWriter.advance`` counts.
        is_watched: whether anybody asks how far it is.

    Attributes:
        slots: where ``SlotWriter`` says how far each part is; None where nobody watches.
    """

    def __init__(
        self,
        name: str = "",
        total_bytes: int | None = None,
        *,
        unit: str = "merges",
        is_watched: bool = False,
    ) -> None:
        self.name = name
        self.slots = uuid.uuid4().hex if is_watched else None
        self._parts = _SLOTS.setdefault(self.slots, {}) if self.slots else {}
        self._reported = Snapshot(seconds=0.0, total_bytes=total_bytes, unit=unit)
        self._began = time.monotonic()
        self._observed = (0, 0, 0)
        self._seen = (0, 0, 0)  # at the last change, which was then:
        self._changed = self._began

    def observe(
        self,
        *,
        state: str,
        documents: int = 0,
        bytes: int = 0,  # noqa: A002 - the unit is the name
        kept_bytes: int = 0,
    ) -> None:
        """Set the state and numbers of a job on another runner, in addition to the slots here.

        Empty values change nothing.
        """
        self._reported = replace(self._reported, state=state or self._reported.state)
        if documents or bytes:
            self._observed = (documents, bytes, kept_bytes)

    def snapshot(self) -> Snapshot:
        """Add the slots up."""
        now = time.monotonic()
        sums = map(sum, zip(_NOTHING, *list(self._parts.values()), strict=True))
        documents, size, kept, done, total = sums
        # Two views of the same work: the one that is ahead.
        work = max((documents, size, kept), self._observed, key=lambda one: one[1])
        if self._seen != work:
            self._seen, self._changed = work, now
        return replace(
            self._reported,
            seconds=now - self._began,
            documents=work[0],
            bytes=work[1],
            kept_bytes=work[2],
            done=done,
            total=total,
            unchanged=now - self._changed,
        )

    def close(self) -> None:
        """Forget the slots."""
        _SLOTS.pop(self.slots or "", None)
        self._parts = {}


@final
class SlotWriter:
    """Writer of the work done on one part, used inside a worker.

    Args:
        slots: `StageProgress.slots`; None, or those of another process, makes every call a no-op:
            progress never decides whether a job succeeds.
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


class Progress:
    """Receives the progress of a job; this one says nothing."""

    def stage(
        self,
        name: str,  # noqa: ARG002 - of those that show it
        total_bytes: int | None,  # noqa: ARG002
        *,
        unit: str = "merges",  # noqa: ARG002
    ) -> contextlib.AbstractContextManager[StageProgress]:
        """Enter a step of the job.

        Args:
            name: of the step, such as ``count``.
            total_bytes: the size of its input as stored; None where that is not the measure.
            unit: what ``SlotWriter.advance`` counts.
        """
        return contextlib.nullcontext(StageProgress())

    def log(self, message: str) -> None:
        """Say one thing, such as the plan of a step."""


UNSEEN = Progress()
"""The progress of libraries and tests."""
