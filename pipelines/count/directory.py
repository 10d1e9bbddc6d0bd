"""Counts in a directory of any filesystem: what was counted, and the counts themselves.

A directory into which files are counted as they arrive holds many sets of shards, of which its log
tells; here they are one.
"""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING, TypeVar

from bpe._native import merge_runs
from bpe.counts import PretokenCounts, check_agreement, combine
from bpe.counts.files import read_part
from bpe.counts.manifest import CountsManifest, Totals
from bpe.errors import CountsError
from pipelines import storage
from pipelines.errors import InputError
from pipelines.output.names import MANIFEST
from pipelines.output.state import complete
from pipelines.storage import join
from pipelines.watch import log
from pipelines.watch.reading import read_steadily

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from pipelines.watch.log import Entry

_Read = TypeVar("_Read")


def read_counts_manifest(directory: str) -> CountsManifest:
    """The manifest of a counts directory on any filesystem.

    Raises:
        InputError: there is none.
        CountsError: it is damaged.
    """
    root = storage.located(directory)
    manifest = _read_manifest(root, directory)
    return of_sets(root, _manifest_of_sets) if manifest is None else manifest


def load_counts(directory: str) -> PretokenCounts:
    """Read and check a counts directory on any filesystem.

    Raises:
        InputError: a file is missing.
        CountsError: a file is damaged or of another run.
    """
    root = storage.located(directory)
    manifest = _read_manifest(root, directory)
    if manifest is None:
        return of_sets(root, counts_of_sets)
    runs = []
    for shard, part in enumerate(manifest.parts):
        path = join(root, part.file)
        data = storage.read_if_there(path)
        if data is None:
            raise InputError(f"{path} is missing, the manifest names it: count again")
        runs.append(read_part(data, part, shard=shard, shards=len(manifest.parts), where=path))
    try:
        return PretokenCounts(
            run=merge_runs(runs),
            pretokenizer=manifest.pretokenizer,
            special_tokens=manifest.special_tokens,
            totals=manifest.totals,
            order_span=manifest.order_span,
            inputs=manifest.inputs,
            prune=manifest.prune,
            scale=manifest.scale,
        )
    except (CountsError, ValueError) as error:
        raise CountsError(f"{directory}: {error}") from error


def load_watched_counts(directory: str) -> tuple[CountsManifest, PretokenCounts]:
    """The manifest and the counts, of the same files, where files are counted as they arrive.

    The rows of the manifest's parts are more than those of the counts: each set has its own.

    Raises:
        InputError: nothing was counted yet, or a file is missing.
        CountsError: a file is damaged or of another run.
    """

    def read(root: str, entries: Sequence[Entry]) -> tuple[CountsManifest, PretokenCounts]:
        return _manifest_of_sets(root, entries), counts_of_sets(root, entries)

    return of_sets(storage.located(directory), read)


def _read_manifest(root: str, directory: str) -> CountsManifest | None:
    """The manifest of counts; None where it is that of a directory that is watched.

    Args:
        root: the directory.
        directory: what errors call it.
    """
    path = join(root, MANIFEST)
    data = storage.read_if_there(path)
    if data is None:
        complete(directory, "counts")
        raise InputError(f"{path} was removed while it was read: try again")
    return None if _is_watched(data) else CountsManifest.from_json(data, where=path)


def _is_watched(manifest: bytes) -> bool:
    try:
        value = json.loads(manifest)
    except (ValueError, RecursionError):
        return False
    return isinstance(value, dict) and value.get("kind") == log.COUNTS_KIND


def of_sets(root: str, read: Callable[[str, Sequence[Entry]], _Read]) -> _Read:
    """What is read from all shard sets that the log names, given in the order of their inputs.

    Sets may be brought together while they are read; then they are read again.

    Args:
        root: a directory that is watched.
        read: is given the directory, and the entries whose sets are to be read.
    """

    def entries() -> list[Entry]:
        found = [entry for entry in log.read_log(root).values() if entry["set"] is not None]
        if not found:
            raise InputError(f"{root}: nothing was counted yet: no file has arrived")
        return sorted(found, key=lambda entry: str(entry["inputs"][0]["name"]))

    return read_steadily(
        entries, lambda found: [entry["set"] for entry in found], lambda found: read(root, found)
    )


def _manifest_of_sets(root: str, entries: Sequence[Entry]) -> CountsManifest:
    """The manifest that sets have together; it says what `counts_of_sets` does."""
    paths = _paths(root, entries)
    first, *others = manifests = [read_counts_manifest(path) for path in paths]
    for path, other in zip(paths[1:], others, strict=True):
        check_agreement(first, other, titles=(paths[0], path))
    spans = [one.order_span for one in manifests if one.order_span is not None]
    return replace(
        first,
        order_span=sum(spans) if spans else None,
        totals=sum((one.totals for one in manifests), Totals()),
        inputs=tuple(sorted(file for one in manifests for file in one.inputs)),
        parts=tuple(
            replace(part, file=f"{log.SETS}/{name}/{part.file}")
            for name, one in zip((entry["set"] for entry in entries), manifests, strict=True)
            for part in one.parts
        ),
    )


def counts_of_sets(root: str, entries: Sequence[Entry]) -> PretokenCounts:
    """The counts of the sets of these entries, added up."""
    paths = _paths(root, entries)
    return combine([(load_counts(path), 1) for path in paths], names=paths)


def _paths(root: str, entries: Sequence[Entry]) -> list[str]:
    return [join(root, log.SETS, entry["set"]) for entry in entries]
