"""Files on any filesystem that Beam knows: listed, read, written, removed.

What is in `pipelines.files.filesystems` and `pipelines.files.writing` can be had here too.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import pyarrow as pa
from apache_beam.io.filesystem import CompressionTypes
from apache_beam.io.filesystems import FileSystems

from pipelines.errors import InputError, JobError, OutputError
from pipelines.files.filesystems import (
    check_filesystem,
    has_folders,
    is_local,
    join,
    located,
    of_client,
    reason,
)
from pipelines.files.writing import (
    CHUNK,
    HashingFile,
    Written,
    is_temporary,
    make_directory,
    remove,
    replacing,
    write,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = [
    "CHUNK",
    "Entry",
    "HashingFile",
    "Written",
    "check_filesystem",
    "digest",
    "entries",
    "exists",
    "folders",
    "has_folders",
    "is_local",
    "is_temporary",
    "join",
    "located",
    "make_directory",
    "open_binary",
    "read",
    "read_if_there",
    "reason",
    "remove",
    "remove_directory",
    "replacing",
    "write",
]


@dataclass(frozen=True, kw_only=True)
class Entry:
    """What stands under a name in a directory; a symbolic link is not followed."""

    name: str
    kind: Literal["file", "directory", "link", "other"]
    size: int


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
                named = [one for one in found if one.name.startswith(beginning)]
            listed = [entry for one in named if (entry := _local_entry(one)) is not None]
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


def _local_entry(entry: os.DirEntry[str]) -> Entry | None:
    """What stands there; None where it is gone again."""
    if entry.is_symlink():
        return Entry(name=entry.name, kind="link", size=0)
    if entry.is_dir():
        return Entry(name=entry.name, kind="directory", size=0)
    if entry.is_file():
        try:
            return Entry(name=entry.name, kind="file", size=entry.stat().st_size)
        except FileNotFoundError:
            return None
    return Entry(name=entry.name, kind="other", size=0)


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


def open_binary(path: str) -> Any:
    """Open ``path`` for reading at random, as pyarrow's readers take it.

    Raises:
        InputError: it cannot be opened.
    """
    with _reading(path):
        if is_local(path):
            return pa.OSFile(os.fsencode(path))  # a name need not be text
        return FileSystems.open(path, compression_type=CompressionTypes.UNCOMPRESSED)


def read(path: str) -> bytes:
    """All of the file ``path``.

    Raises:
        InputError: it cannot be read.
    """
    with _reading(path), open_binary(path) as file:
        return bytes(file.read())


def read_if_there(path: str) -> bytes | None:
    """All of the file ``path``; None where there is none.

    Raises:
        InputError: it cannot be read.
    """
    try:
        return read(path)
    except InputError:
        if exists(path):
            raise
        return None


def digest(path: str) -> Written:
    """Size and SHA-256 of the file ``path`` as it is now.

    Raises:
        InputError: it cannot be read.
    """
    sha256, size = hashlib.sha256(), 0
    with _reading(path), open_binary(path) as file:
        while chunk := file.read(CHUNK):
            sha256.update(chunk)
            size += len(chunk)
    return Written(bytes=size, sha256=sha256.hexdigest())


@contextlib.contextmanager
def _reading(path: str) -> Iterator[None]:
    try:
        yield
    except JobError:
        raise
    except OSError as error:
        raise InputError(f"{path}: cannot read: {reason(error)}") from error
    except Exception as error:
        if is_local(path):
            raise  # the clients of some stores have errors of their own
        raise InputError(f"{path}: cannot read: {of_client(error)}") from error


def exists(path: str) -> bool:
    """Whether there is something at ``path`` that can be read."""
    return bool(FileSystems.exists(path))
