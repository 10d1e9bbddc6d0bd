"""The steps of a job that watches, on Beam.

Files are looked for again and again, at each tick of a periodic impulse. (Not with
`apache_beam.io.fileio.MatchContinuously`: it takes one pattern, passes over names with a backslash,
and says nothing while nothing matches, so that nobody could tell it to stop.) On the local runner
more than one source that never ends, or more than one worker, would lose the rest of an impulse
(Beam 2.77), so there one worker has all steps, and takes files with threads of its own; elsewhere
files are dealt to all workers.
"""

from __future__ import annotations

import time
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import apache_beam as beam
from apache_beam.transforms.periodicsequence import PeriodicImpulse
from apache_beam.utils.shared import Shared
from apache_beam.utils.timestamp import MAX_TIMESTAMP, Timestamp

from pipelines.elements import StorageDoFn, pack, unpack
from pipelines.errors import STOPPED
from pipelines.metrics import count_all
from pipelines.storage import is_local
from pipelines.watch.work import Work

if TYPE_CHECKING:
    from collections import Counter
    from collections.abc import Iterator

    from pipelines.corpus.inputs import Listed
    from pipelines.failures import Failures
    from pipelines.watch.work import Task

LOCAL_TICK = 0.5  # seconds in which the local runner sees that it shall stop
_AGAIN = 60.0  # seconds after which a file that was dealt is dealt again, if it is not done


class StopWatch(Exception):  # noqa: N818 - no error
    """Ends the pipeline of the local runner, which nothing else does."""


class _WithWork(StorageDoFn):
    """A step that has what takes files; one for each process."""

    def __init__(self, task: Task, shared: Shared, failures: Failures) -> None:
        super().__init__()
        self._task = task
        self._shared = shared
        self._failures = failures
        self._work: Work | None = None

    def setup(self) -> None:
        super().setup()
        # Only a local directory has a lock that keeps other runs out.
        alone = self._failures.path is not None and is_local(self._task.handler.directory)
        with self._failures.reported():
            self._work = self._shared.acquire(
                lambda: Work(self._task, self._failures, alone=alone), tag=self._task.run
            )


class _Select(_WithWork):
    """Finds what is complete and not yet taken; ends the local runner when it shall stop."""

    def setup(self) -> None:
        super().setup()
        self._next = self._forget = 0.0
        self._dealt: dict[tuple[str, int, float], float] = {}

    def process(self, _: Any) -> Iterator[bytes]:
        if self._failures.stopped():
            raise StopWatch(STOPPED)
        local, now = self._failures.path is not None, time.monotonic()
        if self._work is None or now < self._next:
            return
        self._next = now + self._task.settings.interval if local else 0.0
        with self._failures.reported():
            self._work.look()
            for file in self._work.places.find():
                seen = (file.path, *file.stamp)
                if now < self._dealt.get(seen, 0.0) or not self._work.is_wanted(file):
                    continue
                if not local:  # elsewhere files are taken one after the other
                    self._deal(seen, now)
                yield pack(file)

    def _deal(self, seen: tuple[str, int, float], now: float) -> None:
        self._dealt[seen] = now + _AGAIN
        if now >= self._forget:
            self._dealt = {one: until for one, until in self._dealt.items() if now < until}
            self._forget = now + _AGAIN


class _Take(_WithWork):
    """Takes files; those of a bundle at once, with so many threads."""

    def __init__(self, task: Task, shared: Shared, failures: Failures, threads: int) -> None:
        super().__init__(task, shared, failures)
        self._threads = threads

    def setup(self) -> None:
        super().setup()
        self._pool = ThreadPoolExecutor(self._threads)

    def start_bundle(self) -> None:
        self._pending: list[Future[Counter[str] | None]] = []

    def process(self, element: bytes) -> None:
        if self._work is not None and not self._failures.stopped():
            self._pending.append(self._pool.submit(self._take, unpack(element)))

    def finish_bundle(self) -> None:
        for future in self._pending:
            count_all(future.result() or {})  # here, because Beam counts in its own threads only

    def teardown(self) -> None:
        self._pool.shutdown()

    def _take(self, file: Listed) -> Counter[str] | None:
        if self._work is None:
            return None
        with self._failures.reported():
            return self._work.take(file)
        return None


def add_watching(pipeline: beam.Pipeline, task: Task, failures: Failures, *, threads: int) -> None:
    """Add a watch to a pipeline.

    Args:
        pipeline: of any runner that streams.
        task: what workers must know.
        failures: how workers report errors; on the local runner, also how they are stopped.
        threads: that take files, on the local runner.
    """
    local, settings, now = failures.path is not None, task.settings, time.time()
    interval, after = settings.interval, settings.stop_after
    ends = not local and after is not None  # the local runner is told by `failures`
    shared = Shared()
    files = (
        pipeline
        | "Look again and again"
        >> PeriodicImpulse(
            start_timestamp=Timestamp(now),
            stop_timestamp=Timestamp(now + (after or 0.0)) if ends else MAX_TIMESTAMP,
            fire_interval=min(interval, LOCAL_TICK) if local else interval,
        )
        | "Select" >> beam.ParDo(_Select(task, shared, failures))
    )
    if not local:
        files |= "Deal files" >> beam.Reshuffle()
    _ = files | "Take files" >> beam.ParDo(_Take(task, shared, failures, threads if local else 1))
