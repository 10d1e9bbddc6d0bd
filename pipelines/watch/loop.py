"""Taking files as they arrive, in this process, until a signal or a setting ends it."""

from __future__ import annotations

import contextlib
import os
import tempfile
import threading
import time
from concurrent.futures import Future, ThreadPoolExecutor, wait
from pathlib import Path
from typing import TYPE_CHECKING

from pipelines.errors import StoppedError
from pipelines.failures import Failures
from pipelines.interrupts import interrupts, unhurried
from pipelines.storage import is_local
from pipelines.watch.work import Work

if TYPE_CHECKING:
    from pipelines.watch.keeper import Keeper
    from pipelines.watch.work import Task

_POLL = 0.5  # seconds until a signal is seen


def take_until_stopped(task: Task, keeper: Keeper, *, threads: int) -> str:
    """Take files as they arrive.

    SIGINT and SIGTERM end it; a second one is as ever. Files that are in hand then are not taken.

    Args:
        task: what is made of files.
        keeper: looks after the output meanwhile, and says when it ends.
        threads: that take files.

    Returns:
        Why it ended: ``signal``, or ``asked`` where the keeper says so.

    Raises:
        JobError: the error that ended it.
    """
    signalled = threading.Event()
    with tempfile.TemporaryDirectory(prefix="bpe-watch-") as folder:
        failures = Failures(Path(folder, "failure"), os.getpid())
        with unhurried(), interrupts(lambda _: signalled.set()):
            # Only a local directory has a lock that keeps other runs out.
            work = Work(task, failures, alone=is_local(task.handler.directory))
            with ThreadPoolExecutor(threads) as pool:
                try:
                    _take(work, task, keeper, pool, signalled)
                finally:
                    failures.stop()
    return "signal" if signalled.is_set() else "asked"


def _take(
    work: Work, task: Task, keeper: Keeper, pool: ThreadPoolExecutor, signalled: threading.Event
) -> None:
    interval, pending = task.settings.interval, set[Future[bool]]()
    # A store is asked for the log no more often than for files.
    every = min(_POLL, interval) if is_local(task.handler.directory) else interval
    next_look = next_find = time.monotonic()
    while not signalled.is_set():
        now = time.monotonic()
        if not pending and now >= next_find:
            work.look()
            wanted = [file for file in work.places.find() if work.is_wanted(file)]
            pending = {pool.submit(work.take, file) for file in wanted}
            next_find = now + interval
        if pending:
            done, pending = wait(pending, timeout=min(_POLL, interval))
            for one in done:
                with contextlib.suppress(StoppedError):
                    one.result()
        else:
            signalled.wait(min(_POLL, interval))
        if time.monotonic() >= next_look:
            next_look = time.monotonic() + every
            keeper.look()
            if keeper.is_over():
                return
