"""From patterns to a sorted list of files, each with its size, format and compression.

A pattern is, in this order: a file of exactly that name (whatever characters are in it), a
directory (walked to the bottom), or a glob that matches files. In a glob ``*`` stops at ``/``,
``?``, ``[abc]`` and ``[!abc]`` are one character, ``**`` crosses directories, and ``**/`` also
matches no directory. (The syntax is that of Beam's filesystems, except for the last point.)

A directory or glob passes over what is no input by anybody's convention: hidden files and folders
(``.name``) and the markers that other systems leave beside their data (`MARKERS`). Name such a
file in full to read it. Folders below the one that is walked are passed over where a job of this
package writes to them, so that its output may lie among its inputs. Symbolic links to files are
read; links to folders are not followed.
"""

from __future__ import annotations

import os
import posixpath
import re
import stat
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from itertools import takewhile
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from apache_beam.io.filesystem import FileSystem
from apache_beam.io.filesystems import FileSystems

from pipelines.errors import InputError
from pipelines.files.storage import check_filesystem, is_local
from pipelines.files.versions import Version, file_version
from pipelines.output.names import PLAN, fingerprint, is_ours

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from pipelines.settings import InputSettings

FileFormat = Literal["text", "lines", "jsonl", "parquet"]
Compression = Literal["none", "gz", "zst", "bz2", "xz"]

FORMAT_SUFFIXES: dict[str, FileFormat] = {
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".json": "jsonl",
    ".parquet": "parquet",
    ".pq": "parquet",
}
COMPRESSION_SUFFIXES: dict[str, Compression] = {
    ".gz": "gz",
    ".zst": "zst",
    ".bz2": "bz2",
    ".xz": "xz",
}
UNREADABLE_SUFFIXES = (".zip", ".tar", ".tgz", ".7z", ".rar", ".lz4", ".z", ".br", ".lzma", ".sz")
MIN_SPLIT = 8 << 20  # bytes, unless a job says otherwise
_REQUESTS = 32  # to a store at once
MARKERS = frozenset(
    {
        "_SUCCESS",
        "_metadata",
        "_common_metadata",
        "_temporary",
        "_delta_log",
        "_spark_metadata",
        "__pycache__",
    }
)


@dataclass(frozen=True, kw_only=True)
class InputFile:
    r"""One file of a corpus.

    Attributes:
        path: where it is: an absolute local path, or a URL of one of Beam's filesystems.
        name: the path below the deepest folder that holds all inputs, with ``/`` between its
            parts; bytes of a file name that are not UTF-8 are written ``\xNN``. Document ids
            and manifests use it, so that they do not depend on where a corpus lies.
        size: bytes as stored.
        format: how it holds documents.
        compression: how it is packed.
        version: that was listed; None where nobody looked.
    """

    path: str
    name: str
    size: int
    format: FileFormat
    compression: Compression
    version: Version | None = None

    @property
    def can_be_cut(self) -> bool:
        """Whether a range of its bytes can be read by itself."""
        return self.compression == "none" and self.format != "text"


def find_inputs(settings: InputSettings) -> list[InputFile]:
    """List the files that the patterns of ``settings`` stand for, sorted by path, each once.

    Raises:
        InputError: a pattern matches nothing, a file or folder cannot be read, or a file is of a
            kind that cannot hold documents here (an archive, a compressed Parquet file).
    """
    listed: dict[str, Listed] = {}
    for pattern in settings.patterns:
        found = dict(_match(pattern))
        if not found and Path(pattern).is_dir():
            raise InputError(
                f"the directory {pattern!r} holds no files to read (hidden ones and what jobs "
                "wrote do not count): name another, or the files themselves"
            )
        if not found:
            raise InputError(
                f"no file matches {pattern!r}: check the path; in a shell, put quotes around a "
                "pattern; hidden files must be named in full"
            )
        listed.update(found)
    paths = sorted(listed, key=os.fsencode)
    files = [
        input_file(path, name, listed[path].size, settings.format, version=listed[path].version)
        for path, name in zip(paths, _names(paths), strict=True)
    ]
    return _tagged(files, settings.split_size or MIN_SPLIT)


