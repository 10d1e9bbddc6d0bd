"""The log of a watched directory: what was made of each input, one small JSON file for each.

An entry is written under a temporary name and renamed, after everything that it names: a reader
sees an input with all its parts or not at all. No file of the log is ever written twice, and
workers only add to it: what an entry takes the place of is removed by the one process that folds
the log (`compact`, `counting.fold`). Where several entries are of one input, all readers choose
the same (`standing`, `newest`). The name of an entry begins with that of its input (`entry_id`).
Now and then entries of an encoded corpus are moved into ``manifest.json``, and entries of counts
are brought together in one of several inputs.

Everything here is JSON values. A reader takes the log first and the manifest second, so that an
entry on its way from one to the other is seen twice, never missed.
"""

from __future__ import annotations

import hashlib
import itertools
import json
import re
import threading
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from bpe._checksum import CHECKSUM, is_intact, with_checksum
from bpe.counts.manifest import Totals
from pipelines import storage
from pipelines.errors import InputError
from pipelines.output.names import (
    DATA,
    DEAD_LETTERS,
    MANIFEST,
    manifest_bytes,
    parse_part,
    read_json_object,
    read_manifest_object,
)
from pipelines.storage import join

if TYPE_CHECKING:
    from collections.abc import Container, Iterable, Mapping

LOG = "log"
SETS = "sets"
DRIFT = "drift"
COUNTS_KIND = "watched-counts"
WATCH = "watch"  # of a manifest: what it says of each input beside its parts
VERSION = 2
_SERIES = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}\.jsonl")
_KEY = re.compile(r"[0-9a-f]{20}")
_ENTRY = re.compile(r"[0-9a-f]{20}(-[0-9a-f]{20})?\.json")
_TRIES = 20
OUTDATED = "it was changed after it was counted: the counts are of what it held before"

Entry = dict[str, Any]


def digest_id(*texts: str) -> str:
    """80 bits of a SHA-256, in hexadecimal.

    >>> digest_id("a.jsonl")
    '8d6a6f2da8cffa60896c'
    """
    data = b"\0".join(text.encode("utf-8", "surrogateescape") for text in texts)
    return hashlib.sha256(data).hexdigest()[:20]


def files_in(directory: str) -> list[str]:
    """The parts and dead letters of inputs that lie in a directory, whoever names them."""
    found = [
        f"{folder}/{entry.name}"
        for folder in (DATA, DEAD_LETTERS)
        for entry in storage.entries(join(directory, folder))
        if entry.kind == "file"
    ]
    return [file for file in found if _key(file)]


def _key(file: str) -> str:
    name = parse_part(file)
    return name.key if name else ""


def is_series(name: str) -> bool:
    """Whether a file of this name holds rows of a series of drift."""
    return _SERIES.fullmatch(name) is not None


def entry_id(entry: Entry) -> str:
    """What an entry is called: by its input and the key of its files; of several, by the key."""
    key = str(entry["key"])
    return key if is_several(entry) else f"{digest_id(entry['inputs'][0]['name'])}-{key}"


def is_several(entry: Entry) -> bool:
    """Whether an entry is of counts that were added up."""
    return len(entry["inputs"]) > 1


def is_outdated(entry: Entry) -> bool:
    """Whether an entry only notes that its input changed after its counts were added up."""
    return bool(entry["failed"] == OUTDATED)


def write_entry(directory: str, entry: Entry) -> None:
    """Make an entry appear, whole."""
    value = with_checksum({"version": VERSION, **entry})
    data = json.dumps(value, ensure_ascii=False) + "\n"
    storage.write(join(directory, LOG, f"{entry_id(entry)}.json"), data.encode())


def remove_entry(directory: str, id_: str) -> None:
    """Remove an entry; none there is fine."""
    storage.remove(join(directory, LOG, f"{id_}.json"))


def read_entry(directory: str, id_: str) -> Entry | None:
    """An entry; None where there is none.

    Raises:
        InputError: it is damaged.
    """
    path = join(directory, LOG, f"{id_}.json")
    data = storage.read_if_there(path)
    if data is None:
        return None
    try:
        value = json.loads(data)
        if value["version"] != VERSION:
            raise InputError(
                f"{path} has version {value['version']!r}, this release reads {VERSION}: use the "
                "release of beam-bpe that wrote it, or start again with another directory"
            )
        intact = is_intact(value)
        for source in value["inputs"]:
            _ = source["name"], source["size"], source["mtime"], source["sha256"]
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise InputError(
            f"{path}: damaged: {type(error).__name__}: {error}: remove it, and the input that it "
            "is of is taken again"
        ) from error
    if not intact:
        raise InputError(
            f"{path}: damaged: its checksum says that it was changed: remove it, and the input "
            "that it is of is taken again"
        )
    return {name: value[name] for name in value if name != CHECKSUM}


