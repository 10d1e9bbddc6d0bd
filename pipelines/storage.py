"""Files on any filesystem that Beam knows: written whole or not at all, listed, removed.

A local path uses the operating system directly where Beam's local filesystem would read a name as
a pattern or remove a whole folder.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import importlib.util
import io
import os
import re
import shutil
import tempfile
import uuid
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import pyarrow as pa
from apache_beam.io.filesystem import CompressionTypes, FileSystem
from apache_beam.io.filesystems import FileSystems

from pipelines.endpoints import check_s3
from pipelines.errors import ConfigError, InputError, JobError, OutputError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from typing_extensions import Buffer

CHUNK = 1 << 20
_IN_MEMORY = 16 << 20  # of an object to be sent; what is more waits in a file
_TEMPORARY = re.compile(r"\.(.+)\.[0-9a-f]{32}\.tmp")


class _Extra(NamedTuple):
    """What a filesystem of Beam needs: our extra, Beam's, and a module that comes with them."""

    name: str
    of_beam: str
    module: str


# Beam knows some of these schemes without the packages, and then fails with an error of its own.
_EXTRAS = {
    "gs": _Extra("gcs", "gcp", "google.cloud.storage"),
    "s3": _Extra("s3", "aws", "boto3"),
    "azfs": _Extra("azure", "azure", "azure.storage.blob"),
    "hdfs": _Extra("hdfs", "hadoop", "hdfs"),
}


@dataclass(frozen=True, kw_only=True)
class Entry:
    """What stands under a name in a directory; a symbolic link is not followed."""

    name: str
    kind: Literal["file", "directory", "link", "other"]
    size: int


@dataclass(frozen=True, kw_only=True)
class Written:
    """A file that was written: its size in bytes and the SHA-256 of its contents (hex)."""

    bytes: int
    sha256: str


def is_local(path: str) -> bool:
    """Whether ``path`` is on a filesystem of this machine (it has no scheme)."""
    return FileSystems.get_scheme(path) is None


def check_filesystem(path: str) -> None:
    """Refuse a path of a filesystem that is unknown, or cannot be used here.

    Raises:
        ConfigError: it is one; the message names the extra to install.
        JobError: no server answers where S3 is said to be.
    """
    scheme = FileSystems.get_scheme(path)
    if scheme is None:
        return
    known = _EXTRAS.get(scheme)
    if known is not None and not _is_installed(known.module):
        raise ConfigError(
            f"{path}: {scheme}:// needs packages that are not installed here: "
            f"pip install 'beam-bpe[{known.name}]' (or 'apache-beam[{known.of_beam}]')"
        )
    if all(one.scheme() != scheme for one in FileSystem.get_all_subclasses()):
        schemes = ", ".join(f"{one}://" for one in _EXTRAS)
        raise ConfigError(
            f"{path}: no filesystem is known for {scheme}://: copy the files to a local one, or to "
            f"one of {schemes}"
        )
    try:
        found = FileSystems.get_filesystem(path)
    except (ValueError, OSError) as error:
        raise ConfigError(f"{path}: {scheme}:// cannot be used: {error}") from error
    if scheme == "s3":
        check_s3(path, found._options)  # noqa: SLF001 - those that its requests are made with


def _is_installed(module: str) -> bool:
    try:
        return importlib.util.find_spec(module) is not None
    except ModuleNotFoundError:  # a package that it is in
        return False


def located(directory: str) -> str:
    """``directory`` as every worker can use it: absolute where local, without a slash at the end.

    Raises:
        ConfigError: its filesystem cannot be used here, or the name holds a character that remote
            filesystems read as a pattern.
    """
    if is_local(directory):
        return os.path.normpath(Path.cwd() / directory)
    check_filesystem(directory)
    if re.search(r"[*?\[\]]", directory):
        raise ConfigError(
            f"{directory}: '*', '?', '[' and ']' are patterns to this filesystem: rename it"
        )
    return directory.rstrip("/")


def join(directory: str, *names: str) -> str:
    """The path of a name below ``directory``."""
    return str(FileSystems.join(directory, *names))


