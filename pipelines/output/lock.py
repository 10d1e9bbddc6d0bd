"""One job at a time in an output directory.

On a filesystem of this machine the lock is the kernel's, on the directory itself.

An object store has no locks, and pyarrow creates no object on condition that there is none. There
each job writes a claim, an object with a name of its own, and then lists the claims of all
(Lamport's one-bit algorithm, "The Mutual Exclusion Problem, Part II", 1986): of two jobs, the one
that wrote later sees the other's, since S3, Google Cloud Storage and Azure list what was written
before. A job goes on once it has seen no claim but its own. While it runs it renews its claim; one
that is not renewed for `LAPSE` seconds is of a job that died. Ages are differences between times of
the store, so the clocks of machines do not matter.
"""

from __future__ import annotations

import _thread
import contextlib
import fcntl
import json
import os
import socket
import threading
import time
import uuid
from dataclasses import dataclass
from datetime import datetime, timezone
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pipelines import storage
from pipelines.errors import OutputError
from pipelines.output.names import PROGRAM, json_bytes
from pipelines.storage import join

if TYPE_CHECKING:
    from collections.abc import Iterator

CLAIMS = ".lock"  # the folder of claims, in the directory
RENEW = 30.0  # seconds from one sign of life to the next
LAPSE = 300.0
_LOOK = 0.2  # seconds between two looks at claims of jobs that are to step back
_STEP_BACK = 60.0  # seconds they have for it


@contextlib.contextmanager
def locked(directory: str) -> Iterator[None]:
    """Keep other jobs out of a directory for as long as the block runs.

    A local lock goes with its process, however that ends. A claim on an object store stays behind
    a job that is killed: a job on the same machine sees that its process is gone, one on another
    machine waits until it lapses. Filesystems without such locks, and HDFS, go without.

    Raises:
        OutputError: another job holds it, or took it because this one gave no sign of life.
    """
    directory = storage.located(directory)
    if storage.is_local(directory):
        storage.make_directory(directory)
        with _locked_by_kernel(directory):
            yield
    elif storage.has_folders(directory):
        yield
    else:
        with _Claim(directory).held():
            yield


@contextlib.contextmanager
def _locked_by_kernel(directory: str) -> Iterator[None]:
    try:
        handle = os.open(directory, os.O_RDONLY)
    except OSError as error:
        raise OutputError(f"{directory}: cannot open: {storage.reason(error)}") from error
    try:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise OutputError(
                f"{directory}: another job is writing to it: wait for it, or choose another "
                "directory"
            ) from error
        except OSError:  # no locks here, as on some network filesystems
            pass
        yield
    finally:
        os.close(handle)


@dataclass(frozen=True, kw_only=True)
class _Rival:
    """A claim of another job: its name, what it says, and how long ago it was renewed."""

    token: str
    path: str
    says: dict[str, Any]
    seconds: float

    @property
    def is_dead(self) -> bool:
        """Whether its job cannot be there any more."""
        if self.seconds > LAPSE:
            return True
        here = _machine()
        return (
            here is not None
            and self.says.get("machine") == here
            and self.says.get("began") != _beginning(self.says.get("process"))
        )


