"""What a format does, and what all formats share."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from pipelines.export.manifest import ExportedFile
from pipelines.output.names import TRAIN, VALIDATION

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import numpy.typing as npt

    from pipelines.export.manifest import Encoded, ExportedPart
    from pipelines.export.rows import Rows
    from pipelines.export.source import PartSource
    from pipelines.settings import ExportSettings
    from pipelines.storage import HashingFile, Written

BLOCK_IDS = 1 << 20  # ids that are read of a file at a time


@dataclass(frozen=True, kw_only=True)
class ExportJob:
    """Everything a worker must know to write, or read, a part; small, and picklable.

    Attributes:
        source: the directory of the encoded corpus.
        directory: of the export.
        encoded: what is exported.
        settings: in which format.
        run: the id of the job's run, where it has one.
        counters_path: the file of progress slots.
    """

    source: str
    directory: str
    encoded: Encoded
    settings: ExportSettings
    run: str = ""
    counters_path: str | None = None

    @property
    def id_type(self) -> np.dtype[Any]:
        """The type of the ids in the encoded corpus, with little-endian bytes."""
        return np.dtype("<u2" if self.encoded.id_type == "uint16" else "<u4")

    @property
    def joined(self) -> str:
        """The files that hold all parts, without their endings."""
        return VALIDATION if self.settings.validation else TRAIN


@dataclass(frozen=True, kw_only=True)
class StoredPart:
    """Where the rows of a part stand.

    Attributes:
        directory: of the export.
        part: how many rows and ids it has.
        files: that hold them.
        rows_before: rows of other parts before them in these files.
        tokens_before: ids of other parts before them.
    """

    directory: str
    part: ExportedPart
    files: tuple[ExportedFile, ...]
    rows_before: int = 0
    tokens_before: int = 0


class Format(Protocol):
    """A format of files of token ids."""

    def check(self, job: ExportJob, largest: int, total: int) -> None:
        """Refuse what no file of the format can hold.

        Args:
            job: the export.
            largest: ids in the largest part.
            total: ids in all parts.

        Raises:
            ConfigError: there is such a thing.
        """
        ...

    def write(self, source: PartSource, job: ExportJob) -> tuple[ExportedFile, ...]:
        """Write the files of a part, which has ids.

        Raises:
            InputError, OutputError: a file cannot be read or written.
        """
        ...

    def read(self, stored: StoredPart, job: ExportJob) -> Iterator[Rows]:
        """The rows of a part, read back in portions of any size.

        Raises:
            ValueError: a file contradicts itself.
            InputError: one cannot be read.
        """
        ...

    def join(self, parts: Sequence[ExportedPart], job: ExportJob) -> tuple[ExportedFile, ...]:
        """Write the files that hold all parts, in this order, from those of the parts.

        Raises:
            InputError, OutputError: a file cannot be read or written.
        """
        ...

    def index(self, parts: Sequence[ExportedPart], job: ExportJob) -> dict[str, bytes]:
        """The files that list those of the parts, by name."""
        ...


def stem(file: str) -> str:
    """The name of a part without folder and ending: how the names of its files begin.

    >>> stem("data/train-00003-of-00042.parquet")
    'train-00003-of-00042'
    """
    return PurePosixPath(file).stem


def put(sink: HashingFile, values: npt.NDArray[Any]) -> None:
    """Append the bytes of an array to a file."""
    if len(values):
        sink.write(np.ascontiguousarray(values).data)


def file_of(name: str, written: Written, *, rows: int, tokens: int) -> ExportedFile:
    """A file that was written, as the manifest names it."""
    return ExportedFile(
        file=name, rows=rows, tokens=tokens, bytes=written.bytes, sha256=written.sha256
    )


def read_exactly(file: Any, size: int) -> bytes:
    """The next ``size`` bytes of a file.

    Raises:
        ValueError: there are fewer.
    """
    data = bytes(file.read(size))
    if len(data) != size:
        raise ValueError("the file is too short")
    return data


def read_array(file: Any, kind: npt.DTypeLike, count: int) -> npt.NDArray[Any]:
    """The next ``count`` numbers of a file.

    Raises:
        ValueError: there are fewer.
    """
    dtype = np.dtype(kind)
    return np.frombuffer(read_exactly(file, count * dtype.itemsize), dtype)
