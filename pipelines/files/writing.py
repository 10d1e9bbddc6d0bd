"""Files that are written whole or not at all, and removed, on any filesystem that Beam knows.

Local names are taken literally, where Beam's local filesystem would read some as a pattern, and
remove a whole folder.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import io
import re
import shutil
import tempfile
import uuid
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from apache_beam.io.filesystem import CompressionTypes
from apache_beam.io.filesystems import FileSystems

from pipelines.errors import JobError, OutputError
from pipelines.files.filesystems import has_folders, is_local, join, of_client, reason

if TYPE_CHECKING:
    from collections.abc import Iterator

    from typing_extensions import Buffer

CHUNK = 1 << 20
_IN_MEMORY = 16 << 20  # of an object to be sent; what is more waits in a file
_TEMPORARY = re.compile(r"\.(.+)\.[0-9a-f]{32}\.tmp")


@dataclass(frozen=True, kw_only=True)
class Written:
    """A file that was written: its size in bytes and the SHA-256 of its contents (hex)."""

    bytes: int
    sha256: str


class HashingFile(io.RawIOBase):
    """A file that is written once, front to back, and knows its size and SHA-256.

    Its errors name the file they are about, so that an `OSError` on the way to it is never taken
    for one of the input.
    """

    def __init__(self, raw: Any, path: str) -> None:
        self._raw = raw
        self._path = path
        self._sha256 = hashlib.sha256()
        self._size = 0

    def writable(self) -> bool:
        """Return True."""
        return True

    def write(self, data: Buffer, /) -> int:
        """Append all of ``data``.

        Raises:
            OutputError: the file cannot be written, as on a full disk.
        """
        view = memoryview(data).cast("B")
        with _writing(self._path):
            self._raw.write(view)
        self._sha256.update(view)
        self._size += len(view)
        return len(view)

    def tell(self) -> int:
        """Bytes written so far."""
        return self._size

    def sha256_with(self, data: bytes) -> str:
        """What the SHA-256 would be if ``data`` were written next."""
        sha256 = self._sha256.copy()
        sha256.update(data)
        return sha256.hexdigest()

    def written(self) -> Written:
        """Size and SHA-256 of what was written so far."""
        return Written(bytes=self._size, sha256=self._sha256.hexdigest())


@contextlib.contextmanager
def replacing(path: str) -> Iterator[HashingFile]:
    """Write the file ``path``: it appears, or is replaced, whole when the block ends.

    Until then it lies beside it under a hidden name of its own (`is_temporary`), which is removed
    where the block raises; on an object store, which cannot rename, in the temporary folder of this
    machine, and is sent under its own name when it is whole. Two writers of one path do not disturb
    each other: the last wins.

    Raises:
        OutputError: the file cannot be written.
    """
    if not has_folders(path):
        with _sending(path) as file:
            yield file
        return
    directory, name = FileSystems.split(path)
    temporary = join(directory, f".{name}.{uuid.uuid4().hex}.tmp")
    with _writing(path):
        raw = FileSystems.create(temporary, compression_type=CompressionTypes.UNCOMPRESSED)
    try:
        yield (file := HashingFile(raw, path))
        with _writing(path):
            raw.close()
            _rename(temporary, path)
        file.close()
    except BaseException:
        with contextlib.suppress(OSError):
            raw.close()
        with contextlib.suppress(OutputError):
            remove(temporary)
        raise


def _rename(old: str, new: str) -> None:
    if is_local(new):
        Path(old).replace(new)  # Beam's error would hide the system's in its text
    else:
        FileSystems.rename([old], [new])


@contextlib.contextmanager
def _sending(path: str) -> Iterator[HashingFile]:
    """Write an object: nothing of it is in the store before all of it is known.

    An upload that fails leaves what was there before, or no object: stores keep one only when it
    was sent to its end.
    """
    with tempfile.SpooledTemporaryFile(max_size=_IN_MEMORY) as held:
        yield (file := HashingFile(held, path))
        file.close()
        held.seek(0)
        with _writing(path):
            raw = FileSystems.create(path, compression_type=CompressionTypes.UNCOMPRESSED)
            try:
                shutil.copyfileobj(held, raw, CHUNK)
            except BaseException:
                # What is closed, if only by the garbage collector, counts as sent to its end. Where
                # that fails too, nothing was sent, and what was there before is there still.
                with contextlib.suppress(Exception):
                    raw.close()
                    FileSystems.delete([path])
                raise
            raw.close()


@contextlib.contextmanager
def _writing(path: str) -> Iterator[None]:
    try:
        yield
    except JobError:
        raise
    except OSError as error:
        raise OutputError(f"{path}: cannot write: {reason(error)}{_remedy(error)}") from error
    except Exception as error:
        if is_local(path):
            raise
        # The clients of stores have errors of their own.
        raise OutputError(f"{path}: cannot write: {of_client(error)}") from error


def write(path: str, data: bytes) -> Written:
    """Write the file ``path`` as in `replacing`."""
    with replacing(path) as file:
        file.write(data)
    return file.written()


def is_temporary(name: str) -> str | None:
    """The name of the file that ``name`` would have become, if `replacing` gave it; else None."""
    match = _TEMPORARY.fullmatch(name)
    return match[1] if match else None


def make_directory(directory: str) -> None:
    """Make ``directory`` and what is above it; a no-op on object stores.

    Raises:
        OutputError: it cannot be made.
    """
    if is_local(directory):
        try:
            Path(directory).mkdir(parents=True, exist_ok=True)
        except FileExistsError as error:
            raise OutputError(f"{directory} is a file: name a directory") from error
        except OSError as error:
            raise OutputError(
                f"{directory}: cannot make it: {reason(error)}{_remedy(error)}"
            ) from error


def remove(path: str) -> None:
    """Remove one file (a symbolic link itself, never what it points to); none there is fine.

    Raises:
        OutputError: it is there and cannot be removed.
    """
    try:
        if is_local(path):
            Path(path).unlink()
        elif FileSystems.exists(path):
            FileSystems.delete([path])
    except FileNotFoundError:
        pass
    except OSError as error:
        raise OutputError(f"{path}: cannot remove: {reason(error)}{_remedy(error)}") from error


def _remedy(error: OSError) -> str:
    """What helps against an error of writing, where that is known."""
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return ": make room, then finish the job with `resume`"
    if error.errno == errno.EFBIG:
        return (
            ": allow larger files (ulimit -f; some filesystems have a limit of their own), then "
            "finish the job with `resume`"
        )
    if error.errno in (errno.EROFS, errno.EACCES, errno.EPERM):
        return ": make it writable and go on with `resume`, or choose another directory"
    return ""
