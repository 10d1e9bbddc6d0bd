"""Small corpora on disk for the tests of reading, and what reading them gives."""

from __future__ import annotations

import bz2
import gzip
import json
import lzma
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import zstandard

from pipelines.corpus.documents import BadRecord, ReadOptions, read_split
from pipelines.corpus.files import input_file
from pipelines.corpus.splits import Split, whole_file

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from pipelines.corpus.documents import Block
    from pipelines.corpus.files import Compression
    from pipelines.corpus.splits import FileRange
    from pipelines.formats import FileFormat

_PACK: dict[Compression, Callable[[bytes], bytes]] = {
    "none": bytes,
    "gz": partial(gzip.compress, mtime=0),
    "zst": zstandard.ZstdCompressor(write_checksum=True).compress,
    "bz2": partial(bz2.compress, compresslevel=1),  # small blocks
    "xz": partial(lzma.compress, preset=1),
}
COMPRESSIONS = tuple(_PACK)


def pack(data: bytes, compression: Compression) -> bytes:
    """``data`` as one member, frame or stream."""
    return _PACK[compression](data)


def stored(format_: str, texts: list[str], **layout: Any) -> bytes:
    """A file of these documents; as ``text``, it is one document.

    ``layout`` is that of Parquet.
    """
    if format_ == "parquet":
        sink = pa.BufferOutputStream()
        pq.write_table(pa.table({"text": pa.array(texts, pa.string())}), sink, **layout)
        return bytes(sink.getvalue())
    lines = [json.dumps({"text": text}) if format_ == "jsonl" else text for text in texts]
    return "".join(line + "\n" for line in lines).encode()


def whole(path: Path, format_: FileFormat, compression: Compression = "none") -> FileRange:
    """All of a file, as a plan would have it."""
    file = input_file(str(path), path.name, path.stat().st_size, format_)
    return whole_file(replace(file, compression=compression), 7)


def cut(source: FileRange, start: int, end: int) -> FileRange:
    """Bytes ``[start, end)`` of the same file."""
    return replace(source, start=start, end=end)


@dataclass
class Found:
    """The result of reading: (id, text, place) of each document, and the bad records."""

    documents: list[tuple[str, str, int]] = field(default_factory=list)
    bad: list[BadRecord] = field(default_factory=list)
    input_bytes: int = 0
    blocks: int = 0

    @property
    def texts(self) -> list[str]:
        return [text for _, text, _ in self.documents]

    @property
    def ids(self) -> list[str]:
        return [id_ for id_, _, _ in self.documents]

    @property
    def places(self) -> list[int]:
        return [place for _, _, place in self.documents]


def read_blocks(source: FileRange, options: ReadOptions) -> Iterator[Block]:
    """Read the blocks of one range."""
    return read_split(Split(part=0, parts=1, pieces=(source,)), options)


def read(*sources: FileRange, options: ReadOptions | None = None) -> Found:
    """Read ranges one after the other, checking what holds for every block."""
    found = Found()
    for source in sources:
        taken = 0
        for block in read_blocks(source, options or ReadOptions()):
            block.texts.validate(full=True)
            assert block.texts.null_count == 0
            assert block.ids.null_count == 0
            assert block.input_bytes >= 0
            assert block.file_indexes.to_pylist() == [source.file_index] * len(block)
            columns = (block.ids.to_pylist(), block.texts.to_pylist(), block.places.to_pylist())
            found.documents.extend(zip(*columns, strict=True))
            found.bad.extend(block.bad)
            found.blocks += 1
            taken += block.input_bytes
        assert taken == source.size
        found.input_bytes += taken
    return found
