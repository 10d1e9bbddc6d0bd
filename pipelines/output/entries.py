"""What was made of each file that a watch took: the entries of its directory, for all who read it.

An entry is a manifest of one input, as that of a whole output says it, and what the watch must know
of the file. It is one file of ``log/``, written under a temporary name and renamed after all files
that it names: a reader sees an input with all its parts, or not at all. Workers only add entries.
One process merges them now and then (`pipelines.watch.folding`): those of an encoded
corpus in ``manifest.json``, those of counts in entries of several inputs. Where several entries are
of one input, all readers choose the same (`standing`).

A reader takes the log first and ``manifest.json`` second, so that an entry on its way from one to
the other is seen twice, never missed.
"""

from __future__ import annotations

import hashlib
import json
import operator
import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, TypeVar

from bpe._codec import decode, encode
from bpe.errors import BpeError
from bpe.files import is_intact
from pipelines import storage
from pipelines.errors import InputError, JobError
from pipelines.output.names import (
    DATA,
    DEAD_LETTERS,
    MANIFEST,
    manifest_bytes,
    parse_part,
    read_json_object,
    read_manifest_object,
    read_plan,
)
from pipelines.storage import join

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

LOG = "log"
DRIFT = "drift"
FOLDERS = (LOG, DRIFT, DATA, DEAD_LETTERS)
WATCH = "watch"  # of an entry: its inputs; of the settings of a plan: the patterns
COUNTS_KIND = "watched-counts"  # of the manifest that says that all counts are in the log
VERSION = 3  # 2 had entries of another form, and counts in folders of their own
_ENTRY = re.compile(r"[0-9a-f]{20}(-[0-9a-f]{20})?\.json")
_SERIES = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}\.jsonl")
_TRIES = 20
_State = TypeVar("_State")
_Read = TypeVar("_Read")


@dataclass(frozen=True)
class Measured:
    """Sums over texts: their bytes and tokens, tokens of one byte, pre-tokens, those unseen."""

    text_bytes: int = 0
    tokens: int = 0
    single_byte_tokens: int = 0
    pretokens: int = 0
    unseen: int = 0

    def __add__(self, other: Measured) -> Measured:
        return Measured(*map(operator.add, vars(self).values(), vars(other).values()))

    def __sub__(self, other: Measured) -> Measured:
        return Measured(*map(operator.sub, vars(self).values(), vars(other).values()))

    @property
    def bytes_per_token(self) -> float | None:
        """None where there are no tokens."""
        return self.text_bytes / self.tokens if self.tokens else None

    @property
    def single_byte_share(self) -> float | None:
        """Of all tokens, from 0 to 1; None where there are none."""
        return self.single_byte_tokens / self.tokens if self.tokens else None

    @property
    def unseen_per_million(self) -> float | None:
        """Of all pre-tokens; None where they were not looked at."""
        return 1e6 * self.unseen / self.pretokens if self.pretokens else None


@dataclass(frozen=True, kw_only=True, slots=True)
class Taken:
    """A file that was taken, as it was then.

    Attributes:
        name: its path below the folder of all patterns.
        size: bytes as stored.
        mtime: seconds since 1970.
        sha256: of its bytes (hex); empty where they cannot be read.
        key: of the files that were made of it: 20 hexadecimal digits in their names.
        revision: how many times it was taken before, with other contents.
        failed: why it is none of the inputs; None where it is one.
        bad: records that were set aside, or 1 where it failed.
        measured: how the tokenizer fits; None of counts.
        outdated: whether it changed after its counts were added up: they are of what it held then.
    """

    name: str
    size: int
    mtime: float
    sha256: str
    key: str
    revision: int = 0
    failed: str | None = None
    bad: int = 0
    measured: Measured | None = None
    outdated: bool = False

    @property
    def rank(self) -> tuple[int, str]:
        """Of two entries of one input, the one of the greater rank holds."""
        return self.revision, self.key


@dataclass(frozen=True, kw_only=True)
class Watch:
    """What a manifest says of the files that a watch took."""

    version: int = VERSION
    inputs: tuple[Taken, ...]


