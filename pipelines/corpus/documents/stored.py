"""Read a stored file, and check the size and the version that the job was planned with."""

from __future__ import annotations

import contextlib
import io
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pipelines.errors import InputError
from pipelines.storage import (
    Version,
    exists,
    file_version,
    is_local,
    open_binary,
    reading,
    version_of,
)

if TYPE_CHECKING:
    from typing_extensions import Self

    from pipelines.corpus.splits import FileRange


def _open(path: str) -> Any:
    if is_local(path):
        with reading(path):
            return Path(path).open("rb")  # Arrow's own files have a fileno from pyarrow 19 on
    return open_binary(path)


class LostFileError(InputError):
    """A file that is gone, or has another size than when the job was planned.

    Attributes:
        reason: the reason, without the name of the file.
    """

    def __init__(self, path: str, reason: str) -> None:
        super().__init__(f"{path}: {reason}: run the job again on inputs that stay as they are")
        self.reason = reason


_READ_AHEAD = 4 << 20  # bytes of a compressed object: one request each


class ChangedFileError(InputError):
    """A file that has another version than when the job was planned."""


def check_version(source: FileRange) -> None:
    """Check that a file of the planned size has the planned version too.

    Raises:
        ChangedFileError: the file has another version.
    """
    with contextlib.suppress(LostFileError):
        StoredBytes(source).close()


class StoredBytes:
    """The bytes of a file as stored; every failure is an InputError that names the file.

    The class has the methods that ``pyarrow.PythonFile`` needs. As a context manager, the class
    checks that all bytes were read from the planned version of the file.
    """

    def __init__(self, source: FileRange) -> None:
        self._source = source
        path = source.path
        try:
            self._raw = self._file = _open(path)
        except InputError as error:
            cause = error.__cause__
            # Filesystems of fsspec may have an error of their own for what is not there.
            if isinstance(cause, FileNotFoundError) or not (
                isinstance(cause, OSError) or exists(path)
            ):
                raise self._lost("is gone now") from error
            raise
        if source.compression != "none" and not is_local(path):
            self._file = io.BufferedReader(self._raw, _READ_AHEAD)
        try:
            self._check_size()
            with reading(self._source.path):
                self._version = version_of(source.path, self._raw)
            self._check_version(source.version, self._version)
        except BaseException:
            self._file.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        with contextlib.closing(self):
            if kind is None:
                path = self._source.path
                with reading(path):  # a local file is the one that is open, whatever its name is of
                    now = version_of(path, self._raw) if is_local(path) else file_version(path)
                self._check_version(self._version, now)

    def close(self) -> None:
        """Close the file."""
        self._file.close()

    @property
    def closed(self) -> bool:
        """True if the file is closed."""
        return bool(self._file.closed)

    def read(self, size: int) -> bytes:
        """Read the next ``size`` bytes; fewer only at the end of the file.

        Bytes that were appended to the file after the plan was made are not read.

        Raises:
            LostFileError: the file ends before the planned size.
            InputError: the file cannot be read.
        """
        pieces: list[bytes] = []
        with reading(self._source.path):
            missing = min(size, max(self._source.file_size - self._file.tell(), 0))
            while missing and (piece := self._file.read(missing)):
                pieces.append(piece)
                missing -= len(piece)
            if missing and self._file.tell() < self._source.file_size:
                self._check_size()
        return pieces[0] if len(pieces) == 1 else b"".join(pieces)

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        """Go to a byte offset."""
        with reading(self._source.path):
            return int(self._file.seek(offset, whence))

    def tell(self) -> int:
        """Return the offset of the next byte to be read."""
        return int(self._file.tell())

    def _lost(self, now: str) -> LostFileError:
        return LostFileError(
            self._source.path,
            f"the file had {self._source.file_size} bytes when the job was planned and {now}",
        )

    def _check_version(self, then: Version | None, now: Version | None) -> None:
        if then is not None and now is not None and not then.may_be(now):
            raise ChangedFileError(
                f"{self._source.path} was changed or replaced while the job ran: the output would "
                "mix two versions of it: run the job again when the file no longer changes (with "
                "`resume`, what was made of other files is kept)"
            )

    def _check_size(self) -> None:
        self.seek(0, io.SEEK_END)
        size, planned = self.tell(), self._source.file_size
        if size != planned:
            raise self._lost(f"has {size} now")
        self.seek(0)
