"""``bpe`` in a process that begins with Beam imported, which is most of a short job.

A server imports what jobs need, and nothing more: it has run no job, started no thread of ours and
read no option. Each command is a fork of it, with a command line, environment, folder and streams
of its own, and ends as every Python process does. What Python reads when it starts is the server's.
"""

from __future__ import annotations

import array
import contextlib
import gc
import importlib
import io
import json
import os
import runpy
import signal
import socket
import subprocess
import sys
import tempfile
import threading
from dataclasses import dataclass
from typing import TYPE_CHECKING, NoReturn

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

_IMPORTED = (
    "pipelines.cli.commands",
    "pipelines.train",
    "pipelines.encode.job",
    "apache_beam",
    "pyarrow.parquet",
)
_STREAMS = 3
_LONGEST = 1 << 20  # bytes of a command line and an environment


@dataclass(frozen=True)
class Server:
    """A process that waits for commands, and the socket on which it is asked."""

    process: subprocess.Popen[bytes]
    asked: socket.socket
    alone: threading.Lock

    @classmethod
    def started(cls, root: Path) -> Server:
        """Start one that imports the sources of ``root``; it ends when this process does."""
        here, there = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with there:
            process = subprocess.Popen(
                [sys.executable, "-m", "tests.cli.forked", str(there.fileno())],
                cwd=root,
                pass_fds=[there.fileno()],
                stdin=subprocess.DEVNULL,
            )
        return cls(process, here, threading.Lock())

    def run(
        self, command: Sequence[str], *, cwd: Path, env: dict[str, str], stdin: str, seconds: float
    ) -> subprocess.CompletedProcess[str]:
        """Run ``bpe`` with these arguments.

        Raises:
            subprocess.TimeoutExpired: it took longer, and was killed.
        """
        with contextlib.ExitStack() as stack:
            stack.enter_context(self.alone)
            streams = [
                stack.enter_context(tempfile.TemporaryFile("w+", encoding="utf-8"))
                for _ in range(_STREAMS)
            ]
            streams[0].write(stdin)
            streams[0].seek(0)
            fds = array.array("i", [stream.fileno() for stream in streams])
            request = json.dumps({"command": list(command), "cwd": str(cwd), "env": env})
            self.asked.sendmsg(
                [request.encode()], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, fds.tobytes())]
            )
            pid = int(self.asked.recv(64))
            self.asked.settimeout(seconds)
            try:
                status = int(self.asked.recv(64))
            except TimeoutError:
                os.kill(pid, signal.SIGKILL)
                self.asked.settimeout(None)
                self.asked.recv(64)
                raise subprocess.TimeoutExpired(list(command), seconds) from None
            self.asked.settimeout(None)
            said = []
            for stream in streams[1:]:
                stream.seek(0)
                said.append(stream.read())
            return subprocess.CompletedProcess(list(command), status, *said)


def _serve(fd: int) -> None:
    for name in _IMPORTED:
        importlib.import_module(name)
    gc.collect()
    gc.freeze()  # or each command copies these objects to look through them
    asked = socket.socket(fileno=fd)
    while True:
        message, ancillary, _, _ = asked.recvmsg(_LONGEST, socket.CMSG_LEN(4 * _STREAMS))
        if not message:
            return
        fds = array.array("i")
        fds.frombytes(ancillary[0][2])
        pid = os.fork()
        if not pid:
            asked.close()
            _become(json.loads(message), list(fds))
        for one in fds:
            os.close(one)
        asked.send(str(pid).encode())
        asked.send(str(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])).encode())


def _become(request: dict[str, object], fds: list[int]) -> NoReturn:
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
    _serve(int(sys.argv[1]))