def _tagged(files: list[InputFile], split_size: int) -> list[InputFile]:
    """``files``, with the tags of those in a store that several splits may read.

    Lists have no tags, and to ask for each takes a request. What one split reads at one time needs
    none: it compares the tags of its beginning and its end.
    """
    asked = [
        i
        for i, file in enumerate(files)
        if file.can_be_cut and file.size > split_size and not is_local(file.path)
    ]
    with ThreadPoolExecutor(_REQUESTS) as requests:
        versions = requests.map(file_version, [files[i].path for i in asked])
        for i, version in zip(asked, versions, strict=True):
            files[i] = replace(files[i], version=version)
    return files


def matches_any(pattern: str) -> bool:
    """Whether there is a file that a pattern stands for."""
    return next(_match(pattern), None) is not None


def input_file(
    path: str, name: str, size: int, asked: str, *, version: Version | None = None
) -> InputFile:
    """What is known of a file by its name; ``asked`` is the format, or ``auto``.

    Raises:
        InputError: it is of a kind that cannot hold documents here.
    """
    stem, suffix = posixpath.splitext(name.lower())
    compression = COMPRESSION_SUFFIXES.get(suffix, "none")
    if compression != "none":
        suffix = posixpath.splitext(stem)[1]
    format_: FileFormat
    if asked == "auto":
        if suffix in UNREADABLE_SUFFIXES:
            raise InputError(
                f"{path}: {suffix} files are not read: unpack it, or compress it as .gz, .zst, "
                ".bz2 or .xz (or say `format` if it is plain text after all)"
            )
        format_ = FORMAT_SUFFIXES.get(suffix, "text")
    else:
        format_ = asked  # type: ignore[assignment]  # validated by InputSettings
    if format_ == "parquet" and compression != "none":
        raise InputError(
            f"{path}: Parquet files are compressed inside and read at random: unpack the "
            f".{compression} around it"
        )
    return InputFile(
        path=path,
        name=name,
        size=size,
        format=format_,
        compression=compression,
        version=version,
    )


def describe_inputs(files: Sequence[InputFile]) -> dict[str, Any]:
    """The ``inputs`` of a `Plan`: nothing in it depends on where the corpus lies."""
    return {
        "files": len(files),
        "bytes": sum(file.size for file in files),
        "sha256": fingerprint(
            [[file.name, file.size, file.format, file.compression] for file in files]
        ),
    }


def _names(paths: list[str]) -> list[str]:
    """Each path below the deepest folder they share; whole paths where they share none."""
    slashed = [path.replace(os.sep, "/") if "://" not in path else path for path in paths]
    common = common_parts([path.split("/")[:-1] for path in slashed])
    skipped = sum(len(folder) + 1 for folder in common)
    return [printable_name(path[skipped:]) for path in slashed]


def common_parts(paths: Sequence[list[str]]) -> list[str]:
    """The names with which all of these paths begin."""
    # Whatever sorts between two paths begins as both of them do.
    pairs = zip(min(paths), max(paths), strict=False)
    return [one for one, _ in takewhile(lambda pair: pair[0] == pair[1], pairs)]


def printable_name(path: str) -> str:
    """A path as text, whatever its bytes are."""
    return path.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")


class Listed(NamedTuple):
    """What a list of files says of one."""

    size: int
    version: Version

    @classmethod
    def of_status(cls, status: os.stat_result) -> Listed:
        """What is listed of a local file."""
        return cls(status.st_size, Version.of_status(status))


def _match(pattern: str) -> Iterator[tuple[str, Listed]]:
    """Yield the path, the size and the version of every file that ``pattern`` stands for."""
    try:
        if re.match(r"[a-zA-Z][-a-zA-Z0-9+.]*://", pattern):
            yield from _match_remote(pattern)
        else:
            yield from _match_local(pattern)
    except OSError as error:
        raise InputError(f"input {pattern!r} cannot be listed: {error}") from error


