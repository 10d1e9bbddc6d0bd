"""Showing how far a job is, on a stream such as stderr: as a bar, or as lines."""

from __future__ import annotations

import contextlib
import os
import threading
from abc import abstractmethod
from typing import TYPE_CHECKING, TextIO

from pipelines.progress.live import LiveStage, Snapshot
from pipelines.progress.stage import Progress
from pipelines.progress.text import duration

if TYPE_CHECKING:
    from collections.abc import Iterator

LINE_SECONDS = 10.0  # between two lines where there is no terminal
BAR_SECONDS = 0.25  # between two drawings of the bar


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


def draws_on(stream: TextIO) -> bool:
    """Whether ``stream`` is a terminal that can draw."""
    return stream.isatty() and os.environ.get("TERM", "") not in ("", "dumb")


def progress_on(stream: TextIO) -> Progress:
    """A bar where ``stream`` is a terminal that can draw one, else lines."""
    if draws_on(stream):
        return BarProgress(stream)
    return LineProgress(stream)