def entry_names(directory: str, beginning: str = "") -> list[str]:
    """The ids of all entries of the log, or of those that begin so, sorted."""
    folder = join(directory, LOG)
    return [
        entry.name.removesuffix(".json")
        for entry in storage.entries(folder, beginning=beginning)
        if entry.kind == "file" and _ENTRY.fullmatch(entry.name)
    ]


def entries_for(directory: str, name: str) -> list[Entry]:
    """The entries of the log that are of one input of an encoded corpus."""
    ids = entry_names(directory, digest_id(name))
    return [entry for id_ in ids if (entry := read_entry(directory, id_)) is not None]


class LogReader:
    """Reads a log again and again, each entry once; threads may share it.

    Args:
        directory: that is watched.

    Attributes:
        all: entries by id as they were read last, with those that others take the place of.
        cleared: ids of entries whose files were removed though they stand: those that are outdated.
    """

    def __init__(self, directory: str) -> None:
        self._directory = directory
        self._lock = threading.Lock()
        self._standing: dict[str, Entry] | None = None
        self.all: dict[str, Entry] = {}
        self.cleared: set[str] = set()

    def read(self) -> dict[str, Entry]:
        """The entries that stand, by id; where nothing has changed, the very same as before.

        Raises:
            InputError: an entry is damaged.
        """
        with self._lock:
            for _ in range(_TRIES):
                ids = entry_names(self._directory)
                if self._standing is not None and ids == list(self.all):
                    return self._standing
                found: dict[str, Entry] = {}
                for id_ in ids:
                    entry = self.all.get(id_) or read_entry(self._directory, id_)
                    if entry is None:
                        break  # it was replaced while we looked: what replaces it is there by now
                    found[id_] = entry
                else:
                    self.all, self._standing = found, standing(found)
                    return self._standing
        raise InputError(
            f"{join(self._directory, LOG)}: changes faster than it can be read: try again"
        )


def read_log(directory: str) -> dict[str, Entry]:
    """All entries of the log by id, as `LogReader.read` gives them."""
    return LogReader(directory).read()


def standing(entries: Mapping[str, Entry]) -> dict[str, Entry]:
    """Of all entries of a log, those that stand, by id; no input counts twice.

    A job that is killed, a bundle that is processed twice and a file that changes leave several
    entries of one input: that of the last revision stands. Counts that were added up cannot be
    taken apart: an entry of several inputs stands before those of one, and a later revision of one
    of its inputs only notes that it changed.
    """
    several = [item for item in entries.items() if is_several(item[1])]
    stand: dict[str, Entry] = {}
    held: dict[str, int] = {}  # the revisions of inputs that were added up
    for id_, entry in sorted(several, key=lambda item: (-len(item[1]["inputs"]), item[0])):
        revisions = {source["name"]: source["revision"] for source in entry["inputs"]}
        if not held.keys() & revisions.keys():
            stand[id_] = entry
            held |= revisions
    for name, entry in newest(one for one in entries.values() if not is_several(one)).items():
        if name not in held:
            stand[entry_id(entry)] = entry
        elif entry["revision"] > held[name]:
            stand[entry_id(entry)] = {**entry, **_NOTHING}
    return {id_: stand[id_] for id_ in sorted(stand)}


_NOTHING = {
    "failed": OUTDATED,
    "bad": 0,
    "set": None,
    "totals": asdict(Totals()),
    "dead_letters": [],
}


def is_watched_counts(directory: str) -> bool:
    """Whether files are counted into this directory as they arrive."""
    return (read_json_object(join(directory, MANIFEST)) or {}).get("kind") == COUNTS_KIND


def set_names(directory: str) -> list[str]:
    """The keys of all shard sets that lie in a directory of counts, whoever names them."""
    path = join(directory, SETS)
    if storage.is_local(directory):
        found = {entry.name for entry in storage.entries(path) if entry.kind == "directory"}
    else:
        found = storage.folders(path)
    return sorted(key for key in found if _KEY.fullmatch(key))


def remove_shards(directory: str, key: str) -> None:
    """Remove a shard set, its manifest first."""
    folder = join(directory, SETS, key)
    storage.remove(join(folder, MANIFEST))
    storage.remove_directory(join(folder, DATA))
    storage.remove_directory(folder)


