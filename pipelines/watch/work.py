"""What is done with each file that arrived, whatever is made of it.

A file is taken once: its name, size, time of change and SHA-256 stand in the log. One that looks as
it did is not read again; one whose time changed alone is, once in each process; one with other
contents is taken again, in place of what was made before. Where several processes take files, a
file may be taken twice at once: the files of each attempt have names of their own, and all readers
of the log choose the same entry.
"""

from __future__ import annotations

import threading
import uuid
from abc import ABC, abstractmethod
from collections import Counter
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any

from bpe.errors import BpeError
from pipelines import storage
from pipelines.corpus.documents import BadRecord
from pipelines.corpus.inputs import input_file
from pipelines.corpus.reading import too_many
from pipelines.corpus.splits import plan_splits, whole_file
from pipelines.encode.parts import DeadLetters, dead_letter
from pipelines.errors import ConfigError, InputError, OutputError, RecordError
from pipelines.metrics import counters_kept
from pipelines.output.names import PLAN, dead_letters_file, read_json_object
from pipelines.progress import many
from pipelines.storage import file_version, join
from pipelines.watch import log
from pipelines.watch.arrivals import stamp, state
from pipelines.watch.log import Entry, digest_id

RUN = "run"  # of a plan: which run of the watch wrote it last

if TYPE_CHECKING:
    from collections.abc import Iterable

    from apache_beam.io.filesystem import FileMetadata

    from pipelines.corpus.inputs import InputFile
    from pipelines.corpus.splits import Split
    from pipelines.failures import Failures
    from pipelines.storage import Version
    from pipelines.watch.arrivals import Arrivals


@dataclass(frozen=True)
class Known:
    """An input that was taken: what it was then, and the revision of its entry.

    ``bad`` are the bad records of an entry that is of this input alone.
    """

    size: int
    mtime: float
    sha256: str
    revision: int
    bad: int

    def is_as(self, file: FileMetadata) -> bool:
        """Whether a file looks as it did."""
        return (self.size, self.mtime) == stamp(file)

    def same(self, other: Known | None) -> bool:
        """Whether both are of the same contents, taken once."""
        mine = (self.revision, self.sha256)
        return other is not None and mine == (other.revision, other.sha256)


@dataclass(frozen=True, kw_only=True)
class Task(ABC):
    """What a worker must know to take files; small, and picklable.

    Attributes:
        directory: of the output.
        format: of all files, or ``auto``.
        max_failures: bad records that may be set aside, over the whole life of the directory.
        split_size: of large files, or None.
    """

    directory: str
    format: str
    max_failures: int
    split_size: int | None

    @abstractmethod
    def work(self, arrivals: Arrivals, failures: Failures, run: str | None) -> Work:
        """What takes files, in a worker; the arguments are those of `Work`."""


