"""List, read, write and remove files, local or in stores; a file is written whole or not at all.

Local files go by `os`: their names are taken literally and need not be text. Stores go by
`pipelines.object_stores`. Errors name the file and, where it is known, what helps.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import io
import mmap
import os
import platform
import re
import shutil
import tempfile
import uuid
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import pyarrow as pa
import pyarrow.fs as pafs

from bpe import files
from pipelines.errors import InputError, JobError, OutputError
from pipelines.object_stores import Place, check_names, place, remedy

if TYPE_CHECKING:
    from collections.abc import Iterator

    from typing_extensions import Buffer

CHUNK = 1 << 20
_IN_MEMORY = 16 << 20  # of a copy of a file, or of an object to be sent; more is on the disk
_SECOND = 1_000_000_000
_URL = re.compile(r"[a-zA-Z][-a-zA-Z0-9+.]*://")


def is_local(path: str) -> bool:
    """Return whether ``path`` is on a filesystem of this machine (it has no scheme)."""
    return _URL.match(path) is None


def located(directory: str) -> str:
    """Return a directory for every worker: absolute if local, without a slash at the end.

    Raises:
        ConfigError: its filesystem cannot be used here.
    """
    if is_local(directory):
        path = Path.cwd() / directory
        # Behind a link, `..` is not the folder that the link is in.
        return os.path.realpath(path) if ".." in path.parts else str(path)
    place(directory)  # if it can be used
    return directory.rstrip("/")


def join(directory: str, *names: str) -> str:
    """Return the path of names below ``directory``."""
    if is_local(directory):
        return os.path.join(directory, *names)  # noqa: PTH118 - text, which Path would normalize
    return "/".join([directory.rstrip("/"), *names])


def reason(error: OSError) -> str:
    """Return the reason of a system's or store's error, in one line, with its remedy."""
    if isinstance(error, FileNotFoundError) and error.strerror != os.strerror(errno.ENOENT):
        return "it does not exist"  # stores name their own path, and fsspec nothing else
    said = " ".join((error.strerror or str(error)).split())
    return said[:500] + remedy(error)


class Version(NamedTuple):
    """The version of a file by its filesystem, besides its size.

    Attributes:
        modified: nanoseconds since 1970; whole seconds on a store, which has more only in lists.
        tag: the inode, the time of its last change of any kind (which no program can set), and the
            machine; or the ETag or what a store has for it; empty where nobody asked.
    """

    modified: int
    tag: str = ""

    @classmethod
    def of_status(cls, status: os.stat_result) -> Version:
        """Return the version of a local file."""
        changed = status.st_ctime_ns if status.st_nlink else ""  # removing its name changes it too
        return cls(status.st_mtime_ns, f"{status.st_ino}.{changed}@{platform.node()}")

    @classmethod
    def of_store(cls, modified: int | None, tag: str = "") -> Version:
        """Return the version of an object, from its time of change in nanoseconds since 1970."""
        return cls((modified or 0) // _SECOND * _SECOND, tag)

    def may_be(self, other: Version) -> bool:
        """Return whether nothing says that ``other`` is another version.

        Inodes of two machines are not compared: they may see one filesystem with different ones.
        """
        if self.modified != other.modified:
            return False
        (mine, _, here), (theirs, _, there) = (v.tag.partition("@") for v in (self, other))
        if not mine or not theirs or here != there:
            return True
        if here and "." in (mine[-1], theirs[-1]):  # one has no name any more
            return mine.partition(".")[0] == theirs.partition(".")[0]
        return mine == theirs


def file_version(path: str) -> Version | None:
    """Return the present version of the file at ``path``; None if there is none.

    Raises:
        InputError: the version cannot be read.
    """
    try:
        with reading(path):
            if is_local(path):
                return Version.of_status(os.stat(path))  # noqa: PTH116 - need not be text
            at = place(path)
            with at.filesystem.open_input_file(at.path) as file:
                return version_of(path, file)
    except InputError as error:
        if isinstance(error.__cause__, FileNotFoundError):
            return None
        raise


def version_of(path: str, file: Any) -> Version:
    """Return the version of a file that `open_binary` or `open` of Python opened."""
    if is_local(path):
        return Version.of_status(os.fstat(file.fileno()))
    at = place(path)
    said = {
        name.lower(): value.decode("utf-8", "replace") if isinstance(value, bytes) else value
        for name, value in (file.metadata() or {}).items()
    }
    tag = said.get("etag") or said.get("generation") or ""
    modified: int | None = None
    with contextlib.suppress(KeyError, ValueError):
        when = datetime.fromisoformat(said["last-modified"].replace("Z", "+00:00"))
        modified = int(when.timestamp()) * _SECOND
    if modified is None:
        modified = at.filesystem.get_file_info(at.path).mtime_ns
    if not tag and isinstance(at.filesystem, pafs.PyFileSystem):
        with contextlib.suppress(NotImplementedError, FileNotFoundError):
            tag = str(at.filesystem.handler.fs.ukey(at.path))
    return Version.of_store(modified, tag)


class Entry(NamedTuple):
    """An entry of a directory; a symbolic link is neither a file nor a directory."""

    name: str
    is_file: bool
    is_directory: bool


def entries(directory: str) -> list[Entry]:
    """Return the entries of ``directory`` by name, not recursively; none if it is not there.

    Raises:
        OutputError: ``directory`` is a file, or cannot be listed.
    """
    try:
        if is_local(directory):
            with os.scandir(directory) as found:
                follow = {"follow_symlinks": False}
                listed = [Entry(e.name, e.is_file(**follow), e.is_dir(**follow)) for e in found]
        else:
            types = pafs.FileType
            listed = [
                Entry(name, info.type == types.File, info.type == types.Directory)
                for name, info in _listed(directory, recursive=False)
                if name
            ]
    except FileNotFoundError:
        return []
    except NotADirectoryError as error:
        raise OutputError(f"{directory} is a file: name a directory") from error
    except OSError as error:
        raise OutputError(f"{directory}: cannot list: {reason(error)}") from error
    return sorted(listed)


def _listed(directory: str, *, recursive: bool) -> Iterator[tuple[str, Any]]:
    """Yield each file below a directory of a store: its relative name, and pyarrow's info."""
    at = place(directory.rstrip("/"))
    selector = pafs.FileSelector(at.path, allow_not_found=True, recursive=recursive)
    for info in at.filesystem.get_file_info(selector):
        yield info.path.removeprefix("/")[len(at.path.removeprefix("/")) + 1 :], info


