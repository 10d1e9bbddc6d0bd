r"""Read the lines of a range: as documents (``lines``), and as the records of ``jsonl``.

A line ends at ``\n``; one ``\r`` before it belongs to the line end. An empty line is an empty
document. A last line without a line end counts. Everything else is text, a byte order mark too.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

from bpe import _native
from bpe._arrow import binary_rows, int64_array
from pipelines.corpus.documents.block import (
    RAW_BYTES,
    BadRecord,
    Block,
    ReadOptions,
    text_block,
    well_formed,
)
from pipelines.corpus.documents.compression import DamagedDataError, UnpackedStream, unpacked
from pipelines.corpus.documents.stored import LostFileError, StoredBytes

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pipelines.corpus.splits import FileRange


SEARCH_BYTES = 64 << 10
_Piece: TypeAlias = tuple[int, bytes, tuple[BadRecord, ...]]  # place, whole lines, the rest


@dataclass(frozen=True, kw_only=True)
class Lines:
    """Some whole lines of a file, and the progress in the range.

    Attributes:
        place: the byte offset of the lines in the uncompressed file.
        data: the lines with their line ends, which the last line may lack.
        bad: bad records among or after the lines.
        input_bytes: bytes of input, as stored, since the ``Lines`` before.
    """

    place: int
    data: bytes
    bad: tuple[BadRecord, ...]
    input_bytes: int


def read_lines(source: FileRange, options: ReadOptions) -> Iterator[Block]:
    """Read the lines that begin in ``source``, each a document."""
    for lines in whole_lines(source, options):
        text, offsets, places = _native.split_lines(lines.data, lines.place)
        block = text_block(
            source,
            texts=binary_rows(text, offsets),
            places=int64_array(places),
            bad=lines.bad,
            input_bytes=lines.input_bytes,
        )
        yield well_formed(block, [source])


def whole_lines(source: FileRange, options: ReadOptions) -> Iterator[Lines]:
    """Cut the lines that begin in ``source`` into pieces of about ``options.block_bytes``.

    Lines over ``options.max_record_bytes`` are bad records; so are the rest of a damaged file, and
    the rest of a file that is gone or has another size now.
    Memory: a few blocks, or twice the longest line within the limit.
    """
    taken = 0
    try:
        with StoredBytes(source) as stored:
            # The line end before the range makes a line begin right at its start.
            stored.seek(max(source.start - 1, 0))
            for place, data, bad in _pieces(source, options, unpacked(stored, source.compression)):
                now = min(stored.tell() - source.start, source.size)
                yield Lines(place=place, data=data, bad=bad, input_bytes=now - taken)
                taken = now
            if taken < source.size:
                yield Lines(place=source.end, data=b"", bad=(), input_bytes=source.size - taken)
    except LostFileError as lost:  # before anything was read of it
        bad = (BadRecord.lost(source, source.start, lost.reason),)
        yield Lines(place=source.start, data=b"", bad=bad, input_bytes=source.size - taken)


def _pieces(
    source: FileRange, options: ReadOptions, stream: UnpackedStream | StoredBytes
) -> Iterator[_Piece]:
    """Yield the whole lines that begin in the range, or in the compressed file."""
    place = source.start  # of the line whose end is not read yet
    # The bytes of this line; of one over the limit, the first ones and the last one, which may be
    # half a line end, and how many are left out between them.
    line, left_out = bytearray(), 0
    try:
        for position, chunk in _chunks(source, options, stream):
            if not line:
                place = position
            cut = chunk.rfind(b"\n") + 1
            if cut:
                data = b"".join((line, memoryview(chunk)[:cut]))
                line = bytearray()  # a long line is in memory once
                yield from _without_long_lines(source, options, place, data, left_out)
                place, left_out = position + cut, 0
            line += memoryview(chunk)[cut:]
            if len(line) + left_out > options.max_record_bytes + 1:
                left_out += len(line)
                del line[RAW_BYTES:-1]
                left_out -= len(line)
    except DamagedDataError as damage:
        size = len(line) + left_out
        yield place, b"", (BadRecord.of(source, place, str(damage), bytes(line), size),)
    except LostFileError as lost:
        yield place, b"", (BadRecord.lost(source, place, lost.reason, bytes(line)),)
    else:
        if line:
            yield from _without_long_lines(source, options, place, bytes(line), left_out)


def _chunks(
    source: FileRange, options: ReadOptions, stream: UnpackedStream | StoredBytes
) -> Iterator[tuple[int, bytes]]:
    """Yield the bytes of the lines that begin in the range, each chunk with its place."""
    position = max(source.start - 1, 0)
    end = source.end if source.compression == "none" else sys.maxsize
    if source.start >= end:
        return
    is_inside = source.start > 0  # of a line that begins before
    # Not past the range, except to find the end of its last line.
    while chunk := stream.read(
        min(options.block_bytes, end - position) if position < end else SEARCH_BYTES
    ):
        begin = chunk.find(b"\n") + 1 if is_inside else 0
        if is_inside:
            position += begin or len(chunk)
            if position >= end:
                return
            if begin == 0:
                continue
            is_inside = False
            chunk = chunk[begin:]
        # The first line end at or after the last byte of the range ends its last line.
        final = chunk.find(b"\n", max(0, end - 1 - position)) + 1
        yield position, chunk[:final] if final else chunk
        if final:
            return
        position += len(chunk)


def _without_long_lines(
    source: FileRange, options: ReadOptions, place: int, data: bytes, left_out: int
) -> Iterator[_Piece]:
    """Cut lines at those over the limit, which become bad records.

    ``left_out`` bytes of the first line are not in ``data``.
    """
    begin = 0  # of the lines that are not yielded yet
    position = 0
    while len(data) + left_out - position > options.max_record_bytes:
        line_end = data.find(b"\n", position) + 1 or len(data)
        line = data[position:line_end].removesuffix(b"\n").removesuffix(b"\r")
        size = len(line) + left_out
        if size > options.max_record_bytes:
            at, reason = place + position, options.too_long(size)
            bad = BadRecord.of(source, at, reason, line, size)
            yield place + begin, data[begin:position], (bad,)
            begin, place, left_out = line_end, place + left_out, 0
        position = line_end
    if begin == 0 or begin < len(data):
        yield place + begin, data[begin:], ()
