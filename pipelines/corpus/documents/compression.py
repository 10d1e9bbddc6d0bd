"""Unpack gzip, Zstandard, bzip2 and xz files as a stream.

Files of several members, frames or streams are read to their end. Memory is bounded whatever a
file unpacks to: each step makes at most a fixed number of bytes. The bytes before damage are
returned first, and the error is raised after them.
"""

from __future__ import annotations

import bz2
import lzma
import zlib
from typing import TYPE_CHECKING, Any

import zstandard

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from pipelines.corpus.documents.stored import StoredBytes
    from pipelines.corpus.files import Compression

STEP = 64 << 10
# A Zstandard block of 128 KiB can take 4 bytes, and its decoder cannot be stopped: 2 KiB of
# input make at most 64 MiB. Larger steps were not measurably faster.
ZSTD_STEP = 2 << 10
GZIP_STEP = 16 << 10  # makes at most 16 MiB
XZ_MEMORY = 256 << 20  # `xz -9` needs 65 MiB to unpack


class DamagedDataError(Exception):
    """Compressed data that cannot be unpacked; the message says why and where."""


class UnpackedStream:
    """The unpacked bytes of a compressed file, from its beginning.

    Args:
        stored: the file.
        compression: its compression.
    """

    def __init__(self, stored: StoredBytes, compression: Compression) -> None:
        self._stored = stored
        self._label, self._open_member, self._padding = _CODECS[compression]
        self._pieces = self._unpacked()
        self._ready = memoryview(b"")  # unpacked, not yet handed out
        self._damage: DamagedDataError | None = None
        self._consumed = 0  # bytes of the stored file

    def read(self, size: int, /) -> bytes:
        """Read the next ``size`` unpacked bytes; fewer only at the end or before damage.

        Raises:
            DamagedDataError: the file is damaged or truncated here.
        """
        pieces: list[memoryview] = []
        missing = size
        try:
            while missing and (self._ready or (piece := next(self._pieces, b""))):
                self._ready = self._ready or memoryview(piece)
                pieces.append(self._ready[:missing])
                self._ready = self._ready[missing:]
                missing -= len(pieces[-1])
        except DamagedDataError as damage:  # after which there are no pieces
            self._damage = damage
        if self._damage is not None and missing and not pieces:
            raise self._damage
        return b"".join(pieces)

    def _unpacked(self) -> Iterator[bytes]:
        """Yield the contents of one member after the other, in pieces that are not empty."""
        data, members = self._take(), 0
        if not data:
            raise DamagedDataError(f"the file is empty, which is no {self._label} data")
        while data:
            begin, given, member = self._consumed - len(data), 0, self._open_member()
            while not member.eof:
                if member.needs_input:
                    fed = self._consumed - len(data)
                    if not (data := data or self._take()):
                        raise DamagedDataError(
                            f"the {self._label} data is truncated (the file ends after "
                            f"{self._consumed} bytes): the rest of it is lost"
                        )
                try:
                    piece, data = member.decompress(data, STEP), b""
                except _ERRORS as error:
                    lost = self._before_damage(begin, fed, given)
                    if lost:
                        yield lost
                    reason = self._describe(error, given + len(lost), members)
                    raise DamagedDataError(reason) from error
                given += len(piece)
                if piece:
                    yield piece
            data, members = member.unused_data.lstrip(self._padding), members + 1
            while not data and (more := self._take()):
                data = more.lstrip(self._padding)

    def _before_damage(self, begin: int, fed: int, known: int) -> bytes:
        """Return the output of a member before the damage, fed byte by byte.

        Args:
            begin: the offset of the member in the file.
            fed: the offset of the last input of the member in the file.
            known: the number of bytes of output that are known already.
        """
        self._stored.seek(begin)
        member, position = self._open_member(), begin
        pieces: list[bytes] = []
        while True:
            data = b""
            if member.needs_input:
                data = self._stored.read(max(min(STEP, fed - position), 1))
                position += len(data)
                if not data:  # another file by now
                    break
            try:
                piece = member.decompress(data, STEP)
            except _ERRORS:
                break
            pieces += filter(None, [piece[known:]])
            known = max(known - len(piece), 0)
        self._stored.seek(self._consumed)
        return b"".join(pieces)

    def _describe(self, error: Exception, given: int, members: int) -> str:
        if given:
            return (
                f"the {self._label} data is damaged before byte {self._consumed} of the file "
                f"({error}): the rest of it is lost, what came before may be wrong"
            )
        if members:
            return (
                f"what follows the end of the {self._label} data, before byte {self._consumed} of "
                f"the file, is not {self._label} ({error})"
            )
        return f"the file is not {self._label} data, or damaged where it begins ({error})"

    def _take(self) -> bytes:
        data = self._stored.read(STEP)
        self._consumed += len(data)
        return data


def unpacked(stored: StoredBytes, compression: Compression) -> UnpackedStream | StoredBytes:
    """Return the unpacked bytes of a file."""
    return stored if compression == "none" else UnpackedStream(stored, compression)


class _InSteps:
    """A decoder without a limit of output, with the interface of ``bz2.BZ2Decompressor``.

    Args:
        decoder: the decoder of one member or frame.
        step: the bytes of input that the decoder gets at once.
    """

    def __init__(self, decoder: Any, step: int) -> None:
        self._decoder = decoder
        self._step = step
        self._data = b""
        self._next = 0

    @property
    def eof(self) -> bool:
        return bool(self._decoder.eof)

    @property
    def unused_data(self) -> bytes:
        return bytes(self._decoder.unused_data) + self._data[self._next :]

    @property
    def needs_input(self) -> bool:
        return self._next >= len(self._data)

    def decompress(self, data: bytes, max_length: int, /) -> bytes:  # noqa: ARG002 - see the steps
        if data:
            self._data, self._next = data, 0
        piece = self._data[self._next : self._next + self._step]
        self._next += len(piece)
        return bytes(self._decoder.decompress(piece))


_ERRORS = (zlib.error, zstandard.ZstdError, lzma.LZMAError, OSError, EOFError, ValueError)
_CODECS: dict[Compression, tuple[str, Callable[[], Any], bytes]] = {
    # name, one member (with the interface of `bz2.BZ2Decompressor`), what may fill up a file
    "gz": (
        "gzip",
        lambda: _InSteps(zlib.decompressobj(wbits=16 + zlib.MAX_WBITS), GZIP_STEP),
        b"\0",
    ),
    "zst": (
        "Zstandard",
        lambda: _InSteps(zstandard.ZstdDecompressor().decompressobj(), ZSTD_STEP),
        b"",
    ),
    "bz2": ("bzip2", bz2.BZ2Decompressor, b""),
    "xz": (
        "xz",
        lambda: lzma.LZMADecompressor(format=lzma.FORMAT_XZ, memlimit=XZ_MEMORY),
        b"\0",
    ),
}
