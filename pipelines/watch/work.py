"""What is done with each file that arrived, whatever is made of it.

A file is taken once: its name, size, time of change and SHA-256 stand in the log. One whose time
changed alone is noted; one with other contents is taken again, in place of what was made before.
"""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from bpe.errors import BpeError
from pipelines import storage
from pipelines.documents import BadRecord
from pipelines.errors import ConfigError, InputError, RecordError
from pipelines.inputs import input_file
from pipelines.output import DEAD_LETTERS, part_name
from pipelines.parts import DeadLetters, dead_letter
from pipelines.reading import too_many
from pipelines.splits import whole_file
from pipelines.storage import join, replacing
from pipelines.watch.arrivals import state
from pipelines.watch.log import Entry, digest_id

if TYPE_CHECKING:
    from collections.abc import Iterable

    from apache_beam.io.filesystem import FileMetadata

    from pipelines.inputs import InputFile
    from pipelines.runners import Failures
    from pipelines.watch.arrivals import Arrivals


@dataclass(frozen=True)
class Known:
    """An input that was taken: what it was then, and the id of its entry."""

    size: int
    mtime: float
    sha256: str
    id: str

    def is_as(self, file: FileMetadata) -> bool:
        """Whether a file looks as it did."""
        return (self.size, self.mtime) == (file.size_in_bytes, file.last_updated_in_seconds)


@dataclass(frozen=True)
class Taken:
    """What a file gave."""

    name: str
    documents: int = 0
    bytes: int = 0
    tokens: int = 0
    failures: int = 0
    problem: str | None = None


