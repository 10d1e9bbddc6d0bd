"""What the process that started a watch does beside it: tell, compact, measure, and end it."""

from __future__ import annotations

import logging
import time
from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, NamedTuple

from typing_extensions import override

from pipelines import storage
from pipelines.corpus.reading import described, too_many
from pipelines.errors import RecordError
from pipelines.output.names import DEAD_LETTERS
from pipelines.progress import many, size_text
from pipelines.storage import join
from pipelines.watch import counting, log
from pipelines.watch.arrivals import stamp
from pipelines.watch.drift import Measured

if TYPE_CHECKING:
    import threading
    from collections.abc import Callable, Mapping

    from pipelines.count.steps import CountJob
    from pipelines.progress import Progress
    from pipelines.watch.arrivals import Arrivals
    from pipelines.watch.drift import Series
    from pipelines.watch.log import Entry
    from pipelines.watch.settings import WatchSettings

_LOGGER = logging.getLogger(__name__)
_COMPACT = 64  # entries at least that are moved at once
_POLL = 1.0
_NAMED = 20  # files in one warning
_AGAIN = 30.0  # seconds from one move to the next that has no other reason than replaced parts


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
        self.progress = progress
        self._reader = log.LogReader(directory)
        self._entries: Mapping[str, Entry] = {}
        self._idle_since = time.monotonic()
        self._listing: object = None
        self.error: Exception | None = None
        self.taken = 0  # inputs, since the job began

    @abstractmethod
    def count(self, entries: Mapping[str, Entry]) -> tuple[int, int]:
        """How many inputs and bad records there are, with these entries of the log."""

    @abstractmethod
    def size_of(self, name: str) -> int | None:
        """The size that an input had when it was taken; None where it was not."""

    @abstractmethod
    def keep(self, *, changed: bool, last: bool) -> None:
        """Bring the log together, and look at what came."""

    @abstractmethod
    def told(self, entries: list[Entry]) -> str:
        """What to say of inputs that came."""

    def begin(self) -> None:
        """Take what is there already as known.

        Raises:
            RecordError: there are more bad records than there may be.
        """
        self._entries = self._reader.read()
        _, bad = self.count(self._entries)
        self._check(bad)

    def _check(self, bad: int) -> None:
        if bad > self._max_failures:
            # Entries that are folded do not name them any more.
            found = storage.entries(join(self._directory, DEAD_LETTERS))
            letters = [
                f"{DEAD_LETTERS}/{entry.name}"
                for entry in found
                if storage.is_temporary(entry.name) is None
            ]
            told = described(bad, self._directory, letters)
            raise RecordError(too_many(told, self._max_failures))

    def run(self, stopping: threading.Event, stop: Callable[[], object]) -> None:
        """Do so until the event is set; ``stop`` ends the job."""
        began = time.monotonic()
        poll = min(_POLL, self._settings.interval)
        # A store is asked for the log no more often than for files.
        every = poll if storage.is_local(self._directory) else self._settings.interval
        next_look = began
        try:
            while not stopping.wait(poll):
                now = time.monotonic()
                after, idle = self._settings.stop_after, self._settings.stop_idle
                if now >= next_look:
                    next_look = now + every
                    self.look()
                    if idle is not None and self._is_idle(idle):
                        stop()
                if after is not None and now - began >= after:
                    stop()
        except Exception as error:  # noqa: BLE001 - raised by the thread that waits
            self.error = error
            stop()

    def look(self, *, last: bool = False) -> None:
        """Look at the log once.

        Raises:
            RecordError: there are more bad records than there may be.
            JobError: something cannot be read or written.
        """
        before, entries = self._entries, self._reader.read()
        changed = entries is not before
        if changed:
            self._entries = entries
            inputs, bad = self.count(entries)
            came = [entries[id_] for id_ in entries.keys() - before.keys()]
            self._tell([entry for entry in came if len(entry["inputs"]) == 1], inputs)
            if not last:
                self._check(bad)
        self.keep(changed=changed, last=last)

    def _tell(self, came: list[Entry], inputs: int) -> None:
        if not came:
            return
        self._idle_since = time.monotonic()
        self.taken += len(came)
        made = [entry for entry in came if entry["failed"] is None]
        if made:
            files = f"{many(len(made), 'file')} ({inputs:,} in all)"
            self.progress.log(f"{self._name}: {files}: {self.told(made)}")
        outdated = [entry["inputs"][0]["name"] for entry in came if log.is_outdated(entry)]
        if outdated:
            more = len(outdated) - _NAMED
            _LOGGER.warning(
                "%s: %s changed after the counts were added up, which cannot be undone: %s%s: the "
                "counts are of what was there before; count into a new directory for new counts",
                self._name,
                many(len(outdated), "file"),
                ", ".join(sorted(outdated)[:_NAMED]),
                f" and {more:,} more" if more > 0 else "",
            )
        for entry in came:
            if entry["failed"] is not None and not log.is_outdated(entry):
                _LOGGER.warning("%s: set aside: %s", self._name, entry["failed"])

    def _is_idle(self, idle: float) -> bool:
        """Whether all that is there was taken, and nothing changed for the time that was given."""
        found = self._arrivals.find()
        listing = [(one.path, *stamp(one)) for one in found]
        open_ = any(
            self.size_of(self._arrivals.name(one.path)) != one.size_in_bytes
            and (self._settings.complete_when == "settled" or self._arrivals.is_complete(one))
            for one in found
        )
        if open_ or listing != self._listing:
            self._idle_since, self._listing = time.monotonic(), listing
        return time.monotonic() - self._idle_since >= idle


