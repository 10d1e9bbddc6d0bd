"""What is done with each file that arrived, whatever is made of it.

A file is taken once: its name, size, time of change and SHA-256 stand in its entry. One that looks
as it did is not read again; one whose time changed alone is, once in each process; one with other
contents is taken again, in place of what was made before. Where several processes take files, a
file may be taken twice at once: the files of each attempt have names of their own, and all readers
of the log choose the same entry.
"""

from __future__ import annotations

import threading
import uuid
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

from bpe.errors import BpeError
from pipelines import storage
from pipelines.corpus.documents import BadRecord
from pipelines.corpus.inputs import Listed, input_file
from pipelines.corpus.reading import dead_letter, dead_letters_of, too_many
from pipelines.corpus.splits import plan_splits, whole_file
from pipelines.errors import ConfigError, InputError, OutputError, RecordError
from pipelines.output.directory import plan_of_run
from pipelines.output.entries import (
    Entry,
    Taken,
    digest_id,
    keyed_files,
    read_folded,
    read_log,
    standing,
    write_entry,
)
from pipelines.output.names import MANIFEST, dead_letters_file
from pipelines.progress import many
from pipelines.storage import file_version, join
from pipelines.watch.arrivals import Arrivals

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from bpe.counts import Totals
    from bpe.counts.manifest import DeadLetters
    from pipelines.corpus.inputs import InputFile
    from pipelines.corpus.places import Places
    from pipelines.corpus.splits import Split
    from pipelines.failures import Failures
    from pipelines.output.entries import Measured
    from pipelines.output.names import Kind
    from pipelines.settings import WatchSettings
    from pipelines.storage import Version

    Made = tuple[Mapping[str, Any], Measured | None]
    Make = Callable[[str, InputFile, Sequence[Split], Sequence[DeadLetters]], Made]


class Handler(Protocol):
    """What a watch makes of files: token ids, or counts; picklable, and small.

    Attributes:
        name: of the job, in what it says.
        kind: of the output.
    """

    name: ClassVar[str]
    kind: ClassVar[Kind]

    @property
    def unit(self) -> str:
        """What it is counted in."""

    @property
    def directory(self) -> str:
        """Of the output."""

    def begin(self, *, goes_on: bool) -> None:
        """Write what is there before any file arrives; an earlier run may have done so."""

    def open(self, failures: Failures) -> Make:
        """What makes inputs in a worker; threads share it.

        It takes the key of an input, the file, its splits, and dead letters, if it is a file that
        cannot be read: then there are no splits, and what is made stands for it. It returns the
        manifest as JSON values, and how the tokenizer fits. It raises `RecordError` for one bad
        record more than may be set aside, and `InputError`, `ConfigError` or `bpe.errors.BpeError`
        where the file cannot be read.
        """

    def merge(self, before: Entry, log: Mapping[str, Entry]) -> Entry:
        """Write what replaces several entries; return the entry of ``manifest.json`` then.

        Args:
            before: the entry of ``manifest.json``.
            log: the entries beside it.
        """

    def max_pending(self, inputs: int) -> int:
        """How many entries may wait until they are merged, with so many ``inputs``."""

    def entries(self) -> Sequence[Entry]:
        """Entries of all inputs so far; no input is in two of them."""

    def totals(self, entries: Iterable[Entry]) -> Totals:
        """Sums over entries; ``pretokens`` are of the ``unit``."""


@dataclass(frozen=True, kw_only=True)
class Task:
    """What a worker must know to take files; small, and picklable.

    Attributes:
        handler: makes the output of them.
        places: where they appear.
        settings: when they are complete.
        run: of the watch.
        max_failures: bad records that may be set aside, over the whole life of the directory.
        split_size: of large files, or None.
    """

    handler: Handler
    places: Places
    settings: WatchSettings
    run: str
    max_failures: int
    split_size: int | None