@dataclass(frozen=True)
class Entry:
    """What was made of one input, or of several.

    Attributes:
        manifest: of an encoded corpus, or of counts, as JSON values.
        taken: the inputs, sorted by name; those that failed too.
    """

    manifest: Mapping[str, Any]
    taken: tuple[Taken, ...]

    @property
    def id(self) -> str:
        """What it is called in the log; that of one input begins with the digest of its name."""
        if len(self.taken) == 1:
            return f"{digest_id(self.taken[0].name)}-{self.taken[0].key}"
        return key_of(self.manifest["parts"][0]["file"])

    @property
    def files(self) -> set[str]:
        """The parts and dead letters that it names."""
        named = [*self.manifest.get("parts", ()), *self.manifest.get("dead_letters", ())]
        return {one["file"] for one in named}

    def to_json(self) -> dict[str, Any]:
        """The manifest with the inputs."""
        return {**self.manifest, WATCH: encode(Watch(inputs=self.taken))}

    @classmethod
    def of_json(cls, value: dict[str, Any], path: str) -> Entry:
        """The entry in the file ``path``.

        Raises:
            InputError: it is of another release.
            ValueError: it is damaged.
        """
        watch = value.get(WATCH)
        if not isinstance(watch, dict) or watch.get("version") != VERSION:
            version = watch.get("version") if isinstance(watch, dict) else None
            raise InputError(
                f"{path} is of a watch of version {version!r:.60}, this release reads {VERSION}: "
                "use the release of beam-bpe that wrote it, or start again with another directory"
            )
        return cls(value, decode(Watch, watch).inputs)


@dataclass(frozen=True)
class Standing:
    """What holds of a log, so that no input counts twice.

    Attributes:
        entries: those that hold, by id.
        taken: all inputs by name as they were last, those of ``manifest.json`` too.
        notes: ids of entries that only say that their input is outdated.
    """

    entries: dict[str, Entry]
    taken: dict[str, Taken]
    notes: set[str]


def standing(folded: Iterable[Taken], log: Mapping[str, Entry]) -> Standing:
    """What holds of a log and of the inputs that were ``folded`` into ``manifest.json``.

    A job that is killed, a bundle that is processed twice and a file that changes leave several
    entries of one input: that of the last revision holds. Counts that were added up cannot be
    taken apart: an entry of several inputs holds before those of one, and a later revision of one
    of its inputs only notes that it changed.
    """
    taken = {one.name: one for one in folded}
    entries: dict[str, Entry] = {}
    added_up: dict[str, Taken] = {}
    largest = sorted(log.items(), key=lambda item: (-len(item[1].taken), item[0]))
    for id_, entry in largest:
        names = {one.name: one for one in entry.taken}
        if len(names) > 1 and not added_up.keys() & names.keys():
            entries[id_] = entry
            added_up |= names
    taken |= added_up
    last: dict[str, str] = {}
    for id_, entry in log.items():
        if len(entry.taken) == 1:
            (one,) = entry.taken
            before = taken.get(one.name)
            if one.name in added_up and one.revision <= added_up[one.name].revision:
                continue  # of a bundle that was processed twice
            if before is None or one.rank > before.rank:
                taken[one.name], last[one.name] = one, id_
    notes = {last[name] for name in last.keys() & added_up.keys()}
    for name, id_ in last.items():
        if id_ not in notes:
            entries[id_] = log[id_]
            continue
        is_now = taken[name]
        taken[name] = replace(
            added_up[name],
            size=is_now.size,
            mtime=is_now.mtime,
            sha256=is_now.sha256,
            revision=is_now.revision,
            outdated=True,
        )
    return Standing(entries, taken, notes)


def digest_id(*texts: str) -> str:
    """80 bits of a SHA-256, in hexadecimal.

    >>> digest_id("a.jsonl")
    '8d6a6f2da8cffa60896c'
    """
    data = b"\0".join(text.encode("utf-8", "surrogateescape") for text in texts)
    return hashlib.sha256(data).hexdigest()[:20]


def key_of(file: str) -> str:
    """The key in the name of a part or of dead letters; empty where there is none."""
    name = parse_part(file)
    return name.key if name else ""


def write_entry(directory: str, entry: Entry) -> None:
    """Make an entry of the log appear, whole."""
    storage.write(join(directory, LOG, f"{entry.id}.json"), manifest_bytes(entry.to_json()))


def remove_entry(directory: str, id_: str) -> None:
    """Remove an entry from the log; none there is fine."""
    storage.remove(join(directory, LOG, f"{id_}.json"))


