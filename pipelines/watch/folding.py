"""Merging entries, and removing what does not hold any more.

One process at a time may do so, the one that started the job; others read, and write entries,
meanwhile.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from pipelines import storage
from pipelines.encode.manifest import folded
from pipelines.output.entries import (
    Entry,
    key_of,
    keyed_files,
    read_folded,
    read_log,
    remove_entry,
    standing,
    write_entry,
    write_folded,
)
from pipelines.storage import join

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pipelines.output.entries import Taken
    from pipelines.watch.work import Handler

_LOGGER = logging.getLogger(__name__)


def fold(handler: Handler, log: dict[str, Entry] | None = None) -> Entry:
    """Merge entries, and remove those that do not hold any more, with their files.

    Args:
        handler: says how.
        log: the entries to merge; None for all. What came later stays in the log.

    Returns:
        What ``manifest.json`` is now.
    """
    directory = handler.directory
    pending = read_log(directory) if log is None else log
    before = read_folded(directory)
    now = handler.merge(before, pending)
    log = read_log(directory, pending)
    holds = standing(now.taken, log)
    keep = _files([now, *holds.entries.values()])
    _remove(directory, before.files - keep)
    for id_ in log.keys() - holds.entries.keys():
        entry = log[id_]
        _remove(directory, entry.files - keep)
        if id_ not in holds.notes:
            remove_entry(directory, id_)
        elif entry.files and id_ in pending:  # nothing but the note is left
            bare = {**entry.manifest, "parts": [], "dead_letters": []}
            pending[id_] = Entry(bare, entry.taken)
            write_entry(directory, pending[id_])
    return now


def clean(handler: Handler) -> None:
    """Remove files that no entry names, and entries whose files are not there.

    A killed job leaves the first. A job elsewhere that has lost its command may write an entry just
    when its files are taken away: the input is taken again.
    """
    directory = handler.directory
    found = keyed_files(directory)
    now = fold(handler)
    _remove(directory, found - _files([now, *read_log(directory).values()]))
    found = keyed_files(directory)
    for id_, entry in standing(now.taken, read_log(directory)).entries.items():
        if len(entry.taken) == 1 and not found >= entry.files:
            _lost(entry.taken)
            remove_entry(directory, id_)
            _remove(directory, entry.files)
    keys = {key_of(file) for file in now.files - found}
    if keys:
        _lost(one for one in now.taken if one.key in keys)
        left = Entry(now.manifest, tuple(one for one in now.taken if one.key not in keys))
        left = folded(directory, left, {})
        write_folded(directory, left)
        _remove(directory, now.files - left.files)


def _lost(taken: Iterable[Taken]) -> None:
    for one in taken:
        _LOGGER.warning("%s: its output is missing: it is processed again", one.name)


def _files(entries: Iterable[Entry]) -> set[str]:
    return {file for entry in entries for file in entry.files}


def _remove(directory: str, files: Iterable[str]) -> None:
    for file in files:
        storage.remove(join(directory, file))