def entries(directory: str, *, beginning: str = "") -> list[Entry]:
    """What ``directory`` holds, sorted by name, not recursively; nothing where it is not there.

    On object stores only the objects right below ``directory`` are listed. Names may be asked for
    by their ``beginning``.

    Raises:
        OutputError: ``directory`` is a file, or cannot be listed.
    """
    try:
        if is_local(directory):
            with os.scandir(directory) as found:
                listed = [_local_entry(one) for one in found if one.name.startswith(beginning)]
        else:
            listed = [
                Entry(
                    name=file.path[len(directory) + 1 :],
                    kind="file",
                    size=int(file.size_in_bytes),
                )
                for result in FileSystems.match([f"{directory}/{beginning}*"])
                for file in result.metadata_list
            ]
    except FileNotFoundError:
        return []
    except NotADirectoryError as error:
        raise OutputError(f"{directory} is a file: name a directory") from error
    except OSError as error:
        raise OutputError(f"{directory}: cannot list: {reason(error)}") from error
    return sorted(listed, key=lambda entry: entry.name)


def _local_entry(entry: os.DirEntry[str]) -> Entry:
    if entry.is_symlink():
        return Entry(name=entry.name, kind="link", size=0)
    if entry.is_dir():
        return Entry(name=entry.name, kind="directory", size=0)
    if entry.is_file():
        return Entry(name=entry.name, kind="file", size=entry.stat().st_size)
    return Entry(name=entry.name, kind="other", size=0)


def make_directory(directory: str) -> None:
    """Make ``directory`` and what is above it; a no-op on object stores.

    Raises:
        OutputError: it cannot be made.
    """
    if is_local(directory):
        try:
            Path(directory).mkdir(parents=True, exist_ok=True)
        except FileExistsError as error:
            raise OutputError(f"{directory} is a file: name a directory") from error
        except OSError as error:
            raise OutputError(
                f"{directory}: cannot make it: {reason(error)}{_remedy(error)}"
            ) from error


def remove(path: str) -> None:
    """Remove one file (a symbolic link itself, never what it points to); none there is fine.

    Raises:
        OutputError: it is there and cannot be removed.
    """
    try:
        if is_local(path):
            Path(path).unlink()
        elif FileSystems.exists(path):
            FileSystems.delete([path])
    except FileNotFoundError:
        pass
    except OSError as error:
        raise OutputError(f"{path}: cannot remove: {reason(error)}{_remedy(error)}") from error


def remove_directory(directory: str) -> None:
    """Remove a directory that is all ours, ``manifest.json`` in it first; none there is fine.

    Raises:
        OutputError: something in it cannot be removed.
    """
    found = entries(directory)
    for entry in sorted(found, key=lambda entry: entry.name != "manifest.json"):
        remove(join(directory, entry.name))
    if is_local(directory):
        try:
            Path(directory).rmdir()
        except FileNotFoundError:
            pass
        except OSError as error:
            raise OutputError(f"{directory}: cannot remove: {reason(error)}") from error


def folders(directory: str) -> set[str]:
    """The names of the folders right below ``directory``, on an object store.

    Raises:
        OutputError: it cannot be listed.
    """
    try:
        results = FileSystems.match([f"{directory}/**"])
    except OSError as error:
        raise OutputError(f"{directory}: cannot list: {reason(error)}") from error
    below = (file.path[len(directory) + 1 :] for one in results for file in one.metadata_list)
    return {path.split("/")[0] for path in below if "/" in path}


class HashingFile(io.RawIOBase):
    """A file that is written once, front to back, and knows its size and SHA-256.

    Its errors name the file they are about, so that an `OSError` on the way to it is never taken
    for one of the input.
    """

    def __init__(self, raw: Any, path: str) -> None:
        self._raw = raw
        self._path = path
        self._sha256 = hashlib.sha256()
        self._size = 0

    def writable(self) -> bool:
        """Return True."""
        return True

    def write(self, data: Buffer, /) -> int:
        """Append all of ``data``.

        Raises:
            OutputError: the file cannot be written, as on a full disk.
        """
        view = memoryview(data).cast("B")
        with _writing(self._path):
            self._raw.write(view)
        self._sha256.update(view)
        self._size += len(view)
        return len(view)

    def tell(self) -> int:
        """Bytes written so far."""
        return self._size

    def sha256_with(self, data: bytes) -> str:
        """What the SHA-256 would be if ``data`` were written next."""
        sha256 = self._sha256.copy()
        sha256.update(data)
        return sha256.hexdigest()

    def written(self) -> Written:
        """Size and SHA-256 of what was written so far."""
        return Written(bytes=self._size, sha256=self._sha256.hexdigest())