def entry_ids(directory: str) -> list[str]:
    """The ids of all entries of the log, sorted."""
    return [
        entry.name.removesuffix(".json")
        for entry in storage.entries(join(directory, LOG))
        if entry.kind == "file" and is_entry(entry.name)
    ]


def read_entry(directory: str, id_: str) -> Entry | None:
    """An entry of the log; None where there is none.

    Raises:
        InputError: it is damaged.
    """
    path = join(directory, LOG, f"{id_}.json")
    data = storage.read_if_there(path)
    if data is None:
        return None
    help_ = "remove it, and the input that it is of is taken again"
    try:
        value = json.loads(data)
        if not isinstance(value, dict):
            raise ValueError("no JSON object")  # noqa: TRY301, TRY004 - as all damage
        intact, entry = is_intact(value), Entry.of_json(value, path)
    except (ValueError, RecursionError) as error:
        raise InputError(f"{path}: damaged: {error}: {help_}") from error
    if not intact:
        raise InputError(f"{path}: checksum mismatch: the file is corrupt or was edited: {help_}")
    return entry


def read_log(directory: str, known: dict[str, Entry] | None = None) -> dict[str, Entry]:
    """All entries of the log by id; ``known`` itself, which is not read again, if none changed.

    Raises:
        InputError: an entry is damaged.
    """
    for _ in range(_TRIES):
        ids = entry_ids(directory)
        if known is not None and ids == list(known):
            return known
        found: dict[str, Entry] = {}
        for id_ in ids:
            entry = (known or {}).get(id_) or read_entry(directory, id_)
            if entry is None:
                break  # it was replaced while we looked: what replaces it is there by now
            found[id_] = entry
        else:
            return found
    raise InputError(f"{join(directory, LOG)}: changes faster than it can be read: try again")


def read_folded(directory: str) -> Entry:
    """The entry that ``manifest.json`` is: of counts, and in the beginning, of no input.

    Raises:
        InputError: it is not there, or damaged.
    """
    path = join(directory, MANIFEST)
    try:
        return Entry.of_json(read_manifest_object(path), path)
    except ValueError as error:
        raise InputError(f"{path}: damaged: {error}: begin again with another directory") from error


def write_folded(directory: str, entry: Entry) -> None:
    """Write the entry that ``manifest.json`` is."""
    storage.write(join(directory, MANIFEST), manifest_bytes(entry.to_json()))


def read_steadily(
    state: Callable[[], _State],
    names: Callable[[_State], Iterable[str]],
    read: Callable[[_State], _Read],
) -> _Read:
    """What is read of a directory; read again where something was taken away meanwhile.

    What was made of a file that changed is taken away, and so are counts that were added up. Where
    nothing was, an error is one.

    Args:
        state: reads what is there.
        names: of what is read, in a state: what is missing in a later one was taken away.
        read: reads it.
    """
    later = state()
    for left in reversed(range(_TRIES)):
        now = later
        try:
            return read(now)
        except (JobError, BpeError):
            later = state()
            if not left or set(names(now)) <= set(names(later)):
                raise
    raise AssertionError("the last try returns or raises")


def is_watched(directory: str) -> bool:
    """Whether a job that watches made this directory."""
    settings = read_plan(directory).get("settings")
    return isinstance(settings, dict) and WATCH in settings


def is_watched_counts(directory: str) -> bool:
    """Whether files are counted into this directory as they arrive."""
    return (read_json_object(join(directory, MANIFEST)) or {}).get("kind") == COUNTS_KIND


def keyed_files(directory: str, key: str = "") -> set[str]:
    """The parts and dead letters that a watch left in a directory, whoever names them.

    Args:
        directory: that is watched.
        key: of those that are asked for; empty for all.
    """
    found = {
        f"{folder}/{entry.name}"
        for folder in (DATA, DEAD_LETTERS)
        for entry in storage.entries(join(directory, folder))
        if entry.kind == "file"
    }
    return {file for file in found if key_of(file) and key in ("", key_of(file))}


def is_entry(name: str) -> bool:
    """Whether a file of this name holds an entry of a log."""
    return _ENTRY.fullmatch(name) is not None


def is_series(name: str) -> bool:
    """Whether a file of this name holds rows of a series of drift."""
    return _SERIES.fullmatch(name) is not None
