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
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import apache_beam as beam
from apache_beam.transforms.periodicsequence import PeriodicImpulse
from apache_beam.utils.shared import Shared
from apache_beam.utils.timestamp import MAX_TIMESTAMP, Timestamp

from pipelines.elements import StorageDoFn, pack, unpack
from pipelines.errors import STOPPED
from pipelines.metrics import count_all
from pipelines.watch.arrivals import Arrivals, stamp

if TYPE_CHECKING:
    from collections import Counter
    from collections.abc import Iterator

    from apache_beam.io.filesystem import FileMetadata

    from pipelines.failures import Failures
    from pipelines.watch.arrivals import Place
    from pipelines.watch.settings import WatchSettings
    from pipelines.watch.work import Task, Work

LOCAL_TICK = 0.5  # seconds in which the local runner sees that it shall stop
_AGAIN = 60.0  # seconds after which a file that was dealt is dealt again, if it is not done


@dataclass(frozen=True, kw_only=True)
class WorkFactory:
    """Makes what takes files, in a worker; picklable.

    Attributes:
        task: what is asked for.
        places: where files appear.
        settings: when they are complete.
        run: of the watch.
    """

    task: Task
    places: tuple[Place, ...]
    settings: WatchSettings
    run: str

    def make(self, failures: Failures) -> Work:
        """What takes files."""
        arrivals = Arrivals(
            self.places,
            output=self.task.directory,
            settings=self.settings,
            format_=self.task.format,
        )
        return self.task.work(arrivals, failures, None if failures.path else self.run)


class StopWatch(Exception):  # noqa: N818 - no error
    """Ends the pipeline of the local runner, which nothing else does."""


class _Tick(beam.DoFn):  # type: ignore[misc]  # Beam has no types
    """Ticks once in each interval, and ends the local runner when it shall stop."""

    def __init__(self, interval: float, failures: Failures) -> None:
        self._interval = interval
        self._failures = failures
        self._next = 0.0

    def process(self, _: Any) -> Iterator[None]:
        if self._failures.stopped():
            raise StopWatch(STOPPED)
        now = time.monotonic()
        if now >= self._next:
            self._next = now + self._interval
            yield None


class _WithWork(StorageDoFn):
    """A step that has what takes files; one for each process."""

    def __init__(self, factory: WorkFactory, shared: Shared, failures: Failures) -> None:
        super().__init__()
        self._factory = factory
        self._shared = shared
        self._failures = failures
        self._work: Work | None = None

    def setup(self) -> None:
        super().setup()
        with self._failures.reported():
            self._work = self._shared.acquire(
                lambda: self._factory.make(self._failures), tag=self._factory.run
            )


class _Select(_WithWork):
    """Finds what is complete and not yet taken."""

    def setup(self) -> None:
        super().setup()
        self._dealt: dict[tuple[str, int, float], float] = {}
        self._forget = 0.0

    def process(self, _: None) -> Iterator[bytes]:
        if self._work is None or self._failures.stopped():
            return
        with self._failures.reported():
            now = time.monotonic()
            self._work.see_run()
            for file in self._work.arrivals.find():
                seen = (file.path, *stamp(file))
                if now < self._dealt.get(seen, 0.0) or not self._work.is_wanted(file):
                    continue
                if self._failures.path is None:  # elsewhere files are taken one after the other
                    self._deal(seen, now)
                yield pack(file)

    def _deal(self, seen: tuple[str, int, float], now: float) -> None:
        self._dealt[seen] = now + _AGAIN
        if now >= self._forget:
            self._dealt = {one: until for one, until in self._dealt.items() if now < until}
            self._forget = now + _AGAIN


class _Take(_WithWork):
    """Takes files; those of a bundle at once, with so many threads."""

    def __init__(
        self, factory: WorkFactory, shared: Shared, failures: Failures, threads: int
    ) -> None:
        super().__init__(factory, shared, failures)
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

    def _take(self, file: FileMetadata) -> Counter[str] | None:
        if self._work is None:
            return None
        with self._failures.reported():
            return self._work.take(file)
        return None


def add_watching(
    pipeline: beam.Pipeline,
    factory: WorkFactory,
    failures: Failures,
    *,
    stop_after: float | None,
    threads: int,
) -> None:
    """Add a watch to a pipeline.

    Args:
        pipeline: of any runner that streams.
        factory: makes what takes files.
        failures: how workers report errors; on the local runner, also how they are stopped.
        stop_after: seconds after which no more looks are taken; None: never.
        threads: that take files, on the local runner.
    """
    local, interval = failures.path is not None, factory.settings.interval
    now = time.time()
    end = MAX_TIMESTAMP if stop_after is None else Timestamp(now + stop_after)
    shared = Shared()
    files = (
        pipeline
        | "Look again and again"
        >> PeriodicImpulse(
            start_timestamp=Timestamp(now),
            stop_timestamp=end if not local else MAX_TIMESTAMP,
            fire_interval=min(interval, LOCAL_TICK) if local else interval,
        )
        | "Tick" >> beam.ParDo(_Tick(interval if local else 0.0, failures))
        | "Select" >> beam.ParDo(_Select(factory, shared, failures))
    )
    if not local:
        files |= "Deal files" >> beam.Reshuffle()
    _ = files | "Take files" >> beam.ParDo(
        _Take(factory, shared, failures, threads if local else 1)
    )
