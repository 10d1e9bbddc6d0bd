"""A standalone Flink that stays until it is stopped: what ``start`` and ``stop`` do.

A process in the background holds all others; they end with it, whatever it ends of. It also holds
a lock for its life, on the file that says which process it is: a number alone may by now be that of
another process.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import threading
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, TextIO

from tests.cluster import cache, workers
from tests.cluster.flink import Flink, JobServer, flags
from tests.cluster.processes import HOST, wait_until

if TYPE_CHECKING:
    from pathlib import Path


class ServiceError(Exception):
    """The cluster cannot be started or stopped; the message says why."""


@dataclass(frozen=True, kw_only=True)
class Layout:
    """The number of processes, and the ports that a user meets.

    Attributes:
        taskmanagers: how many.
        slots: of each, for tasks that run at once.
        web: Flink's web UI.
        jobs: where jobs are sent.
        artifacts: where what they stage is sent.
        expansion: of Beam's job server; not used here.
        pool: of Python workers.
    """

    taskmanagers: int = 2
    slots: int = 2
    web: int = 8081
    jobs: int = 8099
    artifacts: int = 8098
    expansion: int = 8097
    pool: int = 50000

    @property
    def options(self) -> list[str]:
        """The arguments after ``bpe … --runner PortableRunner --``."""
        pool = ["--environment_type=EXTERNAL", f"--environment_config={HOST}:{self.pool}"]
        return [
            *flags(f"{HOST}:{self.jobs}", parallelism=self.taskmanagers * self.slots),
            *pool,
        ]


def folder() -> Path:
    """The folder of the running cluster's logs and description."""
    return cache.root() / "running"


def _ready() -> Path:
    return folder() / "ready"


def _lock() -> Path:
    return cache.root() / "running.pid"


def start(layout: Layout) -> None:
    """Start a cluster in the background, and wait until it takes jobs.

    Raises:
        ServiceError: one runs already, a port is taken, or something does not start.
    """
    cache.root().mkdir(parents=True, exist_ok=True)
    with _lock().open("a+", encoding="ascii") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise ServiceError(
                "a cluster is running: stop it first (python -m tests.cluster stop)"
            ) from error
        lock.truncate(0)
        _start(layout, lock)


def _start(layout: Layout, lock: TextIO) -> None:
    for port in (layout.web, layout.jobs, layout.artifacts, layout.expansion, layout.pool):
        with socket.socket() as tried:
            tried.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                tried.bind((HOST, port))
            except OSError as error:
                raise ServiceError(f"port {port} of {HOST} is taken by another program") from error
    shutil.rmtree(folder(), ignore_errors=True)
    folder().mkdir(parents=True)
    log = folder() / "service.log"
    with log.open("ab") as said:
        process = subprocess.Popen(
            [sys.executable, "-m", "tests.cluster", "serve", json.dumps(asdict(layout))],
            stdin=subprocess.DEVNULL,
            stdout=said,
            stderr=said,
            env=workers.environment(),
            pass_fds=(lock.fileno(),),  # it has the lock as long as it runs
            start_new_session=True,
        )
    lock.write(str(process.pid))
    lock.flush()
    try:
        wait_until(lambda: _ready().exists() or process.poll() is not None, "the cluster")
    except BaseException:
        process.terminate()
        raise
    if process.poll() is not None:
        raise ServiceError(f"the cluster did not start: {log.read_text('utf-8')[-4000:]}")


def serve(layout: Layout) -> None:
    """Be the process that holds the cluster, until SIGTERM or Ctrl-C."""
    over = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: over.set())
    ports = (layout.jobs, layout.artifacts, layout.expansion)
    with contextlib.ExitStack() as held:
        flink = held.enter_context(
            Flink.start(
                folder(),
                taskmanagers=layout.taskmanagers,
                slots=layout.slots,
                rest=layout.web,
            )
        )
        held.enter_context(JobServer.start(folder(), master=flink.master, ports=ports))
        held.enter_context(workers.start_pool(folder(), port=layout.pool)[0])
        _ready().touch()
        over.wait()


def running() -> int | None:
    """The process that holds the cluster, 0 if there is none yet; None where none runs."""
    try:
        with _lock().open(encoding="ascii") as lock:
            fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except FileNotFoundError:
        pass
    except BlockingIOError:
        return int(_lock().read_text("ascii") or 0)
    return None


def stop() -> bool:
    """Take the cluster down and remove its logs; whether there was one."""
    wait_until(lambda: running() != 0, "the beginning of the cluster")
    process = running()
    if process is not None:
        os.kill(process, signal.SIGTERM)
        wait_until(lambda: running() is None, "the end of the cluster")
    shutil.rmtree(folder(), ignore_errors=True)
    return process is not None
