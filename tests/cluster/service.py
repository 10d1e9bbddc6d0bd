"""A standalone Flink that stays until it is stopped: what ``start`` and ``stop`` do.

A process in the background holds all others; they end with it, whatever it ends of. It is asked by
a socket: the number of a process may by now be that of another one.
"""

from __future__ import annotations

import contextlib
import json
import shutil
import socket
import subprocess
import sys
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

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
    """The folder of the running cluster's logs."""
    return cache.root() / "running"


def _control() -> str:
    """The socket of the process that holds the cluster, which ends when somebody writes to it."""
    return str(folder() / "control")


def running() -> bool:
    """Return whether there is a cluster that takes jobs."""
    with contextlib.suppress(OSError), socket.socket(socket.AF_UNIX) as control:
        control.connect(_control())
        return True
    return False


def start(layout: Layout) -> None:
    """Start a cluster in the background, and wait until it takes jobs.

    Raises:
        ServiceError: one runs already, a port is taken, or something does not start.
    """
    if running():
        raise ServiceError("a cluster is running: stop it first (python -m tests.cluster stop)")
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
            start_new_session=True,
        )
    try:
        wait_until(lambda: running() or process.poll() is not None, "the cluster")
    except BaseException:
        process.terminate()
        raise
    if process.poll() is not None:
        raise ServiceError(f"the cluster did not start: {log.read_text('utf-8')[-4000:]}")


def serve(layout: Layout) -> None:
    """Be the process that holds the cluster, until somebody stops it."""
    ports = (layout.jobs, layout.artifacts, layout.expansion)
    with contextlib.ExitStack() as held:
        started = Flink.started(
            folder(), taskmanagers=layout.taskmanagers, slots=layout.slots, rest=layout.web
        )
        flink = held.enter_context(started)
        held.enter_context(JobServer.started(folder(), master=flink.master, ports=ports))
        held.enter_context(workers.started_pool(folder(), port=layout.pool))
        control = held.enter_context(socket.socket(socket.AF_UNIX))
        control.bind(_control())
        control.listen()
        asked, _ = control.accept()
        while not asked.recv(1):  # only to see whether there is a cluster
            asked, _ = control.accept()
    asked.close()  # whoever stops it waits for this


def stop() -> bool:
    """Take the cluster down and remove its logs; whether there was one."""
    found = running()
    if found:
        with socket.socket(socket.AF_UNIX) as control:
            control.connect(_control())
            control.sendall(b".")
            control.recv(1)
    shutil.rmtree(folder(), ignore_errors=True)
    return found
