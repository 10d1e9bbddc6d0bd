"""Unpack gzip, Zstandard, bzip2 and xz files as a stream.

Files of several members, frames or streams are read to their end. Memory is bounded whatever a
file unpacks to: each step makes at most a fixed number of bytes. Damage does not hide what came
before it: those bytes are handed out first, the error after them.
"""

from __future__ import annotations

import bz2
import lzma
import zlib
from typing import TYPE_CHECKING, Protocol

import zstandard

if TYPE_CHECKING:
    from collections.abc import Callable

    from pipelines.corpus.documents.stored import StoredFile
    from pipelines.corpus.files import Compression

STEP = 64 << 10
# A Zstandard block of 128 KiB can take 4 bytes, and its decoder cannot be stopped: 2 KiB of
# input make at most 64 MiB. Larger steps were not measurably faster.
ZSTD_STEP = 2 << 10
XZ_MEMORY = 256 << 20  # `xz -9` needs 65 MiB to unpack


class DamagedDataError(Exception):
    """Compressed data that cannot be unpacked any further; says why and where."""


class ByteStream(Protocol):
    """The unpacked bytes of a file from some offset on."""

    def read(self, size: int, /) -> bytes:
        """The next ``size`` bytes, fewer only at the end."""
        ...


class _Member(Protocol):
    """One gzip member, Zstandard frame, bzip2 or xz stream being unpacked."""

    @property
    def eof(self) -> bool: ...
    @property
    def unused_data(self) -> bytes: ...
    @property
    def needs_input(self) -> bool: ...
    def decompress(self, data: bytes, max_length: int, /) -> bytes: ...


class UnpackedStream:
    """The unpacked bytes of a compressed file, from its beginning."""

    def __init__(self, stored: StoredFile, compression: Compression) -> None:
        self._stored = stored
        self._label, self._open_member, self._padding = _CODECS[compression]
        self._member: _Member | None = None
        self._members = 0  # finished ones
        self._packed = b""  # read from the file, not yet given to a member
        self._taken = 0  # bytes read from the file
        self._ready = memoryview(b"")  # unpacked, not yet handed out
        self._damage: DamagedDataError | None = None
        self._member_begin = 0  # in the file
        self._given = 0  # bytes that the member at hand has given
        self._fed_begin = 0  # in the file: what the member was given last

    @property
    def consumed(self) -> int:
        """Bytes of the stored file that were read so far."""
        return self._taken - len(self._packed)

    def read(self, size: int, /) -> bytes:
        """The next ``size`` unpacked bytes; fewer only at the end or before damage.

        Raises:
            DamagedDataError: nothing more can be unpacked, though the file has not ended well.
        """
        if self._damage is not None and not self._ready:
            raise self._damage
        pieces: list[memoryview] = []
        missing = size
        try:
            while missing and (self._ready or self._unpack()):
                piece = self._ready[:missing]
                self._ready = self._ready[missing:]
                pieces.append(piece)
                missing -= len(piece)
        except DamagedDataError as damage:
            self._damage = damage
            if not pieces:
                raise
        return b"".join(pieces)

    def _unpack(self) -> bool:
        """Unpack some more into ``_ready``; False at the end of the file."""
        while not self._ready:
            if self._damage is not None:
                raise self._damage
            if self._member is None:
                if not self._begin_member():
                    return False
            elif self._member.eof:
                self._packed = self._member.unused_data + self._packed
                self._member = None
                self._members += 1
            else:
                self._step(self._member)
        return True

    def _begin_member(self) -> bool:
        if self._members:
            self._packed = self._packed.lstrip(self._padding)
        while not self._packed:
            self._packed = self._take()
            if not self._packed:
                if not self._members:
                    raise DamagedDataError(f"the file is empty, which is no {self._label} data")
                return False
            if self._members:
                self._packed = self._packed.lstrip(self._padding)
        self._member = self._open_member()
        self._member_begin, self._given = self.consumed, 0
        return True

    def _step(self, member: _Member) -> None:
        data = b""
        if member.needs_input:
            self._fed_begin = self.consumed
            data, self._packed = self._packed or self._take(), b""
            if not data:
                raise DamagedDataError(
                    f"the {self._label} data is truncated (the file ends after {self._taken} "
                    "bytes): the rest of it is lost"
                )
        try:
            self._ready = memoryview(member.decompress(data, STEP))
            self._given += len(self._ready)
        except _ERRORS as error:
            self._ready = memoryview(self._before_damage())
            self._given += len(self._ready)
            self._damage = DamagedDataError(self._describe(error))

    def _before_damage(self) -> bytes:
        """Return the output of the member before the damage, fed byte by byte."""
        self._stored.seek(self._member_begin)
        member, position, known = self._open_member(), self._member_begin, self._given
        pieces: list[bytes] = []
        while True:
            data = b""
            if member.needs_input:
                data = self._stored.read(max(min(STEP, self._fed_begin - position), 1))
                position += len(data)
                if not data:  # another file by now
                    break
            try:
                piece = member.decompress(data, STEP)
            except _ERRORS:
                break
            pieces += filter(None, [piece[known:]])
            known = max(known - len(piece), 0)
        return b"".join(pieces)

    def _describe(self, error: Exception) -> str:
        if self._given:
            return (
                f"the {self._label} data is damaged before byte {self._taken} of the file "
                f"({error}): the rest of it is lost, what came before may be wrong"
            )
        if self._members:
            return (
                f"what follows the end of the {self._label} data, before byte {self._taken} of "
                f"the file, is not {self._label} ({error})"
            )
        return f"the file is not {self._label} data, or damaged where it begins ({error})"

    def _take(self) -> bytes:
        data = self._stored.read(STEP)
        self._taken += len(data)
        return data


