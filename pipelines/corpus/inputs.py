"""List the files that patterns match, each with its size, format and compression.

A pattern is, in this order: a file of exactly that name (whatever characters are in it), a
directory (walked to the bottom), or a glob that matches files; `pipelines.corpus.patterns` has the
syntax.

A directory or glob passes over what is no input by anybody's convention: hidden files and folders
(``.name``), the markers that other systems leave with their data (`MARKERS`), and, where formats
go by names (``auto``), files that are about the data (``README*``, ``LICENSE*``). Name such a file
in full to read it. Folders below the one that is walked are passed over where a job of this
package writes to them, so that its output may be among its inputs. Symbolic links to files are
read; links to folders are not followed; links that lead nowhere are passed over. `Inputs` says
how many were passed over, and why.
"""

from __future__ import annotations

import contextlib
import os
import posixpath
import stat
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bpe.files import fingerprint
from pipelines.corpus.files import (
    InputFile,
    check_formats,
    format_of,
    input_file,
    printable_name,
    suffix_of,
)
from pipelines.corpus.patterns import GLOB_CHARACTERS, MARKERS, is_visible, matcher
from pipelines.errors import ConfigError, InputError
from pipelines.formats import SUFFIXES
from pipelines.output.names import PLAN, read_plan
from pipelines.progress import many
from pipelines.storage import (
    Listed,
    Version,
    file_version,
    is_local,
    object_at,
    objects_below,
)

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

    import pyarrow as pa

    from pipelines.settings import InputSettings

MIN_SPLIT = 8 << 20  # bytes, unless a job says otherwise
_REQUESTS = 32  # to a store at once
BY_NAME = "by their names"
DANGLING = "links that lead nowhere"
TO_FOLDER = "links to folders"
NO_FILE = "neither files nor folders"
TEXT = "text among files of records"
UNREAD = "of a kind that is not read"
# What programs call a file while they write it, or an empty one that marks a complete file.
UNFINISHED = (
    *(".tmp", ".temp", ".part", ".partial", ".crdownload", ".filepart", "._COPYING_", "~"),
    ".done",
)


@dataclass(frozen=True, kw_only=True)
class PassedOver:
    """Files that patterns match and no job reads, for one reason; ``first`` is one of them."""

    reason: str
    files: int
    first: str

    def __str__(self) -> str:
        remedy = {BY_NAME: "; to read one, name it in full"}.get(self.reason, "")
        return f"passed over {many(self.files, 'file')}, {self.reason} ({self.first}){remedy}"


@dataclass(frozen=True, kw_only=True)
class Inputs:
    """The files that a job reads, in order, and the other files that the patterns match.

    Attributes:
        files: the files to read, in order; empty if there is nothing to append.
        passed_over: the other files that the patterns match.
        base: the folder below which the files of a job that appends are named; else None.
        generation: the generation of a job that appends; else 0.
        earlier: the pieces that earlier jobs planned; None if the job begins the directory.
        outdated: names of files that changed and cannot be taken again.
    """

    files: tuple[InputFile, ...] = ()
    passed_over: tuple[PassedOver, ...] = ()
    base: str | None = None
    generation: int = 0
    earlier: pa.Table | None = None
    outdated: tuple[str, ...] = ()


@dataclass
class Matches:
    """The matches of patterns: inputs by path, and the reasons for passing other files over.

    ``root`` is the folder below which a pattern matches files.
    """

    root: str = ""
    files: dict[str, Listed] = field(default_factory=dict)
    passed_over: dict[str, str] = field(default_factory=dict)

    def leave_out(self, paths: Iterable[str], reason: str) -> None:
        """Pass these files over."""
        for path in list(paths):
            del self.files[path]
            self.passed_over[path] = reason


def summary_of(passed_over: Mapping[str, str]) -> tuple[PassedOver, ...]:
    """Summarize the files passed over, which are given with their reasons, by reason."""
    reasons: dict[str, list[str]] = {}
    for path, reason in passed_over.items():
        reasons.setdefault(reason, []).append(path)
    return tuple(
        PassedOver(reason=reason, files=len(paths), first=printable_name(min(paths)))
        for reason, paths in sorted(reasons.items())
    )


