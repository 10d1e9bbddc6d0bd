"""``bin``: the ids of all rows and nothing else, as nanoGPT maps them; or with llm.c's header.

llm.c (``dev/data/data_common.py``, ``llmc/dataloader.h``): 256 numbers of 32 bits, of which the
first three say the kind of file, its version and the number of ids; all others are 0.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from pipelines import storage
from pipelines.errors import ConfigError
from pipelines.export.format import BLOCK_IDS, file_of, put, read_array, stem
from pipelines.export.rows import Rows
from pipelines.storage import join, replacing

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from pipelines.export.format import ExportJob, StoredPart
    from pipelines.export.manifest import ExportedFile, ExportedPart
    from pipelines.export.source import PartSource

_HEADER = 256
_KINDS = {"uint16": (20240520, 1), "uint32": (20240801, 7)}  # of GPT-2, of Llama 3
_MAX_IDS = (1 << 31) - 1


class FlatFormat:
    """A file a part, or one of all."""

    def check(self, job: ExportJob, largest: int, total: int) -> None:
        """Refuse more ids than the header can count."""
        ids = total if job.settings.one_file else largest
        if job.settings.header != "none" and ids > _MAX_IDS:
            remedy = "leave out `one_file`" if job.settings.one_file else "encode with more splits"
            raise ConfigError(
                f"`header` {job.settings.header}: a file would hold {ids:,} ids, and this header "
                f"counts to {_MAX_IDS:,}: {remedy}"
            )

    def write(self, source: PartSource, job: ExportJob) -> tuple[ExportedFile, ...]:
        """Write the file of a part."""
        part, name = source.part, f"{stem(source.part.file)}.bin"
        with replacing(join(job.directory, name)) as sink:
            put(sink, _header(job, part.tokens))
            for rows in source.rows():
                put(sink, rows.ids.astype(job.id_type, copy=False))
        return (file_of(name, sink.written(), rows=part.rows, tokens=part.tokens),)

    def read(self, stored: StoredPart, job: ExportJob) -> Iterator[Rows]:
        """The ids of a part, without the borders of rows."""
        (named,) = stored.files
        header = _header(job, named.tokens)
        with storage.open_binary(join(stored.directory, named.file)) as file:
            if read_array(file, "<i4", len(header)).tolist() != header.tolist():
                raise ValueError("its header is wrong")
            file.seek(header.nbytes + stored.tokens_before * job.id_type.itemsize)
            yield from read_ids(file, job.id_type, stored.part.tokens)

    def join(self, parts: Sequence[ExportedPart], job: ExportJob) -> tuple[ExportedFile, ...]:
        """Write the file of all parts."""
        name, tokens = f"{job.joined}.bin", sum(part.tokens for part in parts)
        with replacing(join(job.directory, name)) as sink:
            put(sink, header := _header(job, tokens))
            for file in (file for part in parts for file in part.files):
                append_file(sink, join(job.directory, file.file), skip=header.nbytes)
        rows = sum(part.rows for part in parts)
        return (file_of(name, sink.written(), rows=rows, tokens=tokens),)

    def index(self, parts: Sequence[ExportedPart], job: ExportJob) -> dict[str, bytes]:  # noqa: ARG002 - of the protocol
        """None: names alone say the order."""
        return {}


def _header(job: ExportJob, tokens: int) -> np.ndarray[tuple[int], np.dtype[np.int32]]:
    if job.settings.header == "none":
        return np.zeros(0, "<i4")
    header = np.zeros(_HEADER, "<i4")
    header[:3] = *_KINDS[job.encoded.id_type], tokens
    return header


def read_ids(file: Any, kind: np.dtype[Any], count: int) -> Iterator[Rows]:
    """The next ``count`` ids of a file, in blocks, without borders."""
    for first in range(0, count, BLOCK_IDS):
        yield Rows(ids=read_array(file, kind, min(BLOCK_IDS, count - first)), lengths=None)


def append_file(sink: storage.HashingFile, path: str, *, skip: int = 0) -> None:
    """Append a file to another, but for its first ``skip`` bytes.

    Raises:
        InputError, OutputError: one cannot be read or written.
    """
    with storage.reading(path), storage.open_binary(path) as file:
        file.seek(skip)
        while chunk := file.read(storage.CHUNK):
            sink.write(chunk)
