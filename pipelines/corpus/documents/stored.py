"""One stored file, opened through Beam's filesystems and held to the size it was planned with."""

from __future__ import annotations

import contextlib
import io
from typing import TYPE_CHECKING

from apache_beam.io.filesystem import CompressionTypes
from apache_beam.io.filesystems import FileSystems

from pipelines.errors import InputError, JobError
from pipelines.files.filesystems import is_local, of_client
from pipelines.files.storage import exists

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import TracebackType

    from typing_extensions import Self

    from pipelines.corpus.splits import FileRange


class LostFileError(InputError):
    """A file that is not what it was when the job was planned: what it held is lost to the job.

    Attributes:
        reason: what became of it, without its name.
    """

    def __init__(self, path: str, reason: str) -> None:
        super().__init__(f"{path}: {reason}: run the job again on inputs that stay as they are")
        self.reason = reason


class StoredFile:
    """The bytes of a file as stored; every failure is an InputError that names the file.

    Has what ``pyarrow.PythonFile`` asks of a file.
    """

    def __init__(self, source: FileRange) -> None:
        self._source = source
        try:
            self._file = FileSystems.open(
                source.path, compression_type=CompressionTypes.UNCOMPRESSED
            )
        except FileNotFoundError as error:
            raise self._lost("is gone now") from error
        except (OSError, ValueError) as error:
            raise InputError(f"{source.path} cannot be opened: {error}") from error
        except Exception as error:
            # The clients of some stores have an error of their own for what is not there.
            with self._named():
                if is_local(source.path) or exists(source.path):
                    raise
            raise self._lost("is gone now") from error
        try:
            self._check_size()
        except BaseException:
            self._file.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close the file."""
        self._file.close()

    @property
    def closed(self) -> bool:
        """Whether the file is closed."""
        return bool(self._file.closed)

    def read(self, size: int) -> bytes:
        """The next ``size`` bytes; fewer only where the file ends.

        What was appended to the file after the plan was made is not read.

        Raises:
            LostFileError: the file ends before the planned size.
            InputError: it cannot be read.
        """
        pieces: list[bytes] = []
        with self._named():
            missing = min(size, max(self._source.file_size - self._file.tell(), 0))
            while missing and (piece := self._file.read(missing)):
                pieces.append(piece)
                missing -= len(piece)
            if missing and self._file.tell() < self._source.file_size:
                self._check_size()
        return pieces[0] if len(pieces) == 1 else b"".join(pieces)

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        """Go to a byte offset."""
        try:
            return int(self._file.seek(offset, whence))
        except (OSError, ValueError) as error:
            raise InputError(f"{self._source.path} cannot be read: {error}") from error

    def tell(self) -> int:
        """The offset of the next byte to be read."""
        return int(self._file.tell())

    @contextlib.contextmanager
    def _named(self) -> Iterator[None]:
        try:
            yield
        except JobError:
            raise
        except OSError as error:
            raise InputError(f"{self._source.path} cannot be read: {error}") from error
        except Exception as error:
            if is_local(self._source.path):
                raise  # the clients of some stores have errors of their own
            raise InputError(f"{self._source.path} cannot be read: {of_client(error)}") from error

    def _lost(self, now: str) -> LostFileError:
        return LostFileError(
            self._source.path,
            f"the file had {self._source.file_size} bytes when the job was planned and {now}",
        )

    def _check_size(self) -> None:
        self.seek(0, io.SEEK_END)
        size, planned = self.tell(), self._source.file_size
        if size != planned:
            raise self._lost(f"has {size} now")
        self.seek(0)
