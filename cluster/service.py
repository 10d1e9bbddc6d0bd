"""A standalone Flink that stays until it is stopped: what ``start`` and ``stop`` do.

A process in the background holds all others; they end with it, whatever it ends of.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import threading
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

from cluster import cache, workers
from cluster.flink import Flink, JobServer, flags
from cluster.processes import HOST, is_running, wait_until

if TYPE_CHECKING:
    from pathlib import Path


class ServiceError(Exception):
    """The cluster cannot be started or stopped; the message says why."""


@dataclass(frozen=True, kw_only=True)
class Layout:
    """How many processes there are, and the ports that a user meets.

    Attributes:
        taskmanagers: how many.
        slots: of each, for tasks that run at once.
        web: Flink's page, where jobs are watched.
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
        """What stands behind ``bpe … --runner PortableRunner --``."""
        pool = ["--environment_type=EXTERNAL", f"--environment_config={HOST}:{self.pool}"]
        return [
            *flags(f"{HOST}:{self.jobs}", parallelism=self.taskmanagers * self.slots),
            *pool,
        ]


def folder() -> Path:
    """Where the running cluster keeps its logs, and says what it is."""
    return cache.root() / "running"


def _state() -> Path:
    return folder() / "ready.json"


def start(layout: Layout) -> None:
    """Start a cluster in the background, and wait until it takes jobs.

    Raises:
        ServiceError: one runs already, a port is taken, or something does not start.
    """
    if running() is not None:
        raise ServiceError("a cluster is running: stop it first (python -m cluster stop)")
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
            [sys.executable, "-m", "cluster", "serve", json.dumps(asdict(layout))],
            stdin=subprocess.DEVNULL,
            stdout=said,
            stderr=said,
            env=workers.environment(),
            start_new_session=True,
        )
    try:
        wait_until(lambda: _state().exists() or process.poll() is not None, "the cluster")
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
        written = _state().with_suffix(".tmp")
        written.write_text(json.dumps({"process": os.getpid()}), "utf-8")
        written.replace(_state())
        over.wait()
    _state().unlink(missing_ok=True)


def running() -> int | None:
    """The process that holds the cluster; None where none runs."""
    try:
        process = int(json.loads(_state().read_text("utf-8"))["process"])
    except (FileNotFoundError, ValueError, KeyError):
        return None
    return process if is_running(process) else None


def stop() -> bool:
    """Take the cluster down and remove its logs; whether there was one."""
    process = running()
    if process is not None:
        os.kill(process, signal.SIGTERM)
        wait_until(lambda: not is_running(process), "the end of the cluster")
    shutil.rmtree(folder(), ignore_errors=True)
    return process is not None
