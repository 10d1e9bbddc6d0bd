"""What a watch does beside taking files: tell, fold, measure, and say when it ends."""

from __future__ import annotations

import itertools
import logging
import time
from typing import TYPE_CHECKING

from pipelines.corpus.reading import described, too_many
from pipelines.errors import RecordError
from pipelines.output.directory import plan_of_run
from pipelines.output.entries import keyed_files, read_folded, read_log, standing
from pipelines.output.names import DEAD_LETTERS
from pipelines.progress import many, size_text
from pipelines.watch.arrivals import Arrivals
from pipelines.watch.folding import fold

if TYPE_CHECKING:
    from pipelines.drift import Series
    from pipelines.output.entries import Entry, Taken
    from pipelines.progress import Progress
    from pipelines.watch.work import Task

_LOGGER = logging.getLogger(__name__)
_NAMED = 20  # files in one warning
_AGAIN = 30.0  # seconds from one fold to the next that has no other reason than replaced parts


class Keeper:
    """Looks at the log again and again.

    Args:
        task: of the workers.
        progress: told what came.
        series: of drift; None where nothing is measured.

    Attributes:
        new: inputs that were taken since the job began.
    """

    def __init__(self, task: Task, progress: Progress, series: Series | None = None) -> None:
        self.progress = progress
        self.new = 0
        self._handler, self._places, self._settings = task.handler, task.places, task.settings
        self._directory, self._run = task.handler.directory, task.run
        self._name = task.handler.name
        self._max_failures = task.max_failures
        self._arrivals = Arrivals(task.settings)
        self._series = series
        self._log: dict[str, Entry] = {}
        self._folded: tuple[Taken, ...] = ()
        self._taken: dict[str, Taken] = {}
        self._next_fold = 0.0
        self._is_folded = False
        self._began = self._idle_since = time.monotonic()
        self._listing: object = None

    def begin(self) -> None:
        """Take what is there already as known.

        Raises:
            RecordError: there are more bad records than there may be.
        """
        self._log = read_log(self._directory)
        self._folded = read_folded(self._directory).taken
        self._taken = standing(self._folded, self._log).taken
        self._check()

    def _check(self) -> None:
        bad = sum(one.bad for one in self._taken.values())
        if bad > self._max_failures:
            found = sorted(keyed_files(self._directory))
            letters = [file for file in found if file.startswith(DEAD_LETTERS)]
            told = described(bad, self._directory, letters)
            raise RecordError(too_many(told, self._max_failures))

    def is_over(self) -> bool:
        """Whether the time that was given is over, or nothing came for so long."""
        after, idle = self._settings.stop_after, self._settings.stop_idle
        if after is not None and time.monotonic() - self._began >= after:
            return True
        return idle is not None and self._is_idle(idle)

    def look(self, *, last: bool = False) -> None:
        """Look at the log once.

        Raises:
            RecordError: there are more bad records than there may be.
            OutputError: a later run has taken the directory over.
            JobError: something cannot be read or written.
        """
        before, self._log = self._log, read_log(self._directory, self._log)
        if self._log is not before:
            holds = standing(self._folded, self._log)
            self._taken, self._is_folded = holds.taken, False
            came = (holds.entries.keys() | holds.notes) - before.keys()
            entries = [self._log[id_] for id_ in sorted(came)]
            self._tell([entry for entry in entries if len(entry.taken) == 1])
            self._check()
        if self._series is not None:
            measured = (one.measured for one in self._taken.values())
            for warning in self._series.update(measured, now=time.time(), last=last):
                _LOGGER.warning(
                    "%s: the tokenizer fits new text less well: %s", self._name, warning
                )
        if self._log and not self._is_folded and (last or self._is_due()):
            plan_of_run(self._directory, self._run)  # one process folds
            # Only what was told of.
            self._folded = fold(self._handler, self._log).taken
            self._next_fold, self._is_folded = time.monotonic() + _AGAIN, True

    def _is_due(self) -> bool:
        waiting, inputs = len(self._log), len(self._taken)
        if waiting > self._handler.max_pending(inputs):
            return True
        # What was replaced is in the way of those who look at the parts alone.
        return inputs < len(self._folded) + waiting and time.monotonic() >= self._next_fold

    def _tell(self, came: list[Entry]) -> None:
        if not came:
            return
        self._idle_since = time.monotonic()
        self.new += len(came)
        now = [self._taken[one.name] for entry in came for one in entry.taken]
        good = [one.failed is None and not one.outdated for one in now]
        made = list(itertools.compress(came, good))
        if made:
            sums, unit = self._handler.totals(made), self._handler.unit
            self.progress.log(
                f"{self._name}: {many(len(made), 'file')} ({len(self._taken):,} in all): "
                f"{many(sums.documents, 'document')}, {size_text(sums.bytes)} of text, "
                f"{many(sums.pretokens, unit)}"
            )
        for one in now:
            if one.failed is not None:
                _LOGGER.warning("%s: set aside: %s", self._name, one.failed)
        if names := [one.name for one in now if one.outdated]:
            more = len(names) - _NAMED
            _LOGGER.warning(
                "%s: %s changed after their counts were merged, which cannot be undone: %s%s: the "
                "old counts stay; to include the changes, count into a new directory",
                self._name,
                many(len(names), "file"),
                ", ".join(sorted(names)[:_NAMED]),
                f" and {more:,} more" if more > 0 else "",
            )

    def _is_idle(self, idle: float) -> bool:
        """Whether all that is there was taken, and nothing changed for the time that was given."""
        found = self._places.find()
        listing = [(one.path, *one.stamp) for one in found]
        sizes = {one.name: one.size for one in self._taken.values()}
        open_ = any(
            sizes.get(self._places.name(one.path)) != one.size
            and (self._settings.complete_when == "settled" or self._arrivals.is_complete(one))
            for one in found
        )
        if open_ or listing != self._listing:
            self._idle_since, self._listing = time.monotonic(), listing
        return time.monotonic() - self._idle_since >= idle
