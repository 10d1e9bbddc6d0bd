"""What the process that started a watch does beside it: tell, compact, measure, and end it."""

from __future__ import annotations

import json
import logging
import time
from abc import ABC, abstractmethod
from typing import TYPE_CHECKING

from typing_extensions import override

from pipelines import storage
from pipelines.errors import RecordError
from pipelines.output import MANIFEST
from pipelines.progress import many, size_text
from pipelines.reading import too_many
from pipelines.storage import join
from pipelines.watch import counting, log
from pipelines.watch.drift import Measured

if TYPE_CHECKING:
    import threading
    from collections.abc import Callable, Mapping

    from pipelines.counting import CountJob
    from pipelines.progress import Progress
    from pipelines.watch.arrivals import Arrivals
    from pipelines.watch.drift import Series
    from pipelines.watch.log import Entry
    from pipelines.watch.settings import WatchSettings

_LOGGER = logging.getLogger(__name__)
_COMPACT = 64  # entries at least that are moved at once
_POLL = 1.0


class Keeper(ABC):
    """Looks at the log again and again, in a thread of its own, until it is told to stop.

    Args:
        name: of the job, in what it says.
        directory: that is watched.
        arrivals: the files.
        settings: when to end.
        max_failures: bad records there may be.
        progress: told what came.
    """

    def __init__(
        self,
        name: str,
        *,
        directory: str,
        arrivals: Arrivals,
        settings: WatchSettings,
        max_failures: int,
        progress: Progress,
    ) -> None:
        self._name = name
        self._directory = directory
        self._arrivals = arrivals
        self._settings = settings
        self._max_failures = max_failures
        self._progress = progress
        self._told: dict[str, int] = {}
        self._idle_since = time.monotonic()
        self._listing: object = None
        self.error: Exception | None = None
        self.taken = 0  # inputs, since the job began

    @abstractmethod
    def entries(self) -> Mapping[str, Entry]:
        """All entries that there are, by id."""

    @abstractmethod
    def keep(self, entries: Mapping[str, Entry], *, last: bool) -> None:
        """Bring the log together, and look at what came."""

    @abstractmethod
    def told(self, entries: list[Entry]) -> str:
        """What to say of inputs that came."""

    def begin(self) -> None:
        """Take what is there already as known."""
        self._told = _inputs(self.entries())

    def run(self, stopping: threading.Event, stop: Callable[[], object]) -> None:
        """Do so until the event is set; ``stop`` ends the job."""
        began = time.monotonic()
        poll = min(_POLL, self._settings.interval)
        try:
            while not stopping.wait(poll):
                entries = self.look()
                after, idle = self._settings.stop_after, self._settings.stop_idle
                is_over = after is not None and time.monotonic() - began >= after
                if is_over or (idle is not None and self._is_idle(entries)):
                    stop()
        except Exception as error:  # noqa: BLE001 - raised by the thread that waits
            self.error = error
            stop()

    def look(self, *, last: bool = False) -> Mapping[str, Entry]:
        """Look at the log once.

        Raises:
            RecordError: there are more bad records than there may be.
            JobError: something cannot be read or written.
        """
        entries = self.entries()
        now = _inputs(entries)
        new = [
            entry
            for entry in entries.values()
            if any(self._told.get(one["name"]) != entry["revision"] for one in entry["inputs"])
            and len(entry["inputs"]) == 1
        ]
        if new:
            self._idle_since = time.monotonic()
            self.taken += len(new)
            made = [entry for entry in new if entry["failed"] is None]
            if made:
                files = f"{many(len(made), 'file')} ({len(now):,} in all)"
                self._progress.log(f"{self._name}: {files}: {self.told(made)}")
            for entry in new:
                if entry["failed"] is not None:
                    _LOGGER.warning("%s: set aside: %s", self._name, entry["failed"])
        self._told = now
        bad = sum(entry["bad"] for entry in entries.values())
        if bad > self._max_failures and not last:
            raise RecordError(too_many(f"{bad} bad records", self._max_failures))
        self.keep(entries, last=last)
        return entries

    def _is_idle(self, entries: Mapping[str, Entry]) -> bool:
        """Whether all that is there was taken, and nothing changed for the time that was given."""
        found = self._arrivals.find()
        listing = [(one.path, one.size_in_bytes, one.last_updated_in_seconds) for one in found]
        sizes = {one["name"]: one["size"] for e in entries.values() for one in e["inputs"]}
        open_ = any(
            sizes.get(self._arrivals.name(one.path)) != one.size_in_bytes
            and (self._settings.complete_when == "settled" or self._arrivals.is_complete(one))
            for one in found
        )
        if open_ or listing != self._listing:
            self._idle_since, self._listing = time.monotonic(), listing
        return time.monotonic() - self._idle_since >= (self._settings.stop_idle or 0.0)


def _inputs(entries: Mapping[str, Entry]) -> dict[str, int]:
    return {one["name"]: entry["revision"] for entry in entries.values() for one in entry["inputs"]}


class EncodeKeeper(Keeper):
    """Keeps an encoded corpus; ``series`` is its drift."""

    series: Series

    @override
    def entries(self) -> Mapping[str, Entry]:
        return log.newest(self._base(), log.read_log(self._directory))

    def _base(self) -> dict[str, Entry]:
        # Nobody else writes it: it is read when it was written.
        found = getattr(self, "_compacted", None)
        if found is None:
            manifest = json.loads(storage.read(join(self._directory, MANIFEST)))
            found = log.entries_of(manifest)
            self._compacted: dict[str, Entry] = found
        return found

    @override
    def keep(self, entries: Mapping[str, Entry], *, last: bool) -> None:
        sums = sum((Measured(**entry["measured"]) for entry in entries.values()), Measured())
        for warning in self.series.update(sums, now=time.time(), last=last):
            _LOGGER.warning("%s: the tokenizer fits less: %s", self._name, warning)
        waiting = len(log.entry_names(self._directory))
        if waiting and (last or waiting >= max(_COMPACT, len(self._base()) // 8)):
            log.compact(self._directory)
            del self._compacted

    @override
    def told(self, entries: list[Entry]) -> str:
        parts = [part for entry in entries for part in entry["parts"]]
        documents = many(sum(part["documents"] for part in parts), "document")
        size = size_text(sum(part["text_bytes"] for part in parts))
        return f"{documents}, {size} of text, {many(sum(p['tokens'] for p in parts), 'token')}"


class CountKeeper(Keeper):
    """Keeps counts; ``job`` is what they are."""

    job: CountJob

    @override
    def entries(self) -> Mapping[str, Entry]:
        if not hasattr(self, "_cache"):
            self._cache: dict[str, Entry] = {}
        return log.read_log(self._directory, self._cache)

    @override
    def keep(self, entries: Mapping[str, Entry], *, last: bool) -> None:
        counting.compact(self._directory, self.job, self._cache)

    @override
    def told(self, entries: list[Entry]) -> str:
        sums = [entry["totals"] for entry in entries]
        documents = many(sum(one["documents"] for one in sums), "document")
        pretokens = many(sum(one["pretokens"] for one in sums), "pre-token")
        return f"{documents}, {size_text(sum(one['bytes'] for one in sums))} of text, {pretokens}"