class Work(ABC):
    """Takes files; one for each process, shared by its threads.

    Args:
        directory: of the output.
        arrivals: the files.
        asked: the format of all files, or ``auto``.
        max_failures: bad records that may be set aside, over the whole life of the directory.
        failures: says when to stop.
        alone: whether no other process takes files.
    """

    def __init__(
        self,
        *,
        directory: str,
        arrivals: Arrivals,
        asked: str,
        max_failures: int,
        failures: Failures,
        alone: bool,
    ) -> None:
        self.directory = directory
        self.arrivals = arrivals
        self._asked = asked
        self._max_failures = max_failures
        self._failures = failures
        self._alone = alone
        self._known: dict[str, Known] = {}
        self._bad = 0
        self._busy: set[str] = set()
        self._lock = threading.Lock()
        self.load()

    @abstractmethod
    def entries(self) -> Iterable[tuple[str, Entry]]:
        """All entries that there are, with their ids."""

    @abstractmethod
    def find(self, name: str, key: str) -> Entry | None:
        """The entry that another process may have left for an input meanwhile."""

    @abstractmethod
    def make(self, file: InputFile, key: str) -> Entry:
        """Make of a file what it is to become; what an entry says, without ``inputs``.

        Raises:
            RecordError: one bad record more than may be set aside.
            InputError, ConfigError, bpe.BpeError: the file cannot be read.
        """

    @abstractmethod
    def commit(self, entry: Entry, key: str, before: Known | None) -> None:
        """Let an entry appear, and take away what it replaces."""

    def load(self) -> None:
        """Take in what the log says."""
        known: dict[str, Known] = {}
        bad = 0
        for id_, entry in self.entries():
            known |= _known(id_, entry)
            bad += entry["bad"]
        with self._lock:
            self._known, self._bad = known, bad

    def is_wanted(self, file: FileMetadata) -> bool:
        """Whether a file that matches is complete, and was not taken as it is now."""
        if not self.arrivals.is_input(file.path):
            return False
        known = self._known.get(self.arrivals.name(file.path))
        if known is not None and known.is_as(file):
            return False
        return file.path not in self._busy and self.arrivals.is_complete(file)

    def take(self, file: FileMetadata) -> Taken | None:
        """Make of a file what it is to become, and note it; None where nothing was to be done.

        Raises:
            RecordError: one bad record more than may be set aside.
            InputError: the file cannot be read, and no bad record may be set aside.
            OutputError: something cannot be written.
        """
        with self._lock:
            if file.path in self._busy or self._failures.stopped():
                return None
            self._busy.add(file.path)
        try:
            return self._take(file)
        finally:
            with self._lock:
                self._busy.discard(file.path)

    def _take(self, file: FileMetadata) -> Taken | None:
        name = self.arrivals.name(file.path)
        try:
            found = storage.digest(file.path)
        except InputError as error:
            if state(file.path) is None:
                return None  # gone again
            return self._set_aside(file, digest_id(name, repr(file)), "", error)
        if found.bytes != file.size_in_bytes or not _unchanged(file):
            return None  # somebody writes to it: later
        key = digest_id(name, found.sha256)
        known = self._known.get(name)
        if not self._alone and (entry := self.find(name, key)) is not None:
            with self._lock:
                self._known |= _known(self.id_of(name, key), entry)
            known = self._known.get(name)
        if known is not None and known.sha256 == found.sha256:
            with self._lock:  # only its time is another
                self._known[name] = _seen(file, found.sha256, known.id)
            return None
        try:
            source = input_file(file.path, name, file.size_in_bytes, self._asked)
            entry = self.make(source, key)
        except (InputError, ConfigError, BpeError) as error:
            if self._failures.stopped() or not _unchanged(file):
                return None
            if isinstance(error, RecordError):
                raise
            return self._set_aside(file, key, found.sha256, error)
        if not _unchanged(file):
            self.discard(entry)
            return None
        inputs = [self._described(file, source, found.sha256)]
        return self._commit({**entry, "inputs": inputs}, key, file)

    @abstractmethod
    def discard(self, entry: Entry) -> None:
        """Remove what was made of a file that changed meanwhile."""

    def _described(self, file: FileMetadata, source: InputFile | None, sha256: str) -> Any:
        return {
            "name": self.arrivals.name(file.path),
            "size": file.size_in_bytes,
            "mtime": file.last_updated_in_seconds,
            "sha256": sha256,
            "format": source.format if source else "text",
            "compression": source.compression if source else "none",
        }

    def _set_aside(
        self, file: FileMetadata, key: str, sha256: str, error: Exception
    ) -> Taken | None:
        """Note a file that cannot be read as a bad record of its own."""
        if not self._max_failures:
            raise error
        as_text = input_file(file.path, self.arrivals.name(file.path), file.size_in_bytes, "text")
        bad = BadRecord.of(whole_file(as_text, 0), 0, str(error), b"")
        letters = part_name(0, 1, "jsonl", stem=f"part-{key}")
        storage.make_directory(join(self.directory, DEAD_LETTERS))
        with replacing(join(self.directory, DEAD_LETTERS, letters)) as sink:
            sink.write(dead_letter(bad))
        written = sink.written()
        dead = {
            "file": f"{DEAD_LETTERS}/{letters}",
            "records": 1,
            "bytes": written.bytes,
            "sha256": written.sha256,
        }
        entry = {
            **self.nothing(key),
            "inputs": [self._described(file, None, sha256)],
            "failed": str(error),
            "dead_letters": [dead],
            "bad": 1,
        }
        return self._commit(entry, key, file)

    @abstractmethod
    def nothing(self, key: str) -> Entry:
        """What the entry says of an input of which nothing was made."""

    def _commit(self, entry: Entry, key: str, file: FileMetadata) -> Taken:
        (source,) = entry["inputs"]
        with self._lock:
            self._bad += entry["bad"]
            before, bad = self._known.get(source["name"]), self._bad
        if bad > self._max_failures:
            where = entry["failed"] or f"{source['name']} holds {entry['bad']} of them"
            raise RecordError(too_many(f"{bad} bad records: {where}", self._max_failures))
        self.commit(entry, key, before)
        with self._lock:
            self._known |= _known(self.id_of(source["name"], key), entry)
        self.arrivals.forget(file.path)
        return self.taken(entry)

    @abstractmethod
    def id_of(self, name: str, key: str) -> str:
        """What the entry of an input with these contents is called."""

    @abstractmethod
    def taken(self, entry: Entry) -> Taken:
        """What an entry is about, in numbers."""


def _known(id_: str, entry: Entry) -> dict[str, Known]:
    return {
        one["name"]: Known(one["size"], one["mtime"], one["sha256"], id_) for one in entry["inputs"]
    }


def _seen(file: FileMetadata, sha256: str, id_: str) -> Known:
    return Known(file.size_in_bytes, file.last_updated_in_seconds, sha256, id_)


def _unchanged(file: FileMetadata) -> bool:
    now = state(file.path)
    return now is not None and (now.size_in_bytes, now.last_updated_in_seconds) == (
        file.size_in_bytes,
        file.last_updated_in_seconds,
    )


def dead_letters_json(letters: DeadLetters | None) -> list[Any]:
    """The file of bad records as an entry says it."""
    if letters is None:
        return []
    return [
        {
            "file": letters.file,
            "records": letters.records,
            "bytes": letters.bytes,
            "sha256": letters.sha256,
        }
    ]