class Work:
    """Takes files; one for each process, shared by its threads.

    Args:
        task: what is asked for.
        failures: says when to stop.
        alone: whether no other process can take files, of this run or of another.
    """

    def __init__(self, task: Task, failures: Failures, *, alone: bool) -> None:
        self.directory = task.handler.directory
        self.places = task.places
        self.arrivals = Arrivals(task.settings)
        self._task = task
        self._failures = failures
        self._alone = alone
        self._make = task.handler.open(failures)
        self._log: dict[str, Entry] = {}
        self._folded: tuple[Taken, ...] | None = None
        self._manifest: object = None
        self._known: dict[str, Taken] = {}
        self._touched: dict[str, tuple[tuple[int, float], str]] = {}
        self._bad = 0
        self._busy: set[str] = set()
        self._lock = threading.Lock()
        self._look()

    def look(self) -> None:
        """Take in what others have noted since the last look.

        Raises:
            OutputError: a later run has taken the directory over, and this one must end.
        """
        if not self._alone:
            plan_of_run(self.directory, self._task.run)
            self._look()

    def _look(self) -> None:
        with self._lock:
            log = read_log(self.directory, self._log)
            # The manifest may be a newer one when it is read, never an older one.
            manifest = Listed.at(join(self.directory, MANIFEST))
            if self._folded is None or manifest != self._manifest:
                self._folded, self._manifest = read_folded(self.directory).taken, manifest
            elif log is self._log:
                return
            self._log = log
            self._known = standing(self._folded, log).taken
            self._bad = sum(one.bad for one in self._known.values())

    def known(self, name: str) -> Taken | None:
        """What is known of an input, whoever took it."""
        self.look()
        return self._known.get(name)

    def _is_as(self, file: Listed, known: Taken | None) -> bool:
        """Whether a file looks as it did when it was taken, or read again in vain."""
        if known is None:
            return False
        is_now = file.stamp
        return is_now == (known.size, known.mtime) or self._touched.get(known.name) == (
            is_now,
            known.sha256,
        )

    def is_wanted(self, file: Listed) -> bool:
        """Whether a file that matches is complete, and was not taken as it is now."""
        if self._is_as(file, self._known.get(self.places.name(file.path))):
            self.arrivals.forget(file.path)
            return False
        return file.path not in self._busy and self.arrivals.is_complete(file)

    def take(self, file: Listed) -> bool:
        """Make of a file what it is to become, and note it; False where nothing was to be done.

        Raises:
            RecordError: one bad record more than may be set aside.
            InputError: the file cannot be read, and no bad record may be set aside.
            OutputError: something cannot be written, or another run has taken the directory over.
        """
        with self._lock:
            if file.path in self._busy or self._failures.stopped():
                return False
            self._busy.add(file.path)
        try:
            return self._take(file)
        finally:
            with self._lock:
                self._busy.discard(file.path)

    def _take(self, file: Listed) -> bool:
        name = self.places.name(file.path)
        known = self.known(name)
        if self._is_as(file, known):
            return False  # another process was quicker
        try:
            version = file_version(file.path)
            found = storage.digest(file.path)
        except InputError as error:
            if Listed.at(file.path) is None:
                return False  # gone again
            return self._set_aside(file, self._key(name, repr(file.stamp), known), "", error)
        if found.bytes != file.size or not _unchanged(file, version):
            return False  # somebody writes to it: later
        if known is not None and known.sha256 == found.sha256:
            self._touched[name] = file.stamp, found.sha256  # no other process needs to know
            self.arrivals.forget(file.path)
            return False
        key = self._key(name, found.sha256, known)
        try:
            asked = self._task.places.format
            source = input_file(file.path, name, file.size, asked, version=version)
            made = self.make(source, key)
        except (InputError, ConfigError, BpeError) as error:
            if self._failures.stopped() or not _unchanged(file, version):
                return False
            if isinstance(error, RecordError):
                raise
            return self._set_aside(file, key, found.sha256, error)
        entry = self._entry(file, key, found.sha256, made)
        if not _unchanged(file, version):
            self._discard(entry)
            return False
        return self._commit(entry, file)

    def make(self, file: InputFile, key: str) -> Made:
        """Make of a file what it is to become; the names of what is written hold ``key``.

        Raises:
            RecordError: one bad record more than may be set aside.
            InputError, ConfigError, bpe.errors.BpeError: it cannot be read; then nothing is left.
        """
        splits = plan_splits([file], self._task.split_size)
        try:
            return self._make(key, file, [replace(split, key=key) for split in splits], ())
        except Exception:
            for left in keyed_files(self.directory, key):
                storage.remove(join(self.directory, left))
            raise

    def _key(self, name: str, contents: str, known: Taken | None) -> str:
        """What the files of an attempt are called: no other attempt writes to them.

        Where no other process takes files, an input has the same names in every run.
        """
        attempt = [] if known is None else [str(known.revision + 1)]
        if not self._alone:
            attempt.append(uuid.uuid4().hex)
        return digest_id(name, contents, *attempt)

    def _entry(self, file: Listed, key: str, sha256: str, made: Made) -> Entry:
        manifest, measured = made
        size, mtime = file.stamp
        taken = Taken(
            name=self.places.name(file.path),
            size=size,
            mtime=mtime,
            sha256=sha256,
            key=key,
            bad=manifest["totals"]["failures"],
            measured=measured,
        )
        return Entry(manifest, (taken,))

    def _set_aside(self, file: Listed, key: str, sha256: str, error: Exception) -> bool:
        """Note a file that cannot be read as a bad record of its own."""
        if not self._task.max_failures:
            raise error
        as_text = input_file(file.path, self.places.name(file.path), file.size, "text")
        bad = BadRecord.of(whole_file(as_text, 0), 0, str(error), b"")
        path = dead_letters_file(0, 1, key)
        written = storage.write(join(self.directory, path), dead_letter(bad))
        letters = dead_letters_of(path, records=1, written=written)
        entry = self._entry(file, key, sha256, self._make(key, as_text, (), [letters]))
        return self._commit(_changed(entry, failed=str(error)), file)

    def _discard(self, entry: Entry) -> None:
        """Remove what was made in an attempt that does not count."""
        for file in entry.files:
            storage.remove(join(self.directory, file))

    def _commit(self, entry: Entry, file: Listed) -> bool:
        (taken,) = entry.taken
        try:
            before = self.known(taken.name)
            if before is not None and before.sha256 == taken.sha256 != "":
                self._discard(entry)  # another process was quicker
                return False
            self._check_limit(taken, before)
        except (RecordError, OutputError):
            self._discard(entry)
            raise
        if before is not None:
            entry = _changed(entry, revision=before.revision + 1)
            (taken,) = entry.taken
        write_entry(self.directory, entry)
        with self._lock:
            self._known[taken.name] = taken
        self.arrivals.forget(file.path)
        return True

    def _check_limit(self, taken: Taken, before: Taken | None) -> None:
        """Refuse an input with more bad records than may be set aside, in place of one before."""
        limit = self._task.max_failures
        with self._lock:
            self._bad += taken.bad - (before.bad if before else 0)
        if self._bad <= limit:
            return
        self._look()  # those of files that changed after they were added up are none
        with self._lock:
            others = [one.bad for name, one in self._known.items() if name != taken.name]
            self._bad = sum(others) + taken.bad
        if self._bad > limit:
            where = taken.failed or f"{taken.name} holds {taken.bad} of them"
            raise RecordError(too_many(f"{many(self._bad, 'bad record')}: {where}", limit))


def _changed(entry: Entry, **values: Any) -> Entry:
    return Entry(entry.manifest, tuple(replace(one, **values) for one in entry.taken))


def _unchanged(file: Listed, version: Version | None) -> bool:
    """Whether a file is as it was listed, and of the version that was found then."""
    now = Listed.at(file.path)
    if now is None or now.stamp != file.stamp:
        return False
    is_now = file_version(file.path)
    return version is not None and is_now is not None and version.may_be(is_now)
