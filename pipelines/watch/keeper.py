"""What the process that started a watch does beside it: tell, fold, measure, and end it."""

from __future__ import annotations

import itertools
import logging
import threading
import time
from typing import TYPE_CHECKING

from pipelines import storage
from pipelines.corpus.reading import described, too_many
from pipelines.errors import RecordError
from pipelines.failures import error_in
from pipelines.interrupts import unhurried
from pipelines.output.directory import plan_of_run
from pipelines.output.entries import keyed_files, read_folded, read_log, standing
from pipelines.output.names import DEAD_LETTERS
from pipelines.progress import many, size_text
from pipelines.run import Until, run
from pipelines.watch.arrivals import Arrivals
from pipelines.watch.folding import fold

if TYPE_CHECKING:
    from collections.abc import Callable

    import apache_beam as beam

    from pipelines.drift import Series
    from pipelines.failures import Failures
    from pipelines.output.entries import Entry, Taken
    from pipelines.progress import Progress
    from pipelines.settings import Execution
    from pipelines.watch.work import Task

_LOGGER = logging.getLogger(__name__)
_POLL = 1.0
_NAMED = 20  # files in one warning
_AGAIN = 30.0  # seconds from one fold to the next that has no other reason than replaced parts


class Keeper:
    """Looks at the log again and again, in a thread of its own, until it is told to stop.

    Args:
        task: of the workers.
        progress: told what came.
        series: of drift; None where nothing is measured.

    Attributes:
        new: inputs that were taken since the job began.
        error: that ended the thread.
    """

    def __init__(self, task: Task, progress: Progress, series: Series | None = None) -> None:
        self.progress = progress
        self.error: Exception | None = None
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
        self._idle_since = time.monotonic()
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

    def run(self, stopping: threading.Event, stop: Callable[[], object]) -> None:
        """Look again and again until the event is set; ``stop`` ends the job."""
        began = next_look = time.monotonic()
        poll = min(_POLL, self._settings.interval)
        # A store is asked for the log no more often than for files.
        every = poll if storage.is_local(self._directory) else self._settings.interval
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


def run_until_stopped(
    build: Callable[[beam.Pipeline, Failures], None], *, execution: Execution, keeper: Keeper
) -> str:
    """Build a pipeline and run it to its end, or until it is told to stop.

    SIGINT and SIGTERM tell it; a second one is as ever.

    Args:
        build: adds the transforms to the pipeline.
        execution: where to run.
        keeper: looks after the output meanwhile, and may end the job.

    Returns:
        Why it ended: ``signal``, or what the keeper was asked for.

    Raises:
        JobError: the error that ended the job.
    """
    until = Until()
    watcher = threading.Thread(target=keeper.run, args=(until.stopping, until.stop), daemon=True)

    def begin(pipeline: beam.Pipeline, failures: Failures) -> None:
        build(pipeline, failures)
        if watcher.ident is None:
            watcher.start()

    with unhurried():
        try:
            run(begin, execution=execution, progress=keeper.progress, name="watch", until=until)
            ended_itself = not until.stopping.is_set()
        finally:
            # Nobody else may write to the directory before the keeper has ended.
            until.stopping.set()
            if watcher.ident is not None:
                watcher.join()
    if keeper.error is not None:
        raise error_in(keeper.error) from keeper.error
    if until.signalled:
        return "signal"
    return "end" if ended_itself else "asked"