class Listed(NamedTuple):
    """A file in a list: size in bytes, and the version that it has then.

    Lists of stores have no tags.
    """

    path: str
    size: int
    version: Version

    @classmethod
    def of_store(cls, path: str, info: pafs.FileInfo) -> Listed:
        """Return an object from pyarrow's information about it."""
        return cls(path, int(info.size or 0), Version.of_store(info.mtime_ns))


def objects_below(directory: str, *, recursive: bool = True) -> list[Listed]:
    """Return the objects below a directory of a store.

    Args:
        directory: the URL of the directory.
        recursive: whether to include objects in folders of the directory.

    Raises:
        OSError: the directory cannot be listed.
        ConfigError: an object has a name that pyarrow cannot open.
    """
    objects = []
    for name, info in _listed(directory, recursive=recursive):
        if info.type == pafs.FileType.File:
            path = f"{directory.rstrip('/')}/{name}"
            check_names(path, name)
            objects.append(Listed.of_store(path, info))
    return objects


def object_at(path: str) -> Listed | None:
    """Return the object of exactly this name; None if there is no such object.

    Raises:
        OSError: the store cannot be asked.
    """
    at = place(path)
    if at.path.endswith("/"):
        return None
    info = at.filesystem.get_file_info(at.path)
    return Listed.of_store(path, info) if info.type == pafs.FileType.File else None


def open_binary(path: str) -> Any:
    """Open ``path`` for reading at random, as pyarrow's readers take it.

    Each read of an object is a request.

    Raises:
        InputError: the file cannot be opened.
    """
    with reading(path):
        if is_local(path):
            return pa.OSFile(os.fsencode(path))  # a name need not be text
        at = place(path)
        return at.filesystem.open_input_file(at.path)


