"""How far a job is: documents, bytes, speed and time left, on a stream such as stderr.

Workers (threads or processes of this machine) write what they have done of each part into a
small file of slots; the driver adds the slots up. A slot holds totals, not increments, so a part
that is done twice counts once. Where the file is not there (a worker on another machine), a
writer does nothing: progress never decides whether a job succeeds.
"""

from __future__ import annotations

import contextlib
import os
import struct
import tempfile
import threading
import time
from abc import ABC, abstractmethod
from dataclasses import dataclass
from io import FileIO
from pathlib import Path
from typing import TYPE_CHECKING, TextIO, final

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import TracebackType

_SLOT = struct.Struct("=qqq")  # documents, bytes of input, of these bytes of an earlier run
LINE_SECONDS = 10.0  # between two lines where there is no terminal
BAR_SECONDS = 0.25  # between two drawings of the bar


def size_text(size: float) -> str:
    """``size`` bytes as text, in units of 1000.

    >>> size_text(999), size_text(1_234_567), size_text(123_456_789)
    ('999 bytes', '1.23 MB', '123 MB')
    """
    if size < 9_999.5:
        return many(round(size), "byte")
    unit, value = next(
        (unit, size / scale)
        for unit, scale in (("GB", 1e9), ("MB", 1e6), ("kB", 1e3))
        if size >= scale * (10 if unit == "GB" else 0.9995) or unit == "kB"
    )
    digits = 0 if value >= 99.95 else 1 if value >= 9.995 else 2
    return f"{value:,.{digits}f} {unit}"


def many(number: int, noun: str) -> str:
    """A number of things.

    >>> many(1, "file"), many(1200, "file")
    ('1 file', '1,200 files')
    """
    return f"{number:,} {noun}" + ("" if number == 1 else "s")


def duration(seconds: float) -> str:
    """``seconds`` as text.

    >>> duration(0.51), duration(75), duration(7384)
    ('0.5 s', '1 min 15 s', '2 h 3 min')
    """
    if seconds < 10:
        return f"{seconds:.1f} s"
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60} s"
    return f"{whole // 3600} h {whole % 3600 // 60} min"


@final
class SlotWriter:
    """Tells the driver how much of one part is done; used inside a worker.

    Args:
        path: ``Stage.counters_path``; None, or a file that is not there, makes every call a no-op.
        part: the number of the part, below the number given to ``Stage.set_slots``.
    """

    def __init__(self, path: str | None, part: int) -> None:
        self._offset = part * _SLOT.size
        self._file: FileIO | None = None
        if path is not None:
            with contextlib.suppress(OSError):
                # Opened once and kept: a part reports after each block.
                self._file = FileIO(path, "r+")

    def update(self, *, documents: int, bytes: int) -> None:  # noqa: A002 - the unit is the name
        """Set what is done of the part so far: documents, and bytes of input as stored."""
        self._write(documents, bytes, 0)

    def keep(self, *, documents: int, bytes: int) -> None:  # noqa: A002
        """Set what an earlier run did of the part: it is done, but says nothing about speed."""
        self._write(documents, bytes, bytes)

    def _write(self, *values: int) -> None:
        if self._file is None:
            return
        try:
            self._file.seek(self._offset)
            self._file.write(_SLOT.pack(*values))
        except OSError:
            self.close()

    def close(self) -> None:
        """Close the file of slots; later updates do nothing."""
        if self._file is not None:
            self._file.close()
            self._file = None

    def __enter__(self) -> SlotWriter:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()


class Stage:
    """One step of a job whose progress nobody watches; ``LiveStage`` is the one that is shown.

    Attributes:
        counters_path: the file for ``SlotWriter`` (None: nobody watches); set by ``set_slots``.
    """

    counters_path: str | None = None

    def set_slots(self, parts: int) -> None:
        """Make room for ``parts`` parts, numbered from 0."""

    def advance(self, done: int, total: int) -> None:
        """Set the progress of a step that is not measured in bytes."""

    def observe(
        self,
        *,
        state: str,
        documents: int = 0,
        bytes: int = 0,  # noqa: A002 - the unit is the name
        kept_bytes: int = 0,
    ) -> None:
        """Set what a runner elsewhere says: its state, and its counters where it has them."""

    def ended(self, why: str) -> None:
        """Say why the step ended, where it need not reach its total."""


