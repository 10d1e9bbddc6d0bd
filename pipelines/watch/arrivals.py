"""Which files are there, what they are called, and whether they are complete."""

from __future__ import annotations

import math
import os
import posixpath
import re
import threading
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from apache_beam.io.filesystem import FileMetadata
from apache_beam.io.filesystems import FileSystems

from pipelines.corpus.inputs import common_parts, is_visible, matcher, printable_name, spellings
from pipelines.errors import ConfigError, InputError
from pipelines.files import storage
from pipelines.files.storage import is_local
from pipelines.output.names import is_ours

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from pipelines.watch.settings import WatchSettings

MARKER = ".done"
# What programs call a file while they write it.
TEMPORARY = (".tmp", ".temp", ".part", ".partial", ".crdownload", ".filepart", "._COPYING_", "~")
_GLOB = re.compile(r"[*?\[]")


@dataclass(frozen=True, kw_only=True)
class Place:
    """Where one pattern looks: below ``folder``, at what ``glob`` matches.

    Attributes:
        folder: an absolute path or a URL, without a slash at its end.
        glob: a pattern relative to it, in the syntax of Beam's filesystems.
    """

    folder: str
    glob: str

    @classmethod
    def of(cls, pattern: str) -> Place:
        """Where a pattern of the command line looks.

        Raises:
            InputError: nothing is there, so that it could become a file or a folder.
            ConfigError: a folder's own name would be read as a pattern.
        """
        name = ""  # of a file that is given as it is
        if is_local(pattern):
            literal = Path(os.path.abspath(pattern))  # noqa: PTH100 - links are not followed
            if literal.is_dir():
                place = cls(folder=str(literal), glob="**")
            elif literal.exists():
                name = literal.name
                place = cls(folder=str(literal.parent), glob=name)
            elif not _GLOB.search(pattern):
                raise InputError(
                    f"nothing is at {pattern!r} yet: make the directory first, or give a pattern "
                    "such as 'DIR/*.jsonl'"
                )
            else:
                head, glob = _cut(pattern)
                place = cls(folder=os.path.abspath(head or "."), glob=glob)  # noqa: PTH100
        else:
            storage.check_filesystem(pattern)
            head, glob = _cut(pattern) if _GLOB.search(pattern) else (pattern.rstrip("/"), "**")
            place = cls(folder=head, glob=glob)
        if _GLOB.search(place.folder) or _GLOB.search(name):
            raise ConfigError(
                f"{pattern}: '*', '?' and '[' in the name of a file or folder are read as a "
                "pattern when it is watched: rename it"
            )
        return place

    @property
    def patterns(self) -> list[str]:
        """What to ask Beam's filesystems for."""
        return [f"{self.folder}/{glob}" for glob in spellings(self.glob)]

    def holds(self, path: str) -> bool:
        """Whether the pattern means this file, by its name."""
        if not path.startswith(self.folder + "/"):
            return False
        relative = path[len(self.folder) + 1 :]
        return bool(matcher(self.glob)(relative)) and is_visible(relative, self.glob)


def _cut(pattern: str) -> tuple[str, str]:
    """The folder before the first character of a glob, and the glob."""
    fixed = _GLOB.split(pattern, maxsplit=1)[0]
    head = fixed.rpartition("/")[0]
    return head, pattern[len(head) + 1 :] if head or pattern.startswith("/") else pattern


class Arrivals:
    """The files that are watched; threads may share one.

    Args:
        places: where to look.
        output: the directory that is written to; nothing in it is an input.
        settings: when a file is complete.
        clock: seconds since 1970, as files have them.
    """

    def __init__(
        self,
        places: Iterable[Place],
        *,
        output: str,
        settings: WatchSettings,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self.places = tuple(places)
        self.root = common_folder([place.folder for place in self.places])
        self._output = output
        self._settings = settings
        self._clock = clock
        self._outputs: dict[str, tuple[bool, float]] = {}
        self._seen: dict[str, tuple[tuple[int, float], float]] = {}
        self._lock = threading.Lock()

    @property
    def patterns(self) -> list[str]:
        """What to ask Beam's filesystems for; a file may match several."""
        return list(dict.fromkeys(p for place in self.places for p in place.patterns))

    def name(self, path: str) -> str:
        """What a file is called in ids and in the log: its path below the folder of all."""
        return printable_name(path[len(self.root) + 1 :])

    def is_input(self, path: str) -> bool:
        """Whether a file that matches is meant to be read."""
        base = posixpath.basename(path)
        if base.endswith((MARKER, *TEMPORARY)) or path.endswith("/"):
            return False
        if path.startswith(self._output + "/"):
            return False
        return any(place.holds(path) for place in self.places) and not self._is_output(path)

    def is_complete(self, file: FileMetadata) -> bool:
        """Whether nobody writes to a file any more, as far as it can be told."""
        if self._settings.complete_when == "marker":
            return storage.exists(file.path + MARKER)
        now, settle = self._clock(), self._settings.settle
        with self._lock:
            is_now = stamp(file)
            # First seen, what the file says counts, unless the clock that it is from is ahead.
            was, since = self._seen.get(file.path, (is_now, min(now, is_now[1])))
            since = since if was == is_now else now
            self._seen[file.path] = (is_now, since)
        return now - since >= settle

    def forget(self, path: str) -> None:
        """Drop what was seen of a file that was taken."""
        with self._lock:
            self._seen.pop(path, None)

    def find(self) -> list[FileMetadata]:
        """All inputs that are there now, sorted by path, each once.

        Raises:
            InputError: they cannot be listed.
        """
        try:
            results = FileSystems.match(self.patterns)
        except (OSError, ValueError) as error:
            raise InputError(f"the inputs cannot be listed: {error}") from error
        found = {file.path: file for result in results for file in result.metadata_list}
        return [found[path] for path in sorted(found) if self.is_input(path)]

    def _is_output(self, path: str) -> bool:
        """Whether a job of ours writes to a folder between a pattern's own and the file."""
        folder = posixpath.dirname(path)
        while any(folder.startswith(place.folder + "/") for place in self.places):
            if self._holds_output(folder):
                return True
            folder = posixpath.dirname(folder)
        return False

    def _holds_output(self, folder: str) -> bool:
        now = self._clock()
        known, until = self._outputs.get(folder, (False, 0.0))
        if known or now < until:
            return known
        found = is_ours(folder)
        self._outputs[folder] = (found, now + self._settings.interval)
        return found


def state(path: str) -> FileMetadata | None:
    """Size and time of change of a file as it is now; None where it is gone."""
    try:
        if is_local(path):
            status = Path(path).stat()
            return FileMetadata(path, status.st_size, status.st_mtime)
        filesystem = FileSystems.get_filesystem(path)  # `match` would take the path for a pattern
        return filesystem.metadata(path) if filesystem.exists(path) else None
    except OSError:
        return None


def stamp(file: FileMetadata) -> tuple[int, float]:
    """Size and time of change, to be compared with those of another look at the file.

    Stores tell the time of an object in full when they list it, and in whole seconds when they are
    asked for it alone (S3's headers), so there only these count.
    """
    changed = file.last_updated_in_seconds
    return file.size_in_bytes, changed if is_local(file.path) else float(math.floor(changed))


def common_folder(folders: list[str]) -> str:
    """The deepest folder that holds all of them.

    >>> common_folder(["/data/a/x", "/data/a/y/z"]), common_folder(["/data/a"])
    ('/data/a', '/data/a')
    """
    return "/".join(common_parts([folder.split("/") for folder in folders]))