def read(path: str) -> bytes:
    """Return the contents of the file ``path``.

    Raises:
        InputError: the file cannot be read.
    """
    with reading(path), open_binary(path) as file:
        return bytes(file.read())


def read_if_there(path: str) -> bytes | None:
    """Return the contents of the file ``path``; None if there is no such file.

    Raises:
        InputError: the file cannot be read.
    """
    try:
        return read(path)
    except InputError:
        if exists(path):
            raise
        return None


def digest(path: str) -> Written:
    """Return the present size and SHA-256 of the file ``path``.

    Raises:
        InputError: the file cannot be read.
    """
    sha256, size = hashlib.sha256(), 0
    with reading(path), open_binary(path) as file:
        while chunk := file.read(CHUNK):
            sha256.update(chunk)
            size += len(chunk)
    return Written(bytes=size, sha256=sha256.hexdigest())


@contextlib.contextmanager
def read_once(path: str, *, in_memory: int = _IN_MEMORY) -> Iterator[tuple[Any, Written]]:
    """Yield a copy of a file for pyarrow's readers, and the size and SHA-256 of the copy.

    Later changes of the file do not affect the copy, which is in memory or, if larger than
    ``in_memory`` bytes, in the directory of temporary files.

    Raises:
        InputError: the file cannot be read.
        OutputError: there is no room for the copy.
    """
    with tempfile.SpooledTemporaryFile(max_size=in_memory) as held:
        copy = HashingFile(held, tempfile.gettempdir())
        with reading(path), open_binary(path) as file:
            shutil.copyfileobj(file, copy, CHUNK)
        with writing(tempfile.gettempdir()):
            data = _contents_of(held, copy.tell(), in_memory=in_memory)
        yield pa.BufferReader(data), copy.written()


def reading(path: str) -> contextlib.AbstractContextManager[None]:
    """Name the file in errors of the block.

    Raises:
        InputError: the file cannot be read.
    """
    return _named(path, InputError, "read")


@contextlib.contextmanager
def _named(path: str, kind: type[InputError | OutputError], what: str) -> Iterator[None]:
    try:
        yield
    except JobError:
        raise
    except OSError as error:
        help_ = _REMEDIES.get(error.errno or 0, "") if kind is OutputError else ""
        raise kind(f"{path}: cannot {what}: {reason(error)}{help_}") from error
    except Exception as error:
        if is_local(path):
            raise  # the filesystems of fsspec have errors of their own
        said = f"{type(error).__name__}: {' '.join(str(error).split())}"[:500] + remedy(error)
        raise kind(f"{path}: cannot {what}: {said}") from error


_UNWRITABLE = ": make it writable and go on with `resume`, or choose another directory"
_FULL = ": make room, then finish the job with `resume`"
_REMEDIES = {
    errno.ENOSPC: _FULL,
    errno.EDQUOT: _FULL,
    errno.EFBIG: (
        ": allow larger files (ulimit -f; some filesystems have a limit of their own), then "
        "finish the job with `resume`"
    ),
    errno.EROFS: _UNWRITABLE,
    errno.EACCES: _UNWRITABLE,
    errno.EPERM: _UNWRITABLE,
}


def exists(path: str) -> bool:
    """Return whether there is something at ``path`` that can be read.

    Raises:
        InputError: a store cannot be asked.
    """
    if is_local(path):
        return os.path.exists(path)  # noqa: PTH110 - a name need not be text
    with reading(path):
        return object_at(path) is not None


@dataclass(frozen=True, kw_only=True)
class Written:
    """A file that was written: its size in bytes and the SHA-256 of its contents (hex)."""

    bytes: int
    sha256: str


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
        view = memoryview(data)
        with writing(self._path):
            self._raw.write(view)
        self._sha256.update(view)
        self._size += view.nbytes
        return view.nbytes

    def tell(self) -> int:
        """Return the number of bytes written so far."""
        return self._size

    def written(self) -> Written:
        """Return the size and SHA-256 of the bytes written so far."""
        return Written(bytes=self._size, sha256=self._sha256.hexdigest())