def find_inputs(settings: InputSettings, *, below: str | None = None) -> Inputs:
    """List the files that match the patterns of ``settings``, each once.

    The files are sorted by source, in the order of the patterns, then by path.

    Args:
        settings: the settings of the inputs.
        below: where files come and go, the folder below which they are named, in whichever of them
            are there; empty: that of the patterns. Then a pattern may match nothing, and files
            that cannot be read, or are written, are passed over.

    Raises:
        InputError: a pattern matches nothing, or files of records and of text, a file or folder
            cannot be read, or a file is of a kind that cannot hold documents here (an archive, a
            compressed Parquet file), or of two sources; or it is not ``below`` the folder.
    """
    found = Matches()
    sources: dict[str, str] = {}
    roots: list[str] = []
    for name, pattern in settings.named_patterns:
        matches = match(pattern, settings.format, changing=below is not None)
        if not matches.files and below is None:
            raise InputError(_nothing(pattern, matches, name))
        found.files |= matches.files
        found.passed_over |= matches.passed_over
        roots.append(f"{matches.root.rstrip('/')}/")
        for path in matches.files:
            if (other := sources.setdefault(path, name)) != name:
                raise InputError(
                    f"{path} is of two sources, {other or 'one without a name'} and "
                    f"{name or 'one without a name'}: let only one `input` pattern match it"
                )
    names = [name for name, _ in settings.named_patterns]
    paths = sorted(found.files, key=lambda path: (names.index(sources[path]), os.fsencode(path)))
    base = _base(paths) if below is None else below or _base(roots)
    files = []
    for path in paths:
        listed, name = found.files[path], _name(path, base)
        try:
            file = input_file(path, name, listed.size, settings.format, version=listed.version)
        except InputError:
            if below is None:
                raise
            found.leave_out([path], UNREAD)
        else:
            files.append(replace(file, source=sources[path]))
    over = {path: why for path, why in found.passed_over.items() if path not in found.files}
    return Inputs(
        files=tuple(_tagged(files, settings.split_size or MIN_SPLIT)),
        passed_over=summary_of(over),
        base=None if below is None else base,
    )


def check_sources(settings: InputSettings, shares: Collection[str]) -> None:
    """Check that the sources of the inputs are the sources that have shares in a mix.

    Raises:
        ConfigError: a pattern names no such source, or a source has no pattern.
    """
    for name, pattern in settings.named_patterns:
        if name not in shares:
            raise ConfigError(
                f"`input` {pattern!r} is of no source of the mix: write NAME=PATTERN, with one of "
                f"{', '.join(shares)}"
            )
    for name in shares:
        if name not in settings.sources:
            raise ConfigError(f"`mix` {name} has no files: give `input` {name}=PATTERN")


def _tagged(files: list[InputFile], split_size: int) -> list[InputFile]:
    """Add the version tags of the remote files that more than one split may read.

    Lists have no tags, and each tag takes a request. A file that one split reads needs no tag from
    the plan: the split compares the tags before and after reading.
    """
    asked = [
        file.path
        for file in files
        if file.can_be_cut and file.size > split_size and not is_local(file.path)
    ]
    with ThreadPoolExecutor(_REQUESTS) as requests:
        versions = dict(zip(asked, requests.map(file_version, asked), strict=True))
    return [
        replace(file, version=versions[file.path]) if file.path in versions else file
        for file in files
    ]


def _nothing(pattern: str, matches: Matches, source: str) -> str:
    over = "".join(f"; {one}" for one in summary_of(matches.passed_over))
    if Path(pattern).is_dir():
        return (
            f"the directory {pattern!r} holds no files to read (hidden ones and what jobs "
            f"wrote do not count{over}): name another, or the files themselves"
        )
    return (
        f"no file matches {pattern!r}{over}: check the path; in a shell, put quotes around a "
        "pattern; hidden files must be named in full"
        + (f"; {source}= names a source: for a path, write ./{source}={pattern}" if source else "")
    )


def describe_inputs(files: Sequence[InputFile]) -> dict[str, Any]:
    """Return the ``inputs`` of a `Plan`, which do not depend on the path of the corpus."""
    return {
        "files": len(files),
        "bytes": sum(file.size for file in files),
        "sha256": fingerprint(
            [[one.name, one.size, one.format, one.compression, one.source] for one in files]
        ),
    }


def _base(paths: Sequence[str]) -> str:
    """Return the deepest folder that these paths share, with a slash; empty if there is none."""
    if not paths:
        return ""
    folders = [path.split("/")[:-1] for path in paths]
    shared = os.path.commonprefix(folders)  # noqa: RUF071 - of lists of names
    return "".join(f"{part}/" for part in shared)


def _name(path: str, base: str) -> str:
    """Return the name of a file: its path below the folder, or its whole path.

    Raises:
        InputError: the file is not below the folder.
    """
    if not path.startswith(base):
        raise InputError(
            f"{path} is not below {base}, the folder below which the files of this directory are "
            "named since its first job: begin another one, with a pattern that matches all"
        )
    return printable_name(path.removeprefix(base))


