"""``bpe`` in a process that begins with Beam imported, which is most of a short job.

A server imports what commands need, and nothing more: it has run no job, started no thread of ours
and read no option. Each command is a fork of it, with a command line, environment, folder and
streams of its own, and ends as every Python process does. What Python reads when it starts is the
server's. It has one core, so that by default jobs have one worker: two cost three times as much.

As a program: ``forked.py FD`` is the server, which ends when its stdin is closed;
``forked.py SOCKET ARGUMENT…`` asks it to run ``bpe``, and passes its own streams on.
"""

from __future__ import annotations

import contextlib
import gc
import importlib
import json
import os
import runpy
import select
import signal
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any, NoReturn

_IMPORTED = (
    *(f"pipelines.cli.{name}" for name in ("run", "export", "verify", "compare", "decode", "show")),
    "pipelines.recipes",
    "pipelines.export.formats",
    "pipelines.report.job",
    "apache_beam.runners.portability.fn_api_runner.fn_runner",
    "apache_beam.runners.portability.fn_api_runner.worker_handlers",
    "pyarrow.dataset",
    "matplotlib.backends.backend_svg",
    "matplotlib.figure",
)
_SECONDS = 600  # of a command for which nobody waits any more
_LONGEST = 1 << 20  # bytes of a command line and an environment


def start(path: Path, root: Path) -> subprocess.Popen[bytes]:
    """Start a server that imports the sources of ``root``; ``path`` becomes its socket."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as listener:
        listener.bind(str(path))
        listener.listen()
        fd = listener.fileno()
        server = [sys.executable, "-m", "tests.cli.forked", str(fd)]
        return subprocess.Popen(server, cwd=root, pass_fds=[fd], stdin=subprocess.PIPE)


def _client(path: str, command: list[str]) -> NoReturn:
    """Run ``bpe`` in the place of this process."""
    request = {"command": command, "cwd": str(Path.cwd()), "env": dict(os.environ)}
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as server:
        server.connect(path)
        socket.send_fds(server, [json.dumps(request).encode()], [0, 1, 2])
        sys.exit(int(server.recv(64)))


def _serve(fd: int) -> None:
    for name in _IMPORTED:
        with contextlib.suppress(ModuleNotFoundError):  # the pictures are an extra
            importlib.import_module(name)
    if hasattr(os, "sched_setaffinity"):
        cores = sorted(os.sched_getaffinity(0))
        number = int(os.environ.get("PYTEST_XDIST_WORKER", "gw0")[2:])
        os.sched_setaffinity(0, {cores[number % len(cores)]})
    gc.collect()
    gc.freeze()  # or each command copies these objects to look through them
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody waits for those that attend
    listener = socket.socket(fileno=fd)
    while sys.stdin not in select.select([listener, sys.stdin], [], [])[0]:
        client, _ = listener.accept()
        if not os.fork():
            listener.close()
            _attend(client)
        client.close()


def _attend(client: socket.socket) -> NoReturn:
    """Start a command and wait for it."""
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    message, fds, _, _ = socket.recv_fds(client, _LONGEST, 3)
    pid = os.fork()
    if not pid:
        client.close()
        _become(json.loads(message), fds)
    for fd in fds:
        os.close(fd)
    status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    with contextlib.suppress(BrokenPipeError):
        client.send(str(status if status >= 0 else 128 - status).encode())
    os._exit(0)


def _become(request: dict[str, Any], fds: list[int]) -> NoReturn:
    signal.alarm(_SECONDS)
    for number, fd in enumerate(fds):
        os.dup2(fd, number)
        os.close(fd)
    sys.stdin = os.fdopen(0, encoding="utf-8", closefd=False)
    sys.stdout = os.fdopen(1, "w", encoding="utf-8", closefd=False)
    sys.stderr = os.fdopen(2, "w", 1, encoding="utf-8", errors="backslashreplace", closefd=False)
    os.chdir(request["cwd"])
    os.environ.clear()
    os.environ.update(request["env"])
    sys.argv = ["bpe", *request["command"]]
    runpy.run_module("pipelines.cli", run_name="__main__", alter_sys=True)
    sys.exit()


if __name__ == "__main__":
    if sys.argv[1].isdigit():
        _serve(int(sys.argv[1]))
    else:
        _client(sys.argv[1], sys.argv[2:])