class Progress(ABC):
    """Where a job says how far it is."""

    @abstractmethod
    def stage(
        self, name: str, total_bytes: int | None, *, unit: str = "merges"
    ) -> contextlib.AbstractContextManager[Stage]:
        """Enter a step of the job.

        Args:
            name: of the step, such as ``count``.
            total_bytes: the size of its input as stored; None where that is not the measure.
            unit: what ``Stage.advance`` counts.
        """

    @abstractmethod
    def log(self, message: str) -> None:
        """Say one thing, such as the plan of a step."""


class NoProgress(Progress):
    """Says nothing; for libraries and tests."""

    @contextlib.contextmanager
    def stage(
        self,
        name: str,  # noqa: ARG002 - the interface
        total_bytes: int | None,  # noqa: ARG002
        *,
        unit: str = "merges",  # noqa: ARG002
    ) -> Iterator[Stage]:
        """Enter a step that is not shown."""
        yield Stage()

    def log(self, message: str) -> None:
        """Drop the message."""


@dataclass(frozen=True, kw_only=True)
class Snapshot:
    """How far a step is at one moment; ``seconds`` since it began, sizes in bytes.

    ``state`` is what a runner elsewhere calls it, which is all there may be to say.
    """

    seconds: float
    documents: int = 0
    bytes: int = 0
    kept_bytes: int = 0
    total_bytes: int | None = None
    done: int = 0
    total: int = 0
    unit: str = "merges"
    why: str = ""
    state: str = ""

    @property
    def _unmeasured(self) -> bool:
        """Whether only a runner knows how far the step is."""
        return bool(self.state) and not (self.bytes or self.documents or self.done)

    @property
    def fraction(self) -> float | None:
        """The share that is done, 0 to 1; None where the end is not known."""
        if self.total:
            return min(1.0, self.done / self.total)
        if self.total_bytes:
            return min(1.0, self.bytes / self.total_bytes)
        return None

    @property
    def speed(self) -> float:
        """Bytes a second of this run."""
        return (self.bytes - self.kept_bytes) / max(self.seconds, 1e-9)

    @property
    def seconds_left(self) -> float | None:
        """An estimate from the speed so far; None before there is one."""
        if self.total:
            left, rate = self.total - self.done, self.done / max(self.seconds, 1e-9)
        elif self.total_bytes:
            left, rate = self.total_bytes - self.bytes, self.speed
        else:
            return None
        return max(0.0, left / rate) if rate > 0 else None

    def measures(self) -> str:
        """Counts and speed, as one phrase."""
        if self.why:
            return f"{self.done:,} {self.unit} of {self.total:,} at most: {self.why}"
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
        return ", ".join(parts)

    def running(self) -> str:
        """The step under way, as one phrase."""
        if self._unmeasured:
            return f"{self.state.lower()} for {duration(self.seconds)}"
        share = "" if self.fraction is None else f"{self.fraction:.0%}: "
        left = "" if self.seconds_left is None else f", {duration(self.seconds_left)} left"
        return f"{share}{self.measures()}{left}" or "begun"


class LiveStage(Stage):
    """A step that is shown; made by a ``Progress``."""

    def __init__(self, name: str, total_bytes: int | None, *, unit: str) -> None:
        self.name = name
        self._total_bytes = total_bytes
        self._unit = unit
        self._began = time.monotonic()
        self._advanced = (0, 0)
        self._observed = (0, 0, 0)
        self._state = ""
        self._why = ""

    def set_slots(self, parts: int) -> None:
        """Make the file of slots; without room for one, the step goes on unmeasured."""
        self.close()
        with contextlib.suppress(OSError):
            handle, path = tempfile.mkstemp(prefix="bpe-progress-")
            self.counters_path = path
            try:
                os.truncate(handle, parts * _SLOT.size)
            finally:
                os.close(handle)

    def advance(self, done: int, total: int) -> None:
        """Set the progress of a step that is not measured in bytes."""
        self._advanced = (done, total)

    def observe(
        self,
        *,
        state: str,
        documents: int = 0,
        bytes: int = 0,  # noqa: A002 - the unit is the name
        kept_bytes: int = 0,
    ) -> None:
        """Set what a runner elsewhere says; what workers of this machine tell counts too."""
        self._state = state or self._state
        self._observed = (documents, bytes, kept_bytes)

    def ended(self, why: str) -> None:
        """Say why the step ended, where it need not reach its total."""
        self._why = why

    def snapshot(self) -> Snapshot:
        """Add the slots up."""
        documents = size = kept = 0
        if self.counters_path is not None:
            with contextlib.suppress(OSError):
                data = Path(self.counters_path).read_bytes()
                whole = len(data) - len(data) % _SLOT.size
                for slot in _SLOT.iter_unpack(data[:whole]):
                    documents += slot[0]
                    size += slot[1]
                    kept += slot[2]
        done, total = self._advanced
        if self._observed[1] > size:  # two views of the same work: the one that is ahead
            documents, size, kept = self._observed
        return Snapshot(
            seconds=time.monotonic() - self._began,
            documents=documents,
            bytes=size,
            kept_bytes=kept,
            total_bytes=self._total_bytes,
            done=done,
            total=total,
            unit=self._unit,
            why=self._why,
            state=self._state,
        )

    def close(self) -> None:
        """Remove the file of slots."""
        if self.counters_path is not None:
            Path(self.counters_path).unlink(missing_ok=True)
            self.counters_path = None