@contextlib.contextmanager
def replacing(path: str) -> Iterator[HashingFile]:
    """Write the file ``path``: it appears, or is replaced, whole when the block ends.

    Until then it lies beside it under a hidden name of its own (`is_temporary`), which is removed
    where the block raises; on an object store, which cannot rename, in the temporary folder of this
    machine, and is sent under its own name when it is whole. Two writers of one path do not disturb
    each other: the last wins.

    Raises:
        OutputError: the file cannot be written.
    """
    if not is_local(path) and not FileSystems.get_filesystem(path).has_dirs():
        with _sending(path) as file:
            yield file
        return
    directory, name = FileSystems.split(path)
    temporary = join(directory, f".{name}.{uuid.uuid4().hex}.tmp")
    with _writing(path):
        raw = FileSystems.create(temporary, compression_type=CompressionTypes.UNCOMPRESSED)
    try:
        yield (file := HashingFile(raw, path))
        with _writing(path):
            raw.close()
            FileSystems.rename([temporary], [path])
        file.close()
    except BaseException:
        with contextlib.suppress(OSError):
            raw.close()
        with contextlib.suppress(OutputError):
            remove(temporary)
        raise


@contextlib.contextmanager
def _sending(path: str) -> Iterator[HashingFile]:
    """Write an object: nothing of it is in the store before all of it is known.

    An upload that fails leaves what was there before, or no object: stores keep one only when it
    was sent to its end.
    """
    with tempfile.SpooledTemporaryFile(max_size=_IN_MEMORY) as held:
        yield (file := HashingFile(held, path))
        file.close()
        held.seek(0)
        with _writing(path):
            raw = FileSystems.create(path, compression_type=CompressionTypes.UNCOMPRESSED)
            try:
                shutil.copyfileobj(held, raw, CHUNK)
            except BaseException:
                # What is closed, if only by the garbage collector, counts as sent to its end. Where
                # that fails too, nothing was sent, and what was there before is there still.
                with contextlib.suppress(Exception):
                    raw.close()
                    FileSystems.delete([path])
                raise
            raw.close()


@contextlib.contextmanager
def _writing(path: str) -> Iterator[None]:
    try:
        yield
    except JobError:
        raise
    except OSError as error:
        raise OutputError(f"{path}: cannot write: {reason(error)}{_remedy(error)}") from error
    except Exception as error:
        if is_local(path):
            raise
        # The clients of stores have errors of their own.
        raise OutputError(f"{path}: cannot write: {of_client(error)}") from error


def write(path: str, data: bytes) -> Written:
    """Write the file ``path`` as in `replacing`."""
    with replacing(path) as file:
        file.write(data)
    return file.written()


def is_temporary(name: str) -> str | None:
    """The name of the file that ``name`` would have become, if `replacing` gave it; else None."""
    match = _TEMPORARY.fullmatch(name)
    return match[1] if match else None


def open_binary(path: str) -> Any:
    """Open ``path`` for reading at random, as pyarrow's readers take it.

    Raises:
        InputError: it cannot be opened.
    """
    try:
        if is_local(path):
            return pa.OSFile(os.fsencode(path))  # a name need not be text
        return FileSystems.open(path, compression_type=CompressionTypes.UNCOMPRESSED)
    except OSError as error:
        raise InputError(f"{path}: cannot read: {reason(error)}") from error


def read(path: str) -> bytes:
    """All of the file ``path``.

    Raises:
        InputError: it cannot be read.
    """
    try:
        with open_binary(path) as file:
            return bytes(file.read())
    except OSError as error:
        raise InputError(f"{path}: cannot read: {reason(error)}") from error


def digest(path: str) -> Written:
    """Size and SHA-256 of the file ``path`` as it is now.

    Raises:
        InputError: it cannot be read.
    """
    sha256, size = hashlib.sha256(), 0
    try:
        with open_binary(path) as file:
            while chunk := file.read(CHUNK):
                sha256.update(chunk)
                size += len(chunk)
    except OSError as error:
        raise InputError(f"{path}: cannot read: {reason(error)}") from error
    return Written(bytes=size, sha256=sha256.hexdigest())


def exists(path: str) -> bool:
    """Whether there is something at ``path`` that can be read."""
    return bool(FileSystems.exists(path))


def _remedy(error: OSError) -> str:
    """What helps against an error of writing, where that is known."""
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return ": make room, then finish the job with --resume"
    if error.errno in (errno.EROFS, errno.EACCES, errno.EPERM):
        return ": make it writable, or choose another directory"
    return ""


def of_client(error: Exception) -> str:
    """What the client of a store says is wrong, in one line."""
    return f"{type(error).__name__}: {' '.join(str(error).split())}"[:500]


def reason(error: OSError) -> str:
    """What the system says is wrong, in one line."""
    return error.strerror or " ".join(str(error).split())
