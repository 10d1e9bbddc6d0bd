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
from pipelines.corpus.documents.compression import DamagedDataError, UnpackedStream
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
            unpacked = None
            if source.compression != "none":
                unpacked = UnpackedStream(stored, source.compression)
            for piece in _pieces(source, options, unpacked or stored):
                for place, data, bad in _without_long_lines(source, options, piece):
                    read = unpacked.consumed if unpacked else stored.tell() - source.start
                    now = min(read, source.size)
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
    last = sys.maxsize if isinstance(stream, UnpackedStream) else source.end - 1
    position = place = source.start  # of the next byte to be read; of the line being read
    if place > last:
        return
    is_inside = False  # a line that begins before
    if isinstance(stream, StoredBytes) and place > 0:
        is_inside = True
        # The line end before the range makes a line begin right at its start.
        position = stream.seek(place - 1)
    # Of a line whose end is not read yet: its bytes, of one over the limit the first ones; how many
    # they are, of which one may be half a line end; and its last byte.
    line, size, end = bytearray(), 0, b""
    limit = options.max_record_bytes + 1

    def too_long(tail: bytes) -> _Piece:
        """Return the bad record of the current line, which ends with ``tail``."""
        last = (end + tail)[-1:]
        whole = size + len(tail) - (last == b"\r")
        raw = bytes(line + tail[:RAW_BYTES])[:whole]
        return place, b"", (_too_long(source, options, place, raw, whole),)

    final = -1
    while final < 0:
        try:
            # Not past the range, except to find the end of its last line.
            missing = last + 1 - position
            chunk = stream.read(min(options.block_bytes, missing) if missing > 0 else SEARCH_BYTES)
        except DamagedDataError as damage:
            bad = BadRecord.of(source, place, str(damage), bytes(line), size)
            yield place, b"", (bad,)
            return
        except LostFileError as lost:
            yield place, b"", (BadRecord.lost(source, place, lost.reason, bytes(line)),)
            return
        if not chunk:
            break
        if is_inside:
            begin = chunk.find(b"\n") + 1
            position += begin or len(chunk)
            if position > last:
                return
            if begin == 0:
                continue
            is_inside = False
            place = position
            chunk = chunk[begin:]
        # The first line end at or after the last byte of the range ends its last line.
        final = chunk.find(b"\n", max(0, last - position))
        cut = (final if final >= 0 else chunk.rfind(b"\n")) + 1
        position += len(chunk)
        used = 0
        if cut and size > limit:
            used = chunk.find(b"\n") + 1
            yield too_long(chunk[: used - 1])
            place += size + used
            line, size = bytearray(), 0
        if cut > used:
            data = b"".join((line, memoryview(chunk)[used:cut]))
            line, size = bytearray(), 0  # a long line is in memory once
            place += len(data)
            yield place - len(data), data, ()
        if cut < len(chunk):
            line += memoryview(chunk)[cut:]
            size += len(chunk) - cut
            end = chunk[-1:]
            if size > limit:
                del line[RAW_BYTES:]
    else:
        return
    if size > limit:
        yield too_long(b"")
    elif size:
        yield place, bytes(line), ()


def _without_long_lines(source: FileRange, options: ReadOptions, piece: _Piece) -> Iterator[_Piece]:
    """Cut ``piece`` at the lines over the limit, which become bad records."""
    place, data, bad = piece
    begin = 0  # of the lines that are not yielded yet
    position = 0
    while len(data) - position > options.max_record_bytes:
        line_end = data.find(b"\n", position) + 1 or len(data)
        line = data[position:line_end].removesuffix(b"\n").removesuffix(b"\r")
        if len(line) > options.max_record_bytes:
            long = _too_long(source, options, place + position, line, len(line))
            yield place + begin, data[begin:position], (long,)
            begin = line_end
        position = line_end
    if begin == 0 or begin < len(data):
        yield place + begin, data[begin:], bad


def _too_long(
    source: FileRange, options: ReadOptions, place: int, raw: bytes, size: int
) -> BadRecord:
    return BadRecord.of(source, place, options.too_long(size), raw, size)
