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
from pipelines.errors import InputError
from pipelines.files import storage
from pipelines.files.storage import join
from pipelines.output.names import MANIFEST
from pipelines.watch import log

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

_TRIES = 20  # of reading counts that change
_Read = TypeVar("_Read")


def read_counts_manifest(directory: str) -> CountsManifest:
    """The manifest of a counts directory on any filesystem.

    Raises:
        InputError: there is none.
        CountsError: it is damaged.
    """
    root = storage.located(directory)
    manifest = _read_manifest(root, directory)
    return _of_sets(root, _manifest_of_sets) if manifest is None else manifest


def load_counts(directory: str) -> PretokenCounts:
    """Read and check a counts directory on any filesystem.

    Raises:
        InputError: a file is missing.
        CountsError: a file is damaged or of another run.
    """
    root = storage.located(directory)
    manifest = _read_manifest(root, directory)
    if manifest is None:
        return _of_sets(root, _counts_of_sets)
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

    def read(root: str, sets: Sequence[str]) -> tuple[CountsManifest, PretokenCounts]:
        return _manifest_of_sets(root, sets), _counts_of_sets(root, sets)

    return _of_sets(storage.located(directory), read)


def _read_manifest(root: str, directory: str) -> CountsManifest | None:
    """The manifest of counts; None where it is that of a directory that is watched.

    Args:
        root: the directory.
        directory: what errors call it.
    """
    path = join(root, MANIFEST)
    data = storage.read_if_there(path)
    if data is None:
        raise InputError(
            f"{directory} holds no counts: it has no {MANIFEST}: name a directory made by "
            "bpe count (one that was interrupted can be finished with `resume`)"
        )
    return None if _is_watched(data) else CountsManifest.from_json(data, where=path)


def _is_watched(manifest: bytes) -> bool:
    try:
        value = json.loads(manifest)
    except (ValueError, RecursionError):
        return False
    return isinstance(value, dict) and value.get("kind") == log.COUNTS_KIND


def _of_sets(root: str, read: Callable[[str, Sequence[str]], _Read]) -> _Read:
    """What is read from all shard sets that the log names, given in the order of their inputs.

    Sets may be brought together while they are read; then they are read again.
    """
    for last in (*[False] * (_TRIES - 1), True):
        entries = [entry for entry in log.read_log(root).values() if entry["set"] is not None]
        entries.sort(key=lambda entry: str(entry["inputs"][0]["name"]))
        if not entries:
            raise InputError(f"{root}: nothing was counted yet: no file has arrived")
        try:
            return read(root, [entry["set"] for entry in entries])
        except (InputError, CountsError):
            if last:
                raise
    raise AssertionError("the last try returns or raises")


def _manifest_of_sets(root: str, sets: Sequence[str]) -> CountsManifest:
    """The manifest that sets have together; it says what `_counts_of_sets` does."""
    paths = [join(root, log.SETS, one) for one in sets]
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
            for name, one in zip(sets, manifests, strict=True)
            for part in one.parts
        ),
    )


def _counts_of_sets(root: str, sets: Sequence[str]) -> PretokenCounts:
    paths = [join(root, log.SETS, one) for one in sets]
    return combine([(load_counts(path), 1) for path in paths], names=paths)