class _Held(NamedTuple):
    """What is kept of an entry that is in the manifest."""

    rank: tuple[int, str]
    size: int
    bad: int
    measured: Measured


class EncodeKeeper(Keeper):
    """Keeps an encoded corpus; ``series`` is its drift."""

    series: Series

    @override
    def begin(self) -> None:
        self._next = 0.0
        self._held_now(log.newest(log.read_compacted(self._directory)))
        super().begin()

    def _held_now(self, compacted: Mapping[str, Entry]) -> None:
        """Nobody else writes the manifest: it is read when it was written."""
        self._held = {name: _held(entry) for name, entry in compacted.items()}
        self._bad = sum(one.bad for one in self._held.values())
        self._sums = sum((one.measured for one in self._held.values()), Measured())

    @override
    def count(self, entries: Mapping[str, Entry]) -> tuple[int, int]:
        self._new: dict[str, _Held] = {}
        inputs, bad, sums = len(self._held), self._bad, self._sums
        self._replaced = False
        for entry in entries.values():
            new = _held(entry)
            name = entry["inputs"][0]["name"]
            then = self._held.get(name)
            if then is not None and then.rank >= new.rank:
                continue
            self._new[name] = new
            bad, sums = bad + new.bad, sums + new.measured
            if then is None:
                inputs += 1
            else:
                bad, sums = bad - then.bad, sums - then.measured
                self._replaced = True
        self._all = sums
        return inputs, bad

    @override
    def size_of(self, name: str) -> int | None:
        held = self._new.get(name) or self._held.get(name)
        return None if held is None else held.size

    @override
    def keep(self, *, changed: bool, last: bool) -> None:
        for warning in self.series.update(self._all, now=time.time(), last=last):
            _LOGGER.warning("%s: the tokenizer fits less: %s", self._name, warning)
        waiting, now = len(self._reader.all), time.monotonic()
        # What was replaced is in the way of those who look at the parts alone.
        is_due = now >= self._next and (self._replaced or waiting > len(self._entries))
        if waiting and (last or is_due or waiting >= max(_COMPACT, len(self._held) // 8)):
            self._next = now + _AGAIN
            self._held_now(log.compact(self._directory, self._reader))

    @override
    def told(self, entries: list[Entry]) -> str:
        parts = [part for entry in entries for part in entry["parts"]]
        documents = many(sum(part["documents"] for part in parts), "document")
        size = size_text(sum(part["text_bytes"] for part in parts))
        return f"{documents}, {size} of text, {many(sum(p['tokens'] for p in parts), 'token')}"


def _held(entry: Entry) -> _Held:
    (source,) = entry["inputs"]
    return _Held(log.rank(entry), source["size"], entry["bad"], Measured(**entry["measured"]))


class CountKeeper(Keeper):
    """Keeps counts; ``job`` is what they are."""

    job: CountJob

    @override
    def count(self, entries: Mapping[str, Entry]) -> tuple[int, int]:
        ordered = sorted(entries.values(), key=counting.holds_last)
        self._sizes = {one["name"]: one["size"] for e in ordered for one in e["inputs"]}
        return len(self._sizes), sum(entry["bad"] for entry in ordered)

    @override
    def size_of(self, name: str) -> int | None:
        return self._sizes.get(name)

    @override
    def keep(self, *, changed: bool, last: bool) -> None:
        if changed:
            # Only what was told of.
            counting.fold(self._directory, self.job, self._reader, self._entries)

    @override
    def told(self, entries: list[Entry]) -> str:
        sums = [entry["totals"] for entry in entries]
        documents = many(sum(one["documents"] for one in sums), "document")
        pretokens = many(sum(one["pretokens"] for one in sums), "pre-token")
        return f"{documents}, {size_text(sum(one['bytes'] for one in sums))} of text, {pretokens}"