def entries_of(manifest: dict[str, Any]) -> list[Entry]:
    """The entries that were moved into the manifest of an encoded corpus."""
    parts: dict[str, list[Any]] = {}
    dead: dict[str, list[Any]] = {}
    for part in manifest["parts"]:
        parts.setdefault(_key(part["file"]), []).append(part)
    for letters in manifest["dead_letters"]:
        dead.setdefault(_key(letters["file"]), []).append(letters)
    return [
        {
            **row,
            "parts": parts.get(row["key"], []),
            "dead_letters": dead.get(row["key"], []),
        }
        for row in manifest[WATCH]
    ]


def newest(*sources: Iterable[Entry]) -> dict[str, Entry]:
    """Entries of an encoded corpus by input; of those of one input, that of the last revision."""
    found: dict[str, Entry] = {}
    for entry in itertools.chain(*sources):
        name = entry["inputs"][0]["name"]
        if name not in found or rank(entry) > rank(found[name]):
            found[name] = entry
    return found


def rank(entry: Entry) -> tuple[int, str]:
    """Of two entries of one input, the one of the greater rank holds."""
    return entry["revision"], entry["key"]


def files_of(entry: Entry) -> list[str]:
    """The parts and the dead letters that an entry names."""
    return [one["file"] for kind in ("parts", "dead_letters") for one in entry.get(kind, ())]


def remove_files(directory: str, entry: Entry, *, keep: Container[str] = ()) -> None:
    """Remove what an entry names, its shard set included, but files to ``keep``."""
    if entry.get("set") is not None:
        remove_shards(directory, entry["set"])
    for file in files_of(entry):
        if file not in keep:
            storage.remove(join(directory, file))


def with_entries(manifest: dict[str, Any], entries: dict[str, Entry]) -> dict[str, Any]:
    """The manifest of an encoded corpus with these entries, given by input, in that order."""
    ordered = [entries[name] for name in sorted(entries)]
    made = [entry for entry in ordered if entry["failed"] is None]
    parts = [part for entry in made for part in entry["parts"]]
    dead = [letters for entry in ordered for letters in entry["dead_letters"]]
    sums = ("documents", "rows", "tokens", "unknown", "text_bytes", "bytes")
    dropped = ("tokens", "documents", "cut")
    return {
        **manifest,
        "totals": {
            **{name: sum(part[name] for part in parts) for name in sums},
            "dropped": {name: sum(part["dropped"][name] for part in parts) for name in dropped},
            "failures": sum(letters["records"] for letters in dead),
        },
        "inputs": [
            {name: source[name] for name in ("name", "size", "format", "compression")}
            for entry in made
            for source in entry["inputs"]
        ],
        "dead_letters": dead,
        "parts": parts,
        WATCH: [
            {key: value for key, value in entry.items() if key not in ("parts", "dead_letters")}
            for entry in ordered
        ],
    }


def read_manifest(directory: str) -> dict[str, Any]:
    """The manifest of a watched corpus with what the log holds beside it."""
    log = read_log(directory)
    manifest = _compacted(directory)
    return with_entries(manifest, newest(entries_of(manifest), log.values()))


def read_compacted(directory: str) -> list[Entry]:
    """The entries that were moved into the manifest of a watched corpus."""
    return entries_of(_compacted(directory))


def _compacted(directory: str) -> dict[str, Any]:
    return read_manifest_object(join(directory, MANIFEST))


def drop(directory: str, lost: Iterable[Entry]) -> None:
    """Remove entries from the manifest, and what is there of their files."""
    lost = list(lost)
    if not lost:
        return
    manifest = _compacted(directory)
    keys = {entry["key"] for entry in lost}
    entries = newest(entry for entry in entries_of(manifest) if entry["key"] not in keys)
    storage.write(join(directory, MANIFEST), manifest_bytes(with_entries(manifest, entries)))
    for entry in lost:
        remove_files(directory, entry)


def compact(directory: str, reader: LogReader | None = None) -> dict[str, Entry]:
    """Move the log into the manifest; remove the files of entries that others take the place of.

    One process at a time may do so; others read, and write entries, meanwhile.

    Args:
        directory: that is watched.
        reader: that has read the log: what came later stays there; None for all of it.

    Returns:
        The entries that the manifest holds now, by input.
    """
    if reader is None:
        reader = LogReader(directory)
        reader.read()
    manifest = _compacted(directory)
    before, log = entries_of(manifest), dict(reader.all)
    entries = newest(before, log.values())
    together = with_entries(manifest, entries)
    if together != manifest:
        storage.write(join(directory, MANIFEST), manifest_bytes(together))
    keys = {entry["key"] for entry in entries.values()}
    for entry in (*before, *log.values()):
        if entry["key"] not in keys:
            remove_files(directory, entry)
    for id_ in log:
        remove_entry(directory, id_)
    return entries
