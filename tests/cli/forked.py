"""``bpe`` in a process that begins with Beam imported, which is most of a short job.

A server imports what commands need, and nothing more: it has run no job, started no thread of ours
and read no option. Each command is a fork of it, with a command line, environment, folder and
streams of its own, and ends as every Python process does. What Python reads when it starts is the
server's. It has one core, so that by default jobs have one worker: two cost three times as much.

As a program: ``forked.py FD LISTENER`` is the server, which ends when the other end of the pipe is
closed; ``forked.py SOCKET ARGUMENT…`` asks it to run ``bpe``, and passes its own streams on.
"""

from __future__ import annotations

import array
import contextlib
import gc
import importlib
import io
import json
import os
import select
import signal
import socket
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

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
    "rich.table",
)
_STREAMS = 3
_LONGEST = 1 << 20  # bytes of a command line and an environment


class Server:
    """A process that waits for commands.

    Attributes:
        path: of the socket on which it is asked.
    """

    def __init__(self, root: Path) -> None:
        """Start one that imports the sources of ``root``; it ends when this process does."""
        self._folder = tempfile.TemporaryDirectory()
        self.path = str(Path(self._folder.name, "bpe"))
        ended, self._alive = os.pipe()
        with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as listener:
            listener.bind(self.path)
            listener.listen()
            fds = [ended, listener.fileno()]
            self._process = subprocess.Popen(
                [sys.executable, "-m", "tests.cli.forked", *map(str, fds)],
                cwd=root,
                pass_fds=fds,
                stdin=subprocess.DEVNULL,
            )
        os.close(ended)

    def run(
        self, command: Sequence[str], *, cwd: Path, env: dict[str, str], stdin: str, seconds: float
    ) -> subprocess.CompletedProcess[str]:
        """Run ``bpe`` with these arguments.

        Raises:
            subprocess.TimeoutExpired: it took longer, and was killed.
        """
        with contextlib.ExitStack() as stack:
            streams = [
                stack.enter_context(tempfile.TemporaryFile("w+", encoding="utf-8"))
                for _ in range(_STREAMS)
            ]
            streams[0].write(stdin)
            streams[0].seek(0)
            asked = stack.enter_context(
                _ask(self.path, command, cwd, env, [one.fileno() for one in streams])
            )
            pid = int(asked.recv(64))
            asked.settimeout(seconds)
            try:
                status = int(asked.recv(64))
            except TimeoutError:
                os.kill(pid, signal.SIGKILL)
                raise subprocess.TimeoutExpired(list(command), seconds) from None
            said = []
            for stream in streams[1:]:
                stream.seek(0)
                said.append(stream.read())
            return subprocess.CompletedProcess(list(command), status, *said)


def _ask(
    path: str,
    command: Sequence[str],
    cwd: str | Path,
    env: Mapping[str, str],
    streams: Sequence[int],
) -> socket.socket:
    """Start a command; what comes out of the socket is its process id, and then its status."""
    asked = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    asked.connect(path)
    request = json.dumps({"command": list(command), "cwd": str(cwd), "env": dict(env)})
    fds = array.array("i", streams).tobytes()
    asked.sendmsg([request.encode()], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, fds)])
    return asked


def _client(path: str, command: Sequence[str]) -> NoReturn:
    """Run ``bpe`` in the place of this process."""
    with _ask(path, command, Path.cwd(), os.environ, range(_STREAMS)) as asked:
        pid = int(asked.recv(64))
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, lambda number, _: os.kill(pid, number))
        status = int(asked.recv(64))
    sys.exit(status if status >= 0 else 128 - status)


def _serve(ended: int, fd: int) -> None:
    for name in _IMPORTED:
        with contextlib.suppress(ModuleNotFoundError):  # the pictures are an extra
            importlib.import_module(name)
    if hasattr(os, "sched_setaffinity"):
        cores = sorted(os.sched_getaffinity(0))
        number = int(os.environ.get("PYTEST_XDIST_WORKER", "gw0")[2:])
        os.sched_setaffinity(0, {cores[number % len(cores)]})
    gc.collect()
    gc.freeze()  # or each command copies these objects to look through them
    listener = socket.socket(fileno=fd)
    waited: list[socket.socket | int] = [listener, ended]
    while ended not in select.select(waited, [], [])[0]:
        asked, _ = listener.accept()
        with contextlib.suppress(ChildProcessError):
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
        if not os.fork():
            os.close(ended)
            listener.close()
            _attend(asked)
        asked.close()


def _attend(asked: socket.socket) -> NoReturn:
    """Start a command and wait for it."""
    message, ancillary, _, _ = asked.recvmsg(_LONGEST, socket.CMSG_LEN(4 * _STREAMS))
    fds = array.array("i", ancillary[0][2])
    pid = os.fork()
    if not pid:
        asked.close()
        _become(json.loads(message), list(fds))
    for one in fds:
        os.close(one)
    with contextlib.suppress(BrokenPipeError):
        asked.send(str(pid).encode())
        asked.send(str(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])).encode())
    os._exit(0)


def _become(request: dict[str, object], fds: list[int]) -> NoReturn:
    import runpy  # noqa: PLC0415  # the client does not wait for it

    for number, fd in enumerate(fds):
        os.dup2(fd, number)
        os.close(fd)
    sys.stdin, sys.stdout, sys.stderr = (
        io.TextIOWrapper(
            io.BufferedReader(raw) if number == 0 else io.BufferedWriter(raw),
            "utf-8",
            "strict" if number < 2 else "backslashreplace",
            line_buffering=number == 2,
        )
        for number in range(_STREAMS)
        for raw in [io.FileIO(number, "rb" if number == 0 else "wb", closefd=False)]
    )
    env, command = request["env"], request["command"]
    assert isinstance(env, dict)
    assert isinstance(command, list)
    os.chdir(str(request["cwd"]))
    os.environ.clear()
    os.environ.update(env)
    sys.argv = ["bpe", *command]
    runpy.run_module("pipelines.cli", run_name="__main__", alter_sys=True)
    sys.exit()


if __name__ == "__main__":
    if sys.argv[1].isdigit():
        _serve(*map(int, sys.argv[1:]))
    else:
        _client(sys.argv[1], sys.argv[2:])