class _Claim:
    def __init__(self, directory: str) -> None:
        self._directory = directory
        self._token = uuid.uuid4().hex
        self._path = self._path_of(self._token)
        self._since = datetime.now(timezone.utc).isoformat(timespec="seconds")
        self._over = threading.Event()
        self._lost = threading.Event()
        self._of_main = threading.current_thread() is threading.main_thread()

    @contextlib.contextmanager
    def held(self) -> Iterator[None]:
        renewing = threading.Thread(target=self._renew, name="bpe-lock", daemon=True)
        try:
            self._take()
            renewing.start()
            yield
        except KeyboardInterrupt as error:
            if self._lost.is_set():
                raise self._taken() from error
            raise
        finally:
            self._over.set()
            if renewing.ident is not None:
                renewing.join()
            with contextlib.suppress(OutputError):  # it lapses
                storage.remove(self._path)
        if self._lost.is_set():
            raise self._taken()

    def _take(self) -> None:
        self._write(held=False)
        end = time.monotonic() + _STEP_BACK
        while rivals := self._rivals():
            for rival in rivals:
                # Of jobs that came at the same time the one with the smallest token stays.
                if rival.says.get("held", True) or rival.token < self._token:
                    raise self._refused(rival)
            if time.monotonic() > end:
                raise self._refused(rivals[0])
            time.sleep(_LOOK)
        self._write(held=True)

    def _write(self, *, held: bool) -> None:
        says = {
            "program": PROGRAM,
            "held": held,
            "host": socket.gethostname(),
            "process": os.getpid(),
            "since": self._since,
            "machine": _machine(),
            "began": _beginning(os.getpid()),
        }
        storage.write(self._path, json_bytes(says))

    def _rivals(self) -> list[_Rival]:
        """The claims of other jobs; those of dead ones are removed."""
        renewed = {
            entry.name.removesuffix(".json"): entry.modified / 1e9
            for entry in storage.entries(join(self._directory, CLAIMS))
        }
        if self._token not in renewed:
            raise OutputError(
                f"{self._path} was written and is not listed: this store cannot tell whether "
                "another job writes here: choose another directory"
            )
        found = []
        for token in sorted(renewed.keys() - {self._token}):
            says = self._read(token)
            if says is None:
                continue
            rival = _Rival(
                token=token,
                path=self._path_of(token),
                says=says,
                seconds=renewed[self._token] - renewed[token],
            )
            if rival.is_dead:
                storage.remove(rival.path)
            else:
                found.append(rival)
        return found

    def _read(self, token: str) -> dict[str, Any] | None:
        """What a claim says; None where it is gone."""
        data = storage.read_if_there(self._path_of(token))
        if data is None:
            return None
        try:
            value = json.loads(data)
        except (ValueError, RecursionError):
            return {}
        return value if isinstance(value, dict) else {}

    def _path_of(self, token: str) -> str:
        return join(self._directory, CLAIMS, f"{token}.json")

    def _renew(self) -> None:
        while not self._over.wait(RENEW):
            try:
                if storage.exists(self._path):
                    self._write(held=True)
                    continue
            except Exception:  # noqa: BLE001, S112 - out of reach: the next time, or the job says so
                continue
            self._lost.set()
            if self._of_main:
                _thread.interrupt_main()  # winds the job down, as Ctrl-C does
            return

    def _refused(self, rival: _Rival) -> OutputError:
        says = rival.says
        who = f"process {says.get('process')} on {says.get('host')}, since {says.get('since')}"
        return OutputError(
            f"{self._directory}: another job is writing to it ({who}; last sign of life "
            f"{max(rival.seconds, 0):.0f} s before): wait for it, or choose another directory. "
            f"A job that was killed keeps others out for {LAPSE / 60:.0f} minutes, or until "
            f"{rival.path} is removed"
        )

    def _taken(self) -> OutputError:
        return OutputError(
            f"{self._directory}: the lock of this job is gone: somebody removed it, or another job "
            f"took over after {LAPSE / 60:.0f} minutes without a sign of life, and may have "
            "written here too: when no job is at work there, run this one again with `overwrite`"
        )


def _machine() -> str | None:
    """This machine since it was started, and the namespace of its processes' numbers (Linux)."""
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text("ascii").strip()
        return f"{boot} {Path('/proc/self/ns/pid').readlink()}"
    except OSError:
        return None


def _beginning(process: object) -> str | None:
    """When a process of this machine began, in ticks of its clock; None where it is not there."""
    try:
        fields = Path(f"/proc/{process}/stat").read_bytes().rpartition(b")")[2].split()
    except OSError:
        return None
    state, began = fields[0], fields[19]
    return None if state in (b"Z", b"X") else began.decode()
