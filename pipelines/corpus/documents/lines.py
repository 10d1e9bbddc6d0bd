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
            unpacked, begin = None, None
            if source.compression == "none":
                begin = _first_line(stored, source)
            else:
                unpacked, begin = UnpackedStream(stored, source.compression), 0
            stream = unpacked or stored
            for piece in () if begin is None else _pieces(source, options, stream, begin=begin):
                for place, data, bad in _without_long_lines(source, options, piece):
                    read = unpacked.consumed if unpacked else stored.tell() - source.start
                    now = min(read, source.size)
                    yield Lines(place=place, data=data, bad=bad, input_bytes=now - taken)
                    taken = now
            if taken < source.size or begin is None:
                yield Lines(place=source.end, data=b"", bad=(), input_bytes=source.size - taken)
    except LostFileError as lost:  # before anything was read of it
        bad = (BadRecord.lost(source, source.start, lost.reason),)
        yield Lines(place=source.start, data=b"", bad=bad, input_bytes=source.size - taken)


def _first_line(stored: StoredBytes, source: FileRange) -> int | None:
    """Seek the first line that begins in the range; return its offset, or None without a line."""
    if source.start >= source.end:
        return None
    position = source.start
    if position > 0:
        position -= 1  # the line end before the range makes a line begin right at its start
        stored.seek(position)
        while True:
            chunk = stored.read(min(SEARCH_BYTES, source.end - 1 - position))
            if not chunk:
                return None
            line_end = chunk.find(b"\n")
            position += len(chunk) if line_end < 0 else line_end + 1
            if line_end >= 0:
                break
    stored.seek(position)
    return position


def _pieces(
    source: FileRange, options: ReadOptions, stream: UnpackedStream | StoredBytes, *, begin: int
) -> Iterator[_Piece]:
    """Yield whole lines from ``begin`` to the end of the range, or of the compressed file."""
    last = sys.maxsize if isinstance(stream, UnpackedStream) else source.end - 1
    position = place = begin  # of the next byte to be read; of the line being read
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
