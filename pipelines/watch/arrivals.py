"""Which files are there, what they are called, and whether they are complete."""

from __future__ import annotations

import math
import os
import threading
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from apache_beam.io.filesystem import FileMetadata

from pipelines import storage
from pipelines.corpus.inputs import Matches, common_parts, cut, match_below, printable_name
from pipelines.corpus.patterns import glob_escaped, is_glob
from pipelines.errors import InputError
from pipelines.storage import is_local

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from pipelines.watch.settings import WatchSettings

MARKER = ".done"
# What programs call a file while they write it.
TEMPORARY = (".tmp", ".temp", ".part", ".partial", ".crdownload", ".filepart", "._COPYING_", "~")


@dataclass(frozen=True, kw_only=True)
class Place:
    """Where one pattern looks: below ``folder``, at what ``glob`` matches.

    Attributes:
        folder: an absolute path or a URL, without a slash at its end.
        glob: a pattern relative to it.
        pattern: both, as they were given.
    """

    folder: str
    glob: str
    pattern: str

    def look(self, format_: str) -> Matches:
        """What is there now; nothing where the folder is not there yet.

        Raises:
            OSError, ValueError, InputError: it cannot be listed, or mixes records and text.
        """
        return match_below(
            self.folder,
            self.glob,
            format_,
            named=self.pattern,
            unfinished=(MARKER, *TEMPORARY),
        )

    @classmethod
    def of(cls, pattern: str) -> Place:
        """Where a pattern of the command line looks.

        Raises:
            InputError: nothing is there, so that it could become a file or a folder.
        """
        if is_local(pattern):
            literal = Path(os.path.abspath(pattern))  # noqa: PTH100 - links are not followed
            if literal.is_dir():
                return cls(folder=str(literal), glob="**", pattern=pattern)
            if literal.exists():
                name = glob_escaped(literal.name)
                return cls(folder=str(literal.parent), glob=name, pattern=pattern)
            if not is_glob(pattern):
                raise InputError(
                    f"nothing is at {pattern!r} yet: make the directory first, or give a pattern "
                    "such as 'DIR/*.jsonl'"
                )
            head, glob = cut(pattern)
            folder = os.path.abspath(head or ".")  # noqa: PTH100 - links are not followed
            return cls(folder=folder, glob=glob, pattern=pattern)
        storage.check_filesystem(pattern)
        head, glob = cut(pattern) if is_glob(pattern) else (pattern, "**")
        return cls(folder=head.rstrip("/"), glob=glob, pattern=pattern)


class Arrivals:
    """The files that are watched; threads may share one.

    Args:
        places: where to look.
        output: the directory that is written to; nothing in it is an input.
        settings: when a file is complete.
        format_: of all files, or ``auto``.
        clock: seconds since 1970, as files have them.
    """

    def __init__(
        self,
        places: Iterable[Place],
        *,
        output: str,
        settings: WatchSettings,
        format_: str = "auto",
        clock: Callable[[], float] = time.time,
    ) -> None:
        self.places = tuple(places)
        self.root = common_folder([place.folder for place in self.places])
        self._output = output
        self._format = format_
        self._settings = settings
        self._clock = clock
        self._seen: dict[str, tuple[tuple[int, float], float]] = {}
        self._lock = threading.Lock()

    def name(self, path: str) -> str:
        """What a file is called in ids and in the log: its path below the folder of all."""
        return printable_name(path[len(self.root) + 1 :])

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
            InputError: they cannot be listed, or a pattern matches files of records and text.
        """
        found = self.look().files
        return [FileMetadata(path, found[path].size, found[path].changed) for path in sorted(found)]

    def look(self) -> Matches:
        """What is there now, and what is passed over.

        Raises:
            InputError: as `find`.
        """
        matches = Matches()
        for place in self.places:
            matches.update(self.look_at(place))
        return matches

    def look_at(self, place: Place) -> Matches:
        """What is at one place.

        Raises:
            InputError: as `find`.
        """
        try:
            matches = place.look(self._format)
        except (OSError, ValueError) as error:
            raise InputError(f"{place.pattern!r} cannot be listed: {error}") from error
        written = self._output + "/"
        for path in [path for path in matches.files if path.startswith(written)]:
            del matches.files[path]
        return matches


def state(path: str) -> FileMetadata | None:
    """Size and time of change of a file as it is now; None where it is gone."""
    try:
        if is_local(path):
            status = Path(path).stat()
            return FileMetadata(path, status.st_size, status.st_mtime)
        found = storage.object_at(path)
    except OSError:
        return None
    return None if found is None else FileMetadata(path, found[0], found[1].modified / 1e9)


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
