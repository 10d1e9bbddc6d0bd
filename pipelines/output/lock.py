"""Lock a local output directory, so that only one job at a time writes to the directory.

An object store has no locks. There the run id in the plan decides (`pipelines.output.directory`).
"""

from __future__ import annotations

import contextlib
import fcntl
import os
from pathlib import Path
from typing import TYPE_CHECKING

from pipelines import storage
from pipelines.errors import OutputError

if TYPE_CHECKING:
    from collections.abc import Iterator


@contextlib.contextmanager
def locked(directory: str) -> Iterator[None]:
    """Keep other jobs out of a local directory for as long as the block runs.

    The kernel releases the lock when the process ends, in whatever way. On filesystems without
    locks, no job is kept out.

    Raises:
        OutputError: another job holds the lock, or the directory cannot be opened.
    """
    directory = storage.located(directory)
    if not storage.is_local(directory):
        yield
        return
    with storage.writing(directory):
        try:
            Path(directory).mkdir(parents=True, exist_ok=True)
        except FileExistsError as error:
            raise OutputError(f"{directory} is a file: name a directory") from error
        handle = os.open(directory, os.O_RDONLY)
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