@contextlib.contextmanager
def replacing(path: str, *, durable: bool = True) -> Iterator[HashingFile]:
    """Write the file ``path``: it appears, or is replaced, whole when the block ends.

    A local file is written by `bpe.files.replacing`. What goes to a store, which cannot rename, is
    in the temporary folder of this machine, and is sent under its own name when it is whole. Two
    writers of one path do not disturb each other: the last wins.

    Args:
        path: the path of the file.
        durable: whether the file survives a power cut. False saves the wait for the disk, for
            files that are checked by their checksums and can be made again.

    Raises:
        OutputError: the file cannot be written.
    """
    if not is_local(path):
        with tempfile.SpooledTemporaryFile(max_size=_IN_MEMORY) as held:
            yield (file := HashingFile(held, path))
            file.close()
            with writing(path):
                _send(_contents_of(held, file.tell(), in_memory=_IN_MEMORY), place(path))
        return
    with contextlib.ExitStack() as stack:
        with writing(path):
            raw = stack.enter_context(files.replacing(path, durable=durable))
        yield (file := HashingFile(raw, path))
        file.close()
        with writing(path):
            stack.close()


def _contents_of(held: Any, size: int, *, in_memory: int) -> Buffer:
    """Return the contents of a temporary file, in memory or mapped for as long as they are used."""
    held.seek(0)
    if size <= in_memory:
        data: bytes = held.read()
        return data
    return mmap.mmap(held.fileno(), 0, access=mmap.ACCESS_READ)


def _send(data: Buffer, at: Place) -> None:
    """Write an object: nothing of it is in the store before all of it is there.

    A process that is killed meanwhile leaves what was there before, or no object: stores keep one
    only when it was sent to its end. Closing a stream counts as the end, also after an error and by
    the garbage collector: so all data goes in one call, between which and the end nothing of ours
    can fail; one that the store fails, it forgets.
    """
    if isinstance(at.filesystem, pafs.PyFileSystem):
        fs, path = at.filesystem.handler.fs, at.path
        # These would keep the beginning of a file, but can rename.
        if fs.protocol in ("hdfs", ("file", "local")):
            folder, slash, name = at.path.rpartition("/")
            path = f"{folder}{slash}.{name}.{uuid.uuid4().hex}.tmp"
            fs.makedirs(folder, exist_ok=True)
        fs.pipe_file(path, bytes(data))
        if path != at.path:
            fs.mv(path, at.path)
        return
    raw = at.filesystem.open_output_stream(at.path, compression=None)
    try:
        raw.write(data)
    finally:
        raw.close()


def writing(path: str) -> contextlib.AbstractContextManager[None]:
    """Name the file or directory in errors of the block.

    Raises:
        OutputError: it cannot be written.
    """
    return _named(path, OutputError, "write")


def write(path: str, data: bytes, *, durable: bool = True) -> Written:
    """Write the file ``path`` as in `replacing`."""
    with replacing(path, durable=durable) as file:
        file.write(data)
    return file.written()


def remove(path: str) -> None:
    """Remove one file (a symbolic link itself, never what it points to); none there is fine.

    Raises:
        OutputError: the file exists and cannot be removed.
    """
    with _removing(path):
        if is_local(path):
            Path(path).unlink()
        else:
            at = place(path)
            at.filesystem.delete_file(at.path)


def remove_empty(directory: str) -> None:
    """Remove a local directory where nothing is in it; stores have none."""
    if is_local(directory):
        with contextlib.suppress(OSError):  # something is, or it is not there
            Path(directory).rmdir()


@contextlib.contextmanager
def _removing(path: str) -> Iterator[None]:
    with _named(path, OutputError, "remove"), contextlib.suppress(FileNotFoundError):
        yield


def remove_tree(directory: str) -> None:
    """Remove a directory with all that is in it, whosever it is; none there is fine.

    Raises:
        OutputError: something in it cannot be removed.
    """
    with _removing(directory):
        if is_local(directory):
            shutil.rmtree(directory)
        else:
            at = place(directory)
            at.filesystem.delete_dir(at.path)
