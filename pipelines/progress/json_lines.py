"""Progress and messages as JSON lines, for programs that read the log of a job.

Each line is an object with ``time`` (UTC, ISO 8601), ``level`` and ``message``; what tells of a
step has its figures beside them. ``docs/metrics.md`` lists the fields.
"""

from __future__ import annotations

import contextlib
import json
import logging
from datetime import datetime, timezone
from typing import TYPE_CHECKING, Any, TextIO

from pipelines.progress.shown import LINE_SECONDS, Watched

if TYPE_CHECKING:
    from pipelines.progress.live import LiveStage, Snapshot


def json_line(level: str, message: str, **fields: Any) -> str:
    """One line of a log, with the end of line."""
    now = datetime.now(timezone.utc).isoformat(timespec="milliseconds")
    value = {"time": now, "level": level, "message": message, **fields}
    return json.dumps(value, ensure_ascii=True, default=str) + "\n"


class JsonFormatter(logging.Formatter):
    """Records of ``logging`` as JSON lines."""

    def format(self, record: logging.LogRecord) -> str:
        """The line, without its end."""
        fields = {"logger": record.name}
        if record.exc_info:
            fields["traceback"] = self.formatException(record.exc_info)
        return json_line(record.levelname, record.getMessage(), **fields).rstrip("\n")


class JsonProgress(Watched):
    """A JSON object a line: when a step begins, every ten seconds, and when it ends."""

    def __init__(self, stream: TextIO, *, interval: float = LINE_SECONDS) -> None:
        super().__init__(stream)
        self.interval = interval

    def log(self, message: str) -> None:
        """Write one line."""
        self._write(json_line("INFO", message))

    def _begin(self, stage: LiveStage) -> None:
        self._tell(stage, stage.snapshot(), "begun")

    def _show(self, stage: LiveStage, now: Snapshot) -> None:
        self._tell(stage, now, "running")

    def _ended(self, stage: LiveStage, last: Snapshot, word: str) -> None:
        self._tell(stage, last, word)

    def _tell(self, stage: LiveStage, now: Snapshot, event: str) -> None:
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

    def _write(self, line: str) -> None:
        with contextlib.suppress(OSError):  # whoever read the stream may be gone
            self._stream.write(line)
            self._stream.flush()
