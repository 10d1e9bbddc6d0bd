"""Read files that are one document each.

The text is all bytes of the file, with line ends and a byte order mark. Small files share a
block, so that a million of them do not make a million blocks.
"""

from __future__ import annotations

from itertools import accumulate
from typing import TYPE_CHECKING

import pyarrow as pa

from pipelines.corpus.documents.block import (
    RAW_BYTES,
    BadRecord,
    Block,
    ReadOptions,
    well_formed,
)
from pipelines.corpus.documents.compression import DamagedDataError, unpacked
from pipelines.corpus.documents.stored import LostFileError, StoredBytes

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from pipelines.corpus.splits import FileRange


def read_texts(sources: Sequence[FileRange], options: ReadOptions) -> Iterator[Block]:
    """Read one document from each file of ``sources``; its id is the file's name."""
    held: list[tuple[FileRange, bytes]] = []
    bad: list[BadRecord] = []
    text_bytes = input_bytes = 0
    for source in sources:
        try:
            document = _whole(source, options)
        except LostFileError as lost:
            document = BadRecord.lost(source, 0, lost.reason)
        if isinstance(document, BadRecord):
            bad.append(document)
        else:
            held.append((source, document))
            text_bytes += len(document)
        input_bytes += source.size
        if text_bytes >= options.block_bytes:
            yield _block(held, bad, input_bytes)
            held, bad = [], []
            text_bytes = input_bytes = 0
    if held or bad:
        yield _block(held, bad, input_bytes)


def _whole(source: FileRange, options: ReadOptions) -> bytes | BadRecord:
    limit, size = options.max_record_bytes, source.file_size
    is_packed = source.compression != "none"
    data = b""
    with StoredBytes(source) as stored:
        stream = unpacked(stored, source.compression)
        try:
            data = stream.read(limit + 1 if is_packed or size <= limit else RAW_BYTES)
            stream.read(1)  # nothing, unless packed data is damaged after the text
        except DamagedDataError as damage:
            return BadRecord.of(source, 0, str(damage), data)
    size = len(data) if is_packed else size
    if size > limit:
        reason = (
            f"the file has {'at least ' if is_packed else ''}{size} bytes of text, more than the "
            f"{limit} that a record may have: cut it into documents (or read it as lines), or "
            "raise `max_record_size`"
        )
        return BadRecord.of(source, 0, reason, data, size)
    return data


def _block(
    held: Sequence[tuple[FileRange, bytes]], bad: Sequence[BadRecord], input_bytes: int
) -> Block:
    sources = [source for source, _ in held]
    data = held[0][1] if len(held) == 1 else b"".join(text for _, text in held)
    offsets = pa.array(accumulate((len(text) for _, text in held), initial=0), pa.int64())
    texts = pa.LargeStringArray.from_buffers(len(held), offsets.buffers()[1], pa.py_buffer(data))
    block = Block(
        texts=texts,
        places=pa.repeat(pa.scalar(0, pa.int64()), len(held)),
        file_indexes=pa.array([source.file_index for source in sources], pa.int32()),
        own_ids=pa.array([source.name for source in sources], pa.string()),
        name="",
        bad=tuple(bad),
        input_bytes=input_bytes,
    )
    return well_formed(block, sources)