class Work(ABC):
    """Takes files; one for each process, shared by its threads.

    Args:
        task: what is asked for.
        arrivals: the files.
        failures: says when to stop.
        run: of the watch, where other processes take files too; None where none does.
    """

    def __init__(
        self, task: Task, *, arrivals: Arrivals, failures: Failures, run: str | None
    ) -> None:
        self.directory = task.directory
        self.arrivals = arrivals
        self._task = task
        self._failures = failures
        self._run = run
        self._known: dict[str, Known] = {}
        self._bad = 0
        self._busy: set[str] = set()
        self._lock = threading.Lock()
        self.load()

    @property
    def alone(self) -> bool:
        """Whether no other process takes files."""
        return self._run is None

    @abstractmethod
    def entries(self) -> Iterable[Entry]:
        """All entries that there are; of those of one input, the one that holds comes last."""

    @abstractmethod
    def entries_for(self, name: str) -> Iterable[Entry]:
        """Those of one input that another process may have written since they were loaded."""

    @abstractmethod
    def make(self, file: InputFile, key: str) -> Entry:
        """Make of a file what it is to become; what an entry says, without ``inputs``.

        Raises:
            RecordError: one bad record more than may be set aside.
            InputError, ConfigError, bpe.BpeError: the file cannot be read; then nothing is left.
        """

    def load(self) -> None:
        """Take in what the log says."""
        known: dict[str, Known] = {}
        bad = 0
        for entry in self.entries():
            known |= _known(entry)
            bad += entry["bad"]
        with self._lock:
            for name, ours in self._known.items():
                found = known.get(name)
                # Of the same contents, ours may have another time by now.
                if found is None or ours.revision > found.revision or ours.same(found):
                    known[name] = ours
            self._known, self._bad = known, bad

    def known(self, name: str) -> Known | None:
        """What is known of an input, whoever took it."""
        if not self.alone and (entries := list(self.entries_for(name))):
            found = _known(entries[-1])[name]
            with self._lock:
                known = self._known.get(name)
                if known is None or (found.revision >= known.revision and not found.same(known)):
                    self._known[name] = found
        return self._known.get(name)

    def is_wanted(self, file: FileMetadata) -> bool:
        """Whether a file that matches is complete, and was not taken as it is now."""
        name = self.arrivals.name(file.path)
        known = self._known.get(name)
        if known is not None and known.is_as(file):
            self.arrivals.forget(file.path)
            return False
        if file.path in self._busy or not self.arrivals.is_complete(file):
            return False
        return self.alone or (known := self.known(name)) is None or not known.is_as(file)

    def take(self, file: FileMetadata) -> Counter[str] | None:
        """Make of a file what it is to become, and note it.

        Returns:
            What is to be added to Beam's counters, in a thread of Beam's; None where nothing was to
            be done, or what was made of the file does not count.

        Raises:
            RecordError: one bad record more than may be set aside.
            InputError: the file cannot be read, and no bad record may be set aside.
            OutputError: something cannot be written, or another run has taken the directory over.
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

    def _take(self, file: FileMetadata) -> Counter[str] | None:
        name = self.arrivals.name(file.path)
        known = self.known(name)
        if known is not None and known.is_as(file):
            return None  # another process was quicker
        try:
            version = file_version(file.path)
            found = storage.digest(file.path)
        except InputError as error:
            if state(file.path) is None:
                return None  # gone again
            return self._set_aside(file, self._key(name, repr(stamp(file)), known), "", error)
        if found.bytes != file.size_in_bytes or not _unchanged(file, version):
            return None  # somebody writes to it: later
        if known is not None and known.sha256 == found.sha256:
            self._touched(name, file, known)
            return None
        key = self._key(name, found.sha256, known)
        try:
            source = input_file(
                file.path, name, file.size_in_bytes, self._task.format, version=version
            )
            with counters_kept() as counted:
                entry = self.make(source, key)
        except (InputError, ConfigError, BpeError) as error:
            if self._failures.stopped() or not _unchanged(file, version):
                return None
            if isinstance(error, RecordError):
                raise
            return self._set_aside(file, key, found.sha256, error)
        if not _unchanged(file, version):
            self.discard(entry)
            return None
        inputs = [self._described(file, source, found.sha256)]
        return self._commit({**entry, "inputs": inputs}, file, counted)

    def _touched(self, name: str, file: FileMetadata, known: Known) -> None:
        """Only the time of a file is another: no other process needs to know."""
        size, mtime = stamp(file)
        with self._lock:
            self._known[name] = replace(known, size=size, mtime=mtime)
        self.arrivals.forget(file.path)

    def _key(self, name: str, contents: str, known: Known | None) -> str:
        """What the files of an attempt are called: no other attempt writes to them.

        Where no other process takes files, an input has the same names in every run.
        """
        attempt = [] if known is None else [str(known.revision + 1)]
        if not self.alone:
            attempt.append(uuid.uuid4().hex)
        return digest_id(name, contents, *attempt)

    def discard(self, entry: Entry) -> None:
        """Remove what was made in an attempt that does not count."""
        log.remove_files(self.directory, entry)

    def _described(self, file: FileMetadata, source: InputFile | None, sha256: str) -> Any:
        size, mtime = stamp(file)
        return {
            "name": self.arrivals.name(file.path),
            "size": size,
            "mtime": mtime,
            "sha256": sha256,
            "format": source.format if source else "text",
            "compression": source.compression if source else "none",
        }

    def _set_aside(
        self, file: FileMetadata, key: str, sha256: str, error: Exception
    ) -> Counter[str] | None:
        """Note a file that cannot be read as a bad record of its own."""
        if not self._task.max_failures:
            raise error
        as_text = input_file(file.path, self.arrivals.name(file.path), file.size_in_bytes, "text")
        bad = BadRecord.of(whole_file(as_text, 0), 0, str(error), b"")
        letters_file = dead_letters_file(0, 1, key)
        written = storage.write(join(self.directory, letters_file), dead_letter(bad))
        letters = DeadLetters.of(letters_file, records=1, written=written)
        entry = {
            **self.nothing(key),
            "inputs": [self._described(file, None, sha256)],
            "failed": str(error),
            "dead_letters": dead_letters_json(letters),
            "bad": 1,
        }
        return self._commit(entry, file, Counter())

    @abstractmethod
    def nothing(self, key: str) -> Entry:
        """What the entry says of an input of which nothing was made."""

    def _commit(
        self, entry: Entry, file: FileMetadata, counted: Counter[str]
    ) -> Counter[str] | None:
        (source,) = entry["inputs"]
        name = source["name"]
        before = self.known(name)
        if before is not None:
            if before.sha256 == source["sha256"] != "":
                self.discard(entry)  # another process was quicker
                return None
            entry["revision"] = before.revision + 1
        bad = self._add_bad(entry, before)
        if bad > self._task.max_failures:
            self.load()  # those of files that changed after they were added up are none
            bad = self._add_bad(entry, self._known.get(name))
        if bad > self._task.max_failures:
            self.discard(entry)
            where = entry["failed"] or f"{name} holds {entry['bad']} of them"
            told = f"{many(bad, 'bad record')}: {where}"
            raise RecordError(too_many(told, self._task.max_failures))
        try:
            self.see_run()
        except OutputError:
            self.discard(entry)
            raise
        log.write_entry(self.directory, entry)
        with self._lock:
            self._known |= _known(entry)
        self.arrivals.forget(file.path)
        if entry["failed"] is not None:  # nothing was made of it
            counted = Counter(dead_letters=entry["bad"])
        counted["files_taken"] = 1
        return counted

    def _add_bad(self, entry: Entry, before: Known | None) -> int:
        """How many bad records there are with those of an entry, in place of what was before."""
        with self._lock:
            self._bad += entry["bad"] - (before.bad if before else 0)
            return self._bad

    def see_run(self) -> None:
        """See that this job has not lost its command, and its directory to a later run.

        Raises:
            OutputError: it has.
        """
        if self._run is None:
            return
        plan = read_json_object(join(self.directory, PLAN))
        if plan is not None and plan.get(RUN) != self._run:
            raise OutputError(
                f"{self.directory}: another watch has been started there since this job began, so "
                "this one ends"
            )


def _known(entry: Entry) -> dict[str, Known]:
    bad = 0 if log.is_several(entry) else entry["bad"]
    return {
        one["name"]: Known(
            one["size"], one["mtime"], one["sha256"], one.get("revision", entry["revision"]), bad
        )
        for one in entry["inputs"]
    }


def _unchanged(file: FileMetadata, version: Version | None) -> bool:
    """Whether a file is as it was listed, and of the version that was found then."""
    now = state(file.path)
    if now is None or stamp(now) != stamp(file):
        return False
    is_now = file_version(file.path)
    return version is not None and is_now is not None and version.may_be(is_now)


def splits_of(file: InputFile, key: str, split_size: int | None) -> list[Split]:
    """The splits of one input; their files are named after it and its contents."""
    return [replace(split, key=key) for split in plan_splits([file], split_size)]


def dead_letters_json(letters: DeadLetters | None) -> list[Any]:
    """The file of bad records as an entry says it."""
    return [] if letters is None else [asdict(letters)]
