"""A standalone Flink that stays until it is stopped: what ``start`` and ``stop`` do.

A process in the background holds all others; they end with it, whatever it ends of. It is asked by
a socket: the number of a process may by now be that of another one.
"""

from __future__ import annotations

import contextlib
import shutil
import socket
import subprocess
import sys
from typing import TYPE_CHECKING

import click

from tests.cluster import cache, workers
from tests.cluster.flink import Flink, JobServer
from tests.cluster.processes import HOST, wait_until

if TYPE_CHECKING:
    from pathlib import Path


class ServiceError(click.ClickException):
    """The cluster cannot be started or stopped; the message says why."""


# The ports that a user meets: Flink's web UI, where jobs and what they stage are sent, expansion
# (of Beam's job server; not used here), and the pool of Python workers.
WEB, JOBS, ARTIFACTS, EXPANSION, POOL = 8081, 8099, 8098, 8097, 50000


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


def start() -> None:
    """Start a cluster in the background, and wait until it takes jobs.

    Raises:
        ServiceError: one runs already, a port is taken, or something does not start.
    """
    if running():
        raise ServiceError("a cluster is running: stop it first (python -m tests.cluster stop)")
    for port in (WEB, JOBS, ARTIFACTS, EXPANSION, POOL):
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
            [sys.executable, "-m", "tests.cluster", "serve"],
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


def serve() -> None:
    """Be the process that holds the cluster, until somebody stops it."""
    with contextlib.ExitStack() as held:
        flink = held.enter_context(Flink.started(folder(), rest=WEB))
        ports = (JOBS, ARTIFACTS, EXPANSION)
        held.enter_context(JobServer.started(folder(), master=flink.master, ports=ports))
        held.enter_context(workers.started_pool(folder(), port=POOL))
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
