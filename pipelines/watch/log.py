"""The log of a watched directory: what was made of each input, one small JSON file for each.

An entry is written under a temporary name and renamed, after everything that it names: a reader
sees an input with all its parts or not at all. In an encoded corpus an entry has the name of its
input (`entry_id`), so that a later one replaces it; now and then entries are moved into
``manifest.json`` (`compact`). In counts an entry has the name of its shard set, and entries are
brought together in one that names those it replaces.

Everything here is JSON values. A reader takes the log first and the manifest second, so that an
entry on its way from one to the other is seen twice, never missed.
"""

from __future__ import annotations

import hashlib
import json
import re
import threading
from typing import Any

from pipelines import storage
from pipelines.errors import InputError
from pipelines.output import MANIFEST, json_bytes, read_json_object
from pipelines.storage import join

LOG = "log"
SETS = "sets"
DRIFT = "drift"
COUNTS_KIND = "watched-counts"
WATCH = "watch"  # of a manifest: what it says of each input beside its parts
VERSION = 1
_PART = re.compile(r"part-[0-9a-f]{20}-[0-9]{5,}-of-[0-9]{5,}\.(parquet|jsonl)")
_SERIES = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}\.jsonl")
_KEY = re.compile(r"[0-9a-f]{20}")
_ENTRY = re.compile(r"[0-9a-f]{20}\.json")
_TRIES = 20
_LOCKS: dict[str, threading.RLock] = {}
_LOCKS_LOCK = threading.Lock()

Entry = dict[str, Any]


def changing(directory: str) -> threading.RLock:
    """Keeps other threads of this process from replacing entries of a directory's log.

    Whoever reads entries, and takes away some of them for what was read, holds it meanwhile.
    """
    with _LOCKS_LOCK:
        return _LOCKS.setdefault(directory, threading.RLock())


def digest_id(*texts: str) -> str:
    """80 bits of a SHA-256, in hexadecimal.

    >>> digest_id("a.jsonl")
    '8d6a6f2da8cffa60896c'
    """
    data = b"\0".join(text.encode("utf-8", "surrogateescape") for text in texts)
    return hashlib.sha256(data).hexdigest()[:20]


def is_part(name: str) -> bool:
    """Whether a file of this name is a part, or dead letters, of one input."""
    return _PART.fullmatch(name) is not None


def is_series(name: str) -> bool:
    """Whether a file of this name holds rows of a series of drift."""
    return _SERIES.fullmatch(name) is not None


def entry_id(name: str) -> str:
    """What the entry of an input of an encoded corpus is called."""
    return digest_id(name)


def write_entry(directory: str, id_: str, entry: Entry) -> None:
    """Make an entry appear, whole."""
    storage.make_directory(join(directory, LOG))
    data = json.dumps({"version": VERSION, **entry}, ensure_ascii=False) + "\n"
    storage.write(join(directory, LOG, f"{id_}.json"), data.encode())


def remove_entry(directory: str, id_: str) -> None:
    """Remove an entry; none there is fine."""
    storage.remove(join(directory, LOG, f"{id_}.json"))


def read_entry(directory: str, id_: str) -> Entry | None:
    """An entry; None where there is none.

    Raises:
        InputError: it is damaged.
    """
    path = join(directory, LOG, f"{id_}.json")
    try:
        data = storage.read(path)
    except InputError:
        if storage.exists(path):
            raise
        return None
    try:
        value = json.loads(data)
        if value["version"] != VERSION:
            raise InputError(f"{path} is of version {value['version']!r}, this reads {VERSION}")
        for source in value["inputs"]:
            _ = source["name"], source["size"], source["mtime"], source["sha256"]
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise InputError(
            f"{path}: damaged: {type(error).__name__}: {error}: remove it, and the input that it "
            "is of is taken again"
        ) from error
    return dict(value)


def entry_names(directory: str) -> list[str]:
    """The ids of all entries of the log."""
    return [
        entry.name.removesuffix(".json")
        for entry in storage.entries(join(directory, LOG))
        if entry.kind == "file" and _ENTRY.fullmatch(entry.name)
    ]


def read_log(directory: str, cache: dict[str, Entry] | None = None) -> dict[str, Entry]:
    """All entries of the log by id, without those that others replace.

    Args:
        directory: that is watched.
        cache: entries that were read before, by id; only where an id has one entry for good.
    """
    for _ in range(_TRIES):
        entries: dict[str, Entry] = {}
        for id_ in entry_names(directory):
            entry = (cache or {}).get(id_) or read_entry(directory, id_)
            if entry is None:
                break  # it was replaced while we looked: what replaces it is there by now
            entries[id_] = entry
        else:
            for replaced in {old for entry in entries.values() for old in entry["replaces"]}:
                entries.pop(replaced, None)
            if cache is not None:
                cache.clear()
                cache.update(entries)
            return entries
    raise InputError(f"{join(directory, LOG)}: changes faster than it can be read: try again")


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


def entries_of(manifest: dict[str, Any]) -> dict[str, Entry]:
    """The entries that were moved into the manifest of an encoded corpus, by id."""
    parts: dict[str, list[Any]] = {}
    dead: dict[str, list[Any]] = {}
    for part in manifest["parts"]:
        parts.setdefault(_stem(part["file"]), []).append(part)
    for letters in manifest["dead_letters"]:
        dead.setdefault(_stem(letters["file"]), []).append(letters)
    return {
        entry_id(row["inputs"][0]["name"]): {
            **row,
            "parts": parts.get(f"part-{row['key']}", []),
            "dead_letters": dead.get(f"part-{row['key']}", []),
        }
        for row in manifest[WATCH]
    }


def _stem(file: str) -> str:
    return file.rpartition("/")[2].split("-of-")[0].rpartition("-")[0]


def newest(*sources: dict[str, Entry]) -> dict[str, Entry]:
    """Entries of several sources; of those of one input, that of the last revision."""
    found: dict[str, Entry] = {}
    for source in sources:
        for id_, entry in source.items():
            if id_ not in found or entry["revision"] > found[id_]["revision"]:
                found[id_] = entry
    return found


def with_entries(manifest: dict[str, Any], entries: dict[str, Entry]) -> dict[str, Any]:
    """The manifest of an encoded corpus with these entries, in the order of their inputs."""
    ordered = sorted(entries.values(), key=lambda entry: str(entry["inputs"][0]["name"]))
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
    manifest = json.loads(storage.read(join(directory, MANIFEST)))
    return with_entries(manifest, newest(entries_of(manifest), log))


def compact(directory: str) -> None:
    """Move the entries of the log into the manifest; one process at a time may do so."""
    with changing(directory):
        log = read_log(directory)
        manifest = json.loads(storage.read(join(directory, MANIFEST)))
        together = with_entries(manifest, newest(entries_of(manifest), log))
        if together != manifest:
            storage.write(join(directory, MANIFEST), json_bytes(together))
        for id_, entry in log.items():
            if read_entry(directory, id_) == entry:
                remove_entry(directory, id_)
