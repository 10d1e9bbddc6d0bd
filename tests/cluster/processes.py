"""Programs that run while we do, and never outlive us."""

from __future__ import annotations

import contextlib
import os
import random
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

import click

from tests.cluster.guard import descendants

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from typing_extensions import Self

HOST = "127.0.0.1"
_GUARD = Path(__file__).with_name("guard.py")
# Below the ports that systems give to outgoing connections, so that none of these takes one.
_PORTS = range(15_000, 30_000)
PATIENCE = 180.0  # seconds, for a busy machine
# What Flink and Spark reach into and modules close since Java 17 (docs/running.md).
_OPENS = (
    *(f"java.{name}" for name in ("lang", "lang.invoke", "lang.reflect", "io", "net", "nio")),
    *(f"java.{name}" for name in ("text", "time", "util", "util.concurrent")),
    *(f"java.util.concurrent.{name}" for name in ("atomic", "locks")),
    *(f"sun.{name}" for name in ("nio.ch", "nio.cs", "security.action", "util.calendar")),
)
MODULES = [
    *(f"--add-opens=java.base/{name}=ALL-UNNAMED" for name in _OPENS),
    "--add-exports=java.base/sun.net.util=ALL-UNNAMED",
    "--add-exports=java.rmi/sun.rmi.registry=ALL-UNNAMED",
]


class ProgramError(click.ClickException):
    """A program did not start, or ended too early; the message has the end of its log."""


def free_ports(number: int) -> list[int]:
    """Ports of this machine that nobody listens on."""
    with contextlib.ExitStack() as held:
        ports: list[int] = []
        while len(ports) < number:
            port = random.SystemRandom().choice(_PORTS)
            taken = held.enter_context(socket.socket())
            with contextlib.suppress(OSError):
                taken.bind((HOST, port))
                ports.append(port)
        return ports


class Program:
    """A running program; everything it starts ends with it, and with this process.

    Args:
        name: for messages, and of the log.
        command: the program and its arguments.
        folder: where it runs; its log is ``NAME.log`` there.
        env: its environment; None for ours.
    """

    def __init__(
        self, name: str, command: Sequence[str], *, folder: Path, env: dict[str, str] | None = None
    ) -> None:
        self.name = name
        self.log = folder / f"{name}.log"
        with self.log.open("ab") as log:
            self._guard = subprocess.Popen(
                [sys.executable, "-ES", str(_GUARD), *command],
                cwd=folder,
                env=env,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                start_new_session=True,
            )
        assert self._guard.stdout is not None  # for the type checker
        with self._guard.stdout as said:
            number = said.readline()
        if not number:
            self.stop()
            raise ProgramError(f"{name} cannot be started: {self.tail()}")
        self.pid = int(number)

    def is_running(self) -> bool:
        """Return whether the program itself is alive."""
        return is_running(self.pid)

    def started(self, word: str) -> list[int]:
        """The processes that it has started, orphans too, whose command holds ``word``."""
        found = []
        for process in descendants(self._guard.pid):
            with contextlib.suppress(OSError):
                if word.encode() in Path(f"/proc/{process}/cmdline").read_bytes():
                    found.append(process)
        return found

    def kill(self) -> None:
        """Send SIGKILL to the program alone; what it started goes on."""
        with contextlib.suppress(ProcessLookupError):
            os.kill(self.pid, signal.SIGKILL)
        wait_until(lambda: not self.is_running(), f"the end of {self.name}")

    def stop(self) -> None:
        """Take it and all it started down."""
        assert self._guard.stdin is not None
        self._guard.stdin.close()
        self._guard.wait()

    def wait_for(self, port: int) -> Self:
        """Wait until the program listens on ``port``.

        Raises:
            ProgramError: it ended, or takes too long.
        """
        wait_until(lambda: self._listens(port), f"{self.name} on port {port}", tail=self.tail)
        return self

    def _listens(self, port: int) -> bool:
        if not self.is_running():
            raise ProgramError(f"{self.name} ended: {self.tail()}")
        with socket.socket() as tried:
            tried.settimeout(5)
            return tried.connect_ex((HOST, port)) == 0

    def tail(self, size: int = 4000) -> str:
        """The end of the log."""
        return self.log.read_text("utf-8", "replace")[-size:]

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.stop()


def java() -> str:
    """The Java to run: of ``JAVA_HOME``, else the first on the path."""
    home = os.environ.get("JAVA_HOME")
    return str(Path(home, "bin", "java")) if home else "java"


def java_program(
    name: str,
    folder: Path,
    jars: str,
    main: str,
    *arguments: str,
    heap: str = "512m",
    options: Sequence[str] = (),
    **env: str,
) -> Program:
    """A program of Java; what is temporary is in ``folder``, and goes with it."""
    own = {**os.environ, "TMPDIR": str(folder), **env}
    own.pop("PYTHONPATH", None)  # it would lend our package to workers that are started from here
    command = [java(), f"-Xmx{heap}", *MODULES, *options, f"-Djava.io.tmpdir={folder}"]
    command += ["-cp", jars, main, *arguments]
    return Program(name, command, folder=folder, env=own)


def is_running(process: int) -> bool:
    """Return whether there is a process of that number."""
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    return True


def wait_until(
    holds: Callable[[], bool],
    what: str,
    *,
    seconds: float = PATIENCE,
    tail: Callable[[], str] = lambda: "",
) -> None:
    """Wait until a condition holds.

    Raises:
        ProgramError: it does not within ``seconds``.
    """
    end = time.monotonic() + seconds
    while not holds():
        if time.monotonic() > end:
            raise ProgramError(f"{what}: not after {seconds:.0f} s: {tail()}")
        time.sleep(0.05)
