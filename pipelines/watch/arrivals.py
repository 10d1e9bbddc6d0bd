"""Which of the files that arrive are complete."""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING

from pipelines import storage
from pipelines.corpus.places import MARKER

if TYPE_CHECKING:
    from collections.abc import Callable

    from pipelines.corpus.inputs import Listed
    from pipelines.settings import WatchSettings


class Arrivals:
    """Tells when files are complete; threads may share one.

    Args:
        settings: when they are.
        clock: seconds since 1970, as files have them.
    """

    def __init__(self, settings: WatchSettings, *, clock: Callable[[], float] = time.time) -> None:
        self._settings = settings
        self._clock = clock
        self._seen: dict[str, tuple[tuple[int, float], float]] = {}
        self._lock = threading.Lock()

    def is_complete(self, file: Listed) -> bool:
        """Whether nobody writes to a file any more, as far as it can be told."""
        if self._settings.complete_when == "marker":
            return storage.exists(file.path + MARKER)
        now, settle = self._clock(), self._settings.settle
        with self._lock:
            # First seen, what the file says counts, unless the clock that it is from is ahead.
            was, since = self._seen.get(file.path, (file.stamp, min(now, file.mtime)))
            since = since if was == file.stamp else now
            self._seen[file.path] = (file.stamp, since)
        return now - since >= settle

    def forget(self, path: str) -> None:
        """Drop what was seen of a file that was taken."""
        with self._lock:
            self._seen.pop(path, None)
