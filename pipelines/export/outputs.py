"""Outputs of a part: files written, or compared with existing ones."""

from __future__ import annotations

import contextlib
import hashlib
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from pipelines import storage
from pipelines.corpus.keys import mix64
from pipelines.errors import InputError, VerificationError
from pipelines.stage.record import StoredFile
from pipelines.storage import Written, join, replacing

if TYPE_CHECKING:
    from collections.abc import Iterator

    from typing_extensions import Buffer

    from pipelines.encode.rows import Ids


class Sink(Protocol):
    """A file that is written front to back."""

    def write(self, data: Buffer, /) -> int:
        """Append data."""
        ...

    def written(self) -> Written:
        """Size and SHA-256 of all data."""
        ...


class Outputs:
    """The files of a part, which are written below a directory.

    Attributes:
        directory: of the export.
        files: those that are complete.
    """

    compares = False

    def __init__(self, directory: str) -> None:
        self.directory = directory
        self.files: list[StoredFile] = []

    @property
    def totals(self) -> dict[str, int]:
        """More totals of the part."""
        return {}

    def see(self, ids: Ids) -> None:
        """Look at ids of documents that are in the part, or dropped with its last row."""

    def file(self, name: str) -> contextlib.AbstractContextManager[Any]:
        """A `Sink` for the file of this name, which is complete when the block ends."""
        return replacing(join(self.directory, name))

    def add(self, name: str, sink: Sink, *, rows: int, tokens: int) -> None:
        """Name a file that is complete, and what is in it."""
        self.files.append(StoredFile.of(name, sink.written(), rows=rows, tokens=tokens))


def tally(ids: Ids) -> int:
    """A number of 64 bits that says which ids these are, whatever their order."""
    return int(mix64(ids.astype(np.uint64) + np.uint64(1)).sum(dtype=np.uint64))


class Comparison(Outputs):
    """The same files, of which nothing is written: each is compared with the one that is there."""

    compares = True
    _tally = 0

    @property
    def totals(self) -> dict[str, int]:
        """The `tally` of all ids."""
        return {"tally": self._tally}

    def see(self, ids: Ids) -> None:
        """Count ids."""
        self._tally = (self._tally + tally(ids)) % (1 << 64)

    @contextlib.contextmanager
    def file(self, name: str) -> Iterator[_Compared]:
        """A sink that refuses data other than that of the file.

        Raises:
            VerificationError: the file is missing, or differs.
        """
        path = join(self.directory, name)
        try:
            file = storage.open_binary(path)
        except InputError as error:
            raise VerificationError(f"{path} is missing: {error}") from error
        with file:
            compared = _Compared(path, file)
            yield compared
            compared.end()


class _Compared:
    """A sink that reads what it would write."""

    def __init__(self, path: str, file: Any) -> None:
        self._path, self._file = path, file
        self._sha256, self._size = hashlib.sha256(), 0

    def write(self, data: Buffer, /) -> int:
        view = memoryview(data).cast("B")
        with storage.reading(self._path):
            found = self._file.read(len(view))
        if found != view:
            same = next((at for at, one in enumerate(found) if one != view[at]), len(found))
            raise DiffersError(self._path, self._size + same, shorter=same == len(found))
        self._sha256.update(view)
        self._size += len(view)
        return len(view)

    def tell(self) -> int:
        return self._size

    def end(self) -> None:
        with storage.reading(self._path):
            if self._file.read(1):
                raise DiffersError(self._path, self._size, longer=True)

    def written(self) -> Written:
        return Written(bytes=self._size, sha256=self._sha256.hexdigest())


class DiffersError(VerificationError):
    """A file differs from what its sources give.

    Attributes:
        offset: of the first byte that differs.
    """

    def __init__(
        self, path: str, offset: int, *, shorter: bool = False, longer: bool = False
    ) -> None:
        what = "it ends" if shorter else "it goes on" if longer else "it differs"
        super().__init__(f"{path}: {what} at byte {offset:,} from what its sources give")
        self.offset = offset