def _match_local(pattern: str) -> Iterator[tuple[str, Listed]]:
    # Beam's local match cannot be told to take a name literally, finds nothing for a bare `*.txt`
    # and passes silently over folders it may not read; only its pattern syntax is used here.
    literal = _absolute(pattern)
    if literal.is_dir():
        yield from _below(literal, "")
    elif os.path.lexists(literal):
        status = literal.stat()
        if not stat.S_ISREG(status.st_mode):
            raise InputError(
                f"{pattern!r} is neither a file nor a directory (a pipe or device has no size to "
                "plan by): write it to a file first"
            )
        yield str(literal), Listed.of_status(status)
    else:
        fixed = re.split(r"[*?\[]", pattern, maxsplit=1)[0]
        folder, slash, _ = fixed.rpartition("/")
        root = _absolute(folder + slash)
        if fixed != pattern and root.is_dir():
            yield from _below(root, pattern[len(folder + slash) :])


def _absolute(path: str) -> Path:
    return Path(os.path.abspath(path))  # noqa: PTH100 - resolve() would follow symbolic links


def _below(root: Path, pattern: str) -> Iterator[tuple[str, Listed]]:
    """The regular files below ``root`` that match; never silent about what cannot be read."""
    matches = matcher(pattern or "**")
    folders = [""]  # below root, each with a slash behind it
    while folders:
        folder = folders.pop()
        with os.scandir(root / folder) as entries:
            listed = list(entries)
            if (
                folder
                and any(entry.name == PLAN for entry in listed)
                and is_ours(str(root / folder))
            ):
                continue
            for entry in listed:
                relative = folder + entry.name
                if entry.is_dir(follow_symlinks=False):
                    if entry.name not in MARKERS:
                        folders.append(relative + "/")
                elif matches(relative) and is_visible(relative, pattern):
                    status = entry.stat()
                    if stat.S_ISREG(status.st_mode):
                        yield str(root / relative), Listed.of_status(status)


def _match_remote(pattern: str) -> Iterator[tuple[str, Listed]]:
    check_filesystem(pattern)
    folder = pattern.rstrip("/") + "/"
    try:
        found = []
        if not re.search(r"[*?\[]", pattern):
            found = [
                file
                for file in _without_outputs(_metadata(FileSystems.match([folder + "**"])), folder)
                if is_visible(file.path.removeprefix(folder), "")
            ]
        if not found:
            asked = posixpath.basename(pattern)
            found = [
                file
                for file in _metadata(FileSystems.match(spellings(pattern)))
                if is_visible(posixpath.basename(file.path), asked)
            ]
    except ValueError as error:
        raise InputError(f"input {pattern!r} cannot be listed: {error}") from error
    for file in found:
        if not file.path.endswith("/"):  # what object stores show for an empty folder
            yield file.path, Listed(int(file.size_in_bytes), Version.of_metadata(file))


def _without_outputs(files: list[Any], root: str) -> list[Any]:
    """``files`` without those in folders below ``root`` that a job of ours wrote."""
    outputs = tuple(
        file.path.removesuffix(PLAN)
        for file in files
        if posixpath.basename(file.path) == PLAN
        and file.path != root + PLAN
        and is_ours(posixpath.dirname(file.path))
    )
    return [file for file in files if not file.path.startswith(outputs)]


def _metadata(results: Iterable[Any]) -> list[Any]:
    return [file for result in results for file in result.metadata_list]


def matcher(pattern: str) -> Any:
    """A predicate on paths for ``pattern``, in the syntax of Beam's filesystems."""
    expressions = [
        re.compile(FileSystem.translate_pattern(spelling)) for spelling in spellings(pattern)
    ]
    return lambda path: any(expression.match(path) for expression in expressions)


def spellings(pattern: str) -> list[str]:
    """``pattern`` and what it becomes where some ``**/`` stands for no folder at all."""
    found = [""]
    for piece in re.split(r"(?:(?<=/)|^)(\*\*/)", pattern):
        if piece == "**/":
            found += [spelling + piece for spelling in found]
        else:
            found = [spelling + piece for spelling in found]
    return found


def is_visible(relative: str, pattern: str) -> bool:
    """Whether a match is an input by convention, or asked for by a pattern that says so."""
    asked = posixpath.basename(pattern)
    *folders, name = relative.split("/")
    if any(folder.startswith(".") or folder in MARKERS for folder in folders):
        return False
    if name in MARKERS:
        return name == asked
    return not name.startswith(".") or asked.startswith(".")
