"""Which directories are watched into, and how to empty them."""

from __future__ import annotations

import contextlib
from pathlib import Path

from pipelines import storage
from pipelines.output.names import DATA, DEAD_LETTERS, MANIFEST, PLAN, PROGRAM, read_json_object
from pipelines.storage import join
from pipelines.watch import log
from pipelines.watch.log import DRIFT

WATCH_KEY = "watch"  # of the settings of a plan: the patterns
FOLDERS = (log.LOG, log.SETS, DRIFT, DATA, DEAD_LETTERS)


def is_watched(directory: str) -> bool:
    """Whether a job that watches made this directory."""
    plan = read_json_object(join(directory, PLAN)) or {}
    settings = plan.get("settings")
    return plan.get("program") == PROGRAM and isinstance(settings, dict) and WATCH_KEY in settings


def remove_watched(directory: str) -> None:
    """Remove the log of such a directory, its parts, shard sets and series of drift."""
    storage.remove(join(directory, MANIFEST))
    for id_ in log.entry_names(directory):
        log.remove_entry(directory, id_)
    for key in log.set_names(directory):
        log.remove_shards(directory, key)
    for entry in storage.entries(join(directory, DRIFT)):
        if entry.kind == "file" and log.is_series(entry.name):
            storage.remove(join(directory, DRIFT, entry.name))
    for file in log.files_in(directory):
        storage.remove(join(directory, file))
    if storage.is_local(directory):
        for name in (log.LOG, log.SETS, DRIFT):
            with contextlib.suppress(OSError):  # not there, or it holds something that is not ours
                Path(directory, name).rmdir()
