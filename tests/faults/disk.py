"""A filesystem that is small, or cannot be written, in a mount namespace that ends with the test.

Root may mount one; so may other users where the kernel lets them make user namespaces. Where
neither is allowed, tests skip and say so; with ``BPE_DISK_REQUIRED=1`` they fail instead.
"""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from tests.shared_data import missing

if TYPE_CHECKING:
    from collections.abc import Iterator

# Each with the way into what it has made.
_NAMESPACES = (
    (("unshare", "--mount"), ("--mount",)),
    (("unshare", "--user", "--map-root-user", "--mount"), ("--user", "--mount")),
)
_MOUNT = 'mount -t tmpfs -o size="$1" tmpfs "$2" && echo mounted && exec cat'


@dataclass(frozen=True)
class Disk:
    """A filesystem in memory.

    Attributes:
        path: where commands see it that are started with ``inside`` before them.
        inside: a command that runs another one where the filesystem is mounted.
        outside: where this process sees it.
    """

    path: Path
    inside: tuple[str, ...]
    outside: Path

    def remount(self, options: str) -> bool:
        """Change size and whether it can be written; False where an open file forbids it."""
        # Options that it has name users as they are called outside; mount would repeat them.
        mount = (*self.inside, "mount", "--options-mode", "ignore", "-t", "tmpfs")
        done = subprocess.run(
            [*mount, "-o", f"remount,{options}", "tmpfs", str(self.path)],
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0 or "busy" in done.stderr, done.stderr
        return done.returncode == 0


@contextlib.contextmanager
def small_disk(path: Path, *, size: str) -> Iterator[Disk]:
    """Mount one at ``path``."""
    path.mkdir()
    told = []
    for unshare, enter in _NAMESPACES if sys.platform == "linux" else ():
        with subprocess.Popen(
            [*unshare, "sh", "-c", _MOUNT, "sh", size, str(path)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        ) as keeper:
            assert keeper.stdout is not None
            if keeper.stdout.readline() == "mounted\n":
                inside = ("nsenter", f"--target={keeper.pid}", *enter, "--preserve-credentials")
                try:
                    yield Disk(path, inside, Path(f"/proc/{keeper.pid}/root{path}"))
                finally:
                    keeper.kill()
                return
            told.append(keeper.communicate()[1].strip())
    why = "; ".join(told) or sys.platform
    missing(f"no filesystem can be mounted here: {why}", "BPE_DISK_REQUIRED")


def bound_by_permissions() -> tuple[str, ...]:
    """A command that runs another one to which the permissions of files apply, for root too."""
    if os.geteuid() != 0:
        return ()
    return ("setpriv", "--bounding-set=-dac_override,-dac_read_search")
