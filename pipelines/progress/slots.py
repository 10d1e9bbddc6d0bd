"""A file in which the workers of this machine say how much of each part is done.

A slot holds totals, not increments, so a part that is done twice counts once. Where the file is not
there (a worker on another machine), a writer does nothing: progress never decides whether a job
succeeds.
"""

from __future__ import annotations

import contextlib
import os
import struct
import tempfile
from io import FileIO
from pathlib import Path
from typing import TYPE_CHECKING, final

if TYPE_CHECKING:
    from types import TracebackType

# Documents, bytes of input, of these bytes of an earlier run; steps done and to do, of other work.
_SLOT = struct.Struct("=qqqqq")
_NOTHING = (0, 0, 0, 0, 0)


def make_slots(parts: int) -> str:
    """A file of so many empty slots; its path.

    Raises:
        OSError: there is no room for it.
    """
    handle, path = tempfile.mkstemp(prefix="bpe-progress-")
    try:
        os.truncate(handle, parts * _SLOT.size)
    except OSError:
        Path(path).unlink(missing_ok=True)
        raise
    finally:
        os.close(handle)
    return path


def add_slots(path: str) -> tuple[int, ...]:
    """Add up the slots of a file, in the order of their fields.

    Raises:
        OSError: the file cannot be read.
    """
    data = Path(path).read_bytes()
    whole = len(data) - len(data) % _SLOT.size
    return tuple(map(sum, zip(_NOTHING, *_SLOT.iter_unpack(data[:whole]), strict=True)))


@final
class SlotWriter:
    """Tells the driver how much of one part is done; used inside a worker.

    Args:
        path: ``Stage.slots_path``; None, or a file that is not there, makes every call a no-op.
        part: the number of the part, below the number given to ``Stage.set_slots``.
    """

    def __init__(self, path: str | None, part: int) -> None:
        self._offset = part * _SLOT.size
        self._file: FileIO | None = None
        if path is not None:
            with contextlib.suppress(OSError):
                # Opened once and kept: a part reports after each block.
                self._file = FileIO(path, "r+")

    def update(self, *, documents: int, bytes: int) -> None:  # noqa: A002 - the unit is the name
        """Set what is done of the part so far: documents, and bytes of input as stored."""
        self._write(documents, bytes, 0, 0, 0)

    def keep(self, *, documents: int, bytes: int) -> None:  # noqa: A002
        """Set what an earlier run did of the part: it is done, but says nothing about speed."""
        self._write(documents, bytes, bytes, 0, 0)

    def advance(self, done: int, total: int) -> None:
        """Set what is done of work that is not measured in bytes."""
        self._write(0, 0, 0, done, total)

    def _write(self, *values: int) -> None:
        if self._file is None:
            return
        try:
            self._file.seek(self._offset)
            self._file.write(_SLOT.pack(*values))
        except OSError:
            self.close()

    def close(self) -> None:
        """Close the file of slots; later updates do nothing."""
        if self._file is not None:
            self._file.close()
            self._file = None

    def __enter__(self) -> SlotWriter:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()