class _GzipMember:
    """``zlib.decompressobj`` with the manners of ``bz2.BZ2Decompressor``."""

    def __init__(self) -> None:
        self._inflate = zlib.decompressobj(wbits=16 + zlib.MAX_WBITS)
        self._full = False

    @property
    def eof(self) -> bool:
        return self._inflate.eof

    @property
    def unused_data(self) -> bytes:
        return self._inflate.unused_data

    @property
    def needs_input(self) -> bool:
        return not self._full and not self._inflate.unconsumed_tail

    def decompress(self, data: bytes, max_length: int, /) -> bytes:
        unpacked = self._inflate.decompress(self._inflate.unconsumed_tail + data, max_length)
        self._full = len(unpacked) == max_length
        return unpacked


class _ZstdFrame:
    """A Zstandard frame, unpacked in steps of bounded size."""

    def __init__(self) -> None:
        self._frame = zstandard.ZstdDecompressor().decompressobj()
        self._data = b""
        self._next = 0

    @property
    def eof(self) -> bool:
        return bool(self._frame.eof)

    @property
    def unused_data(self) -> bytes:
        return bytes(self._frame.unused_data) + self._data[self._next :]

    @property
    def needs_input(self) -> bool:
        return self._next >= len(self._data)

    def decompress(self, data: bytes, max_length: int, /) -> bytes:  # noqa: ARG002 - see ZSTD_STEP
        if data:
            self._data, self._next = data, 0
        step = self._data[self._next : self._next + ZSTD_STEP]
        self._next += len(step)
        return bytes(self._frame.decompress(step))


_ERRORS = (zlib.error, zstandard.ZstdError, lzma.LZMAError, OSError, EOFError, ValueError)
_CODECS: dict[Compression, tuple[str, Callable[[], _Member], bytes]] = {
    # name, one member, what may fill up a file after its members
    "gz": ("gzip", _GzipMember, b"\0"),
    "zst": ("Zstandard", _ZstdFrame, b""),
    "bz2": ("bzip2", bz2.BZ2Decompressor, b""),
    "xz": (
        "xz",
        lambda: lzma.LZMADecompressor(format=lzma.FORMAT_XZ, memlimit=XZ_MEMORY),
        b"\0",
    ),
}