class Watched(Progress):
    """Looks at the step under way from a thread of its own, and says how each step ended."""

    interval: float

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def log(self, message: str) -> None:
        """Write one line."""
        with contextlib.suppress(OSError):  # whoever read the stream may be gone
            self._stream.write(f"bpe: {message}\n")
            self._stream.flush()

    @contextlib.contextmanager
    def stage(
        self, name: str, total_bytes: int | None, *, unit: str = "merges"
    ) -> Iterator[LiveStage]:
        """Enter a step that is shown until it ends."""
        stage = LiveStage(name, total_bytes, unit=unit)
        over = threading.Event()

        def watch() -> None:
            while not over.wait(self.interval):
                self._show(stage, stage.snapshot())

        watcher = threading.Thread(target=watch, name=f"progress-{name}", daemon=True)
        word = "stopped"
        self._begin(stage)
        watcher.start()
        try:
            yield stage
            word = "done"
        finally:
            over.set()
            watcher.join()
            last = stage.snapshot()
            stage.close()
            self._end()
            self._ended(stage, last, word)

    def _begin(self, stage: LiveStage) -> None:
        """Get ready to show a step."""

    def _end(self) -> None:
        """Take away what was drawn."""

    def _ended(self, stage: LiveStage, last: Snapshot, word: str) -> None:
        """Say how a step ended: ``done`` or ``stopped``."""
        what = [f"{word} in {duration(last.seconds)}", last.measures()]
        self.log(f"{stage.name}: " + ": ".join(filter(None, what)))

    @abstractmethod
    def _show(self, stage: LiveStage, now: Snapshot) -> None: ...


class LineProgress(Watched):
    """A line every ten seconds: for log files and pipes."""

    def __init__(self, stream: TextIO, *, interval: float = LINE_SECONDS) -> None:
        super().__init__(stream)
        self.interval = interval

    def _show(self, stage: LiveStage, now: Snapshot) -> None:
        self.log(f"{stage.name}: {now.running()}")


class BarProgress(Watched):
    """A bar that is drawn in place: for terminals."""

    interval = BAR_SECONDS

    def __init__(self, stream: TextIO) -> None:
        super().__init__(stream)
        # Imported where it is used: a tenth of a second that `bpe --help` does not pay.
        from rich.console import Console

        self._console = Console(file=stream)

    def _begin(self, stage: LiveStage) -> None:
        from rich.progress import BarColumn, TextColumn
        from rich.progress import Progress as Bar

        self._bar = Bar(
            TextColumn("{task.description}"),
            BarColumn(bar_width=24),
            TextColumn("{task.fields[text]}"),
            console=self._console,
            transient=True,
            auto_refresh=False,
            redirect_stdout=False,  # results go where they belong
        )
        self._task = self._bar.add_task(stage.name, total=None, text="")
        self._bar.start()
        self._show(stage, stage.snapshot())

    def _show(self, stage: LiveStage, now: Snapshot) -> None:  # noqa: ARG002 - the interface
        share = now.fraction
        self._bar.update(
            self._task,
            total=None if share is None else 1.0,
            completed=share or 0.0,
            text=now.running(),
            refresh=True,
        )

    def _end(self) -> None:
        self._bar.stop()


def progress_on(stream: TextIO) -> Progress:
    """A bar where ``stream`` is a terminal that can draw one, else lines."""
    if stream.isatty() and os.environ.get("TERM", "") not in ("", "dumb"):
        return BarProgress(stream)
    return LineProgress(stream)