def match(pattern: str, asked: str, *, changing: bool = False) -> Matches:
    """Return the files that ``pattern`` matches.

    Args:
        pattern: a file, a directory or a glob.
        asked: the format of all files, or ``auto``.
        changing: whether files come and go meanwhile: then files with names of unfinished files
            are left out, and text among files of records is passed over.

    Raises:
        InputError: the pattern cannot be listed, or matches files of records and text files.
    """
    try:
        exact = _file_at(pattern) if is_local(pattern) else object_at(pattern)
        if exact is not None:
            return Matches(posixpath.dirname(exact.path), {exact.path: exact})
        found = _match_below(pattern, "**", changing=changing, by_name=asked == "auto")
        if not (found.files or found.passed_over) and GLOB_CHARACTERS.search(pattern):
            found = _match_below(*_cut(pattern), changing=changing, by_name=asked == "auto")
    except OSError as error:
        raise InputError(f"input {pattern!r} cannot be listed: {error}") from error
    if asked == "auto":
        skipped = len(found.root) + 1
        texts = [path for path in found.files if format_of(path[skipped:]) == "text"]
        if changing and len(texts) < len(found.files):
            found.leave_out(texts, TEXT)
        check_formats(pattern, (path[skipped:] for path in found.files))
    return found


def _file_at(pattern: str) -> Listed | None:
    """Return the local file of exactly this name; None for a directory, or if there is no file."""
    path = os.path.abspath(pattern)  # noqa: PTH100 - resolve() would follow symbolic links
    if os.path.isdir(path) or not os.path.lexists(path):  # noqa: PTH112 - need not be text
        return None
    status = os.stat(path)  # noqa: PTH116
    if not stat.S_ISREG(status.st_mode):
        raise InputError(
            f"{pattern!r} is neither a file nor a directory (a pipe or device has no size to "
            "plan by): write it to a file first"
        )
    return Listed(path, status.st_size, Version.of_status(status))


def _cut(pattern: str) -> tuple[str, str]:
    """Cut a pattern into the folder before the first wildcard, with its slash, and the glob."""
    fixed = GLOB_CHARACTERS.split(pattern, maxsplit=1)[0]
    folder, slash, _ = fixed.rpartition("/")
    return folder + slash, pattern[len(folder + slash) :]


def _match_below(root: str, glob: str, *, changing: bool, by_name: bool) -> Matches:
    """Return the files below a folder that match a glob.

    Args:
        root: the folder, or a URL.
        glob: the pattern for paths relative to ``root``.
        changing: as for `match`.
        by_name: whether names give the formats.

    Raises:
        OSError: a folder cannot be listed.
    """
    local = is_local(root)
    root = (os.path.abspath(root) if local else root).rstrip("/")  # noqa: PTH100 - as in `_file_at`
    matches, is_match = Matches(root), matcher(glob)
    unfinished = UNFINISHED if changing else ()
    for relative, entry in _walked(root) if local else _objects(root, glob):
        if not is_match(relative) or relative.endswith(unfinished):
            continue
        # A README.jsonl would be records.
        about_data = not by_name or suffix_of(relative)[0] in SUFFIXES
        path = f"{root}/{relative}"
        listed: Listed | str | None = BY_NAME
        if is_visible(relative, about_data=about_data):
            listed = entry if isinstance(entry, Listed) else _look(path, entry)
        if isinstance(listed, str):
            matches.passed_over[path] = listed
        elif listed is not None:
            matches.files[path] = listed
    return matches


def _walked(root: str) -> Iterator[tuple[str, os.DirEntry[str]]]:
    """Yield the files below a local folder, each with its relative path; none if it is none."""
    folders = [""] if os.path.isdir(root + "/") else []  # noqa: PTH112 - each with a slash at its end
    while folders:
        folder = folders.pop()
        listed: list[os.DirEntry[str]] = []
        with contextlib.suppress(FileNotFoundError), os.scandir(f"{root}/{folder}") as entries:
            listed += entries
        ours = folder and any(entry.name == PLAN for entry in listed)
        if ours and read_plan(f"{root}/{folder.rstrip('/')}"):
            continue
        for entry in listed:
            relative, is_hidden = folder + entry.name, entry.name.startswith(".")
            if entry.is_dir(follow_symlinks=False) and not (is_hidden or entry.name in MARKERS):
                folders.append(relative + "/")
            else:
                yield relative, entry


def _look(path: str, entry: os.DirEntry[str]) -> Listed | str | None:
    """Return the listed file, or the reason to pass it over; None if the file is gone."""
    if entry.is_dir(follow_symlinks=False):
        return BY_NAME
    try:
        status = entry.stat()
    except OSError:
        if entry.is_symlink():
            return DANGLING
        if os.path.lexists(path):
            raise
        return None
    if stat.S_ISREG(status.st_mode):
        return Listed(path, status.st_size, Version.of_status(status))
    return TO_FOLDER if stat.S_ISDIR(status.st_mode) else NO_FILE


def _objects(root: str, glob: str) -> Iterator[tuple[str, Listed]]:
    """Yield the objects below a folder of a store that the glob may match."""
    listed = objects_below(root, recursive="/" in glob or "**" in glob)
    outputs = tuple(
        path.removesuffix(PLAN)
        for path in (one.path for one in listed)
        if posixpath.basename(path) == PLAN
        and path != f"{root}/{PLAN}"
        and read_plan(posixpath.dirname(path))
    )
    for one in listed:
        if not one.path.startswith(outputs):
            yield one.path[len(root) + 1 :], one
