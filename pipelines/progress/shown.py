"""Show the progress of a job on a stream such as stderr: as lines, as a bar, or as JSON."""

from __future__ import annotations

import contextlib
import json
import logging
import os
import threading
from datetime import datetime, timezone
from typing import TYPE_CHECKING, Any, TextIO

from pipelines.progress.steps import Progress, Snapshot, StageProgress
from pipelines.progress.text import duration

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rich.progress import Progress as Bar

LINE_SECONDS = 10.0  # between two lines where there is no terminal
BAR_SECONDS = 0.25  # between two drawings of the bar


class LineProgress(Progress):
    """Progress as a line every ten seconds and a line at the end of a step, for files and pipes.

    Args:
        stream: the stream to write to.
        interval: seconds between two lines of a step, written by a thread.
    """

    def __init__(self, stream: TextIO, *, interval: float = LINE_SECONDS) -> None:
        self._stream = stream
        self.interval = interval

    def log(self, message: str) -> None:
        """Write one line."""
        self._write(f"bpe: {message}\n")

    @contextlib.contextmanager
    def stage(
        self, name: str, total_bytes: int | None, *, unit: str = "merges"
    ) -> Iterator[StageProgress]:
        """Enter a step that is shown until it ends."""
        stage = StageProgress(name, total_bytes, unit=unit, is_watched=True)
        over = threading.Event()

        def watch() -> None:
            while not over.wait(self.interval):
                self._tell(stage, stage.snapshot(), "running")

        watcher = threading.Thread(target=watch, name=f"progress-{name}", daemon=True)
        event = "stopped"
        self._tell(stage, stage.snapshot(), "begun")
        watcher.start()
        try:
            yield stage
            event = "done"
        finally:
            over.set()
            watcher.join()
            last = stage.snapshot()
            stage.close()
            self._tell(stage, last, event)

    def _tell(self, stage: StageProgress, now: Snapshot, event: str) -> None:
        """Show a step that has ``begun``, is ``running``, or has ended: ``done`` or ``stopped``."""
        if event == "running":
            self.log(f"{stage.name}: {now.running()}")
        elif event != "begun":
            how_far = now.at_end() if event == "done" else now.measures()
            what = [f"{event} in {duration(now.seconds)}", how_far]
            self.log(f"{stage.name}: " + ": ".join(filter(None, what)))

    def _write(self, line: str) -> None:
        with contextlib.suppress(OSError):  # whoever read the stream may be gone
            self._stream.write(line)
            self._stream.flush()


class BarProgress(LineProgress):
    """Progress as a bar drawn in place and a line at the end of a step, for terminals."""

    def __init__(self, stream: TextIO) -> None:
        super().__init__(stream, interval=BAR_SECONDS)

    def _tell(self, stage: StageProgress, now: Snapshot, event: str) -> None:
        if event == "begun":
            self._bar = _bar(self._stream)
            self._task = self._bar.add_task(stage.name, total=None, text="")
            self._bar.start()
        elif event != "running":
            self._bar.stop()
            super()._tell(stage, now, event)
            return
        share = now.fraction
        self._bar.update(
            self._task,
            total=None if share is None else 1.0,
            completed=share or 0.0,
            text=now.running(),
            refresh=True,
        )


def _bar(stream: TextIO) -> Bar:
    # Imported where it is used: a tenth of a second that `bpe --help` does not pay.
    from rich.console import Console
    from rich.progress import BarColumn, TextColumn
    from rich.progress import Progress as Bar

    return Bar(
        TextColumn("{task.description}"),
        BarColumn(bar_width=24),
        TextColumn("{task.fields[text]}"),
        console=Console(file=stream),
        transient=True,
        auto_refresh=False,
        redirect_stdout=False,  # results go where they belong
    )


class JsonProgress(LineProgress):
    """Progress as JSON lines: when a step begins, every ten seconds, and when the step ends.

    Each line has ``time`` (UTC, ISO 8601), ``level`` and ``message``; a line about a step also has
    the figures of the step. ``docs/metrics.md`` lists the fields.
    """

    def log(self, message: str) -> None:
        """Write one line."""
        self._write(json_line("INFO", message))

    def _tell(self, stage: StageProgress, now: Snapshot, event: str) -> None:
        fields: dict[str, Any] = {"stage": stage.name, "event": event}
        fields |= {"seconds": round(now.seconds, 3), "documents": now.documents}
        fields |= {"bytes": now.bytes, "total_bytes": now.total_bytes}
        fields["bytes_per_second"] = round(now.speed)
        if now.total:
            fields |= {now.unit: now.done, f"total_{now.unit}": now.total}
        left = now.seconds_left if event == "running" else None
        fields["seconds_left"] = None if left is None else round(left, 1)
        said = ": ".join(filter(None, [event, now.measures(), now.stall()]))
        self._write(json_line("INFO", f"{stage.name}: {said}", **fields))


def json_line(level: str, message: str, **fields: Any) -> str:
    """Return one line of a log, with the end of line."""
    now = datetime.now(timezone.utc).isoformat(timespec="milliseconds")
    value = {"time": now, "level": level, "message": message, **fields}
    return json.dumps(value, ensure_ascii=True, default=str) + "\n"


class JsonFormatter(logging.Formatter):
    """Formatter of records of ``logging`` as JSON lines."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the line of a record, without the end of line."""
        fields = {"logger": record.name}
        if record.exc_info:
            fields["traceback"] = self.formatException(record.exc_info)
        return json_line(record.levelname, record.getMessage(), **fields).rstrip("\n")


def draws_on(stream: TextIO) -> bool:
    """Return whether ``stream`` is a terminal that can draw."""
    return stream.isatty() and os.environ.get("TERM", "") not in ("", "dumb")


def progress_on(stream: TextIO) -> Progress:
    """Return a bar if ``stream`` is a terminal that can draw, else lines."""
    if draws_on(stream):
        return BarProgress(stream)
    return LineProgress(stream)
