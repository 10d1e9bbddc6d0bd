"""Read counts, and their manifests, from a directory of any filesystem.

A directory that files were appended to, or of counts by group, holds more than one set of shards.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from bpe._inputs_file import INPUTS
from bpe.counts.manifest import CountsManifest, Totals
from bpe.errors import CountsError
from pipelines import storage
from pipelines.count.manifest import (
    VERSION,
    AppendedManifest,
    AppendedSet,
    CountedGroup,
    GroupedManifest,
)
from pipelines.count.sets import CountsSet, added_up, manifest_of_sets
from pipelines.errors import InputError
from pipelines.output.names import (
    APPENDED_KIND,
    GROUPED_KIND,
    MANIFEST,
    json_object,
    manifest_from,
    read_manifest_object,
)
from pipelines.output.state import complete
from pipelines.storage import join

if TYPE_CHECKING:
    from bpe.counts import PretokenCounts


def read_counts_manifest(directory: str) -> CountsManifest:
    """Read the manifest of a counts directory on any filesystem; one manifest for all sets.

    Raises:
        InputError: there is no manifest, or nothing was counted yet.
        CountsError: a manifest is damaged.
    """
    return manifest_of_sets(read_counts_sets(directory))


def read_counts_sets(directory: str) -> list[CountsSet]:
    """Read the sets of a counts directory on any filesystem, in the order of the manifest.

    Raises:
        InputError: there are no sets, or nothing was counted yet.
        CountsError: a manifest is damaged.
    """
    root = storage.located(directory)
    manifest = read_manifest(root, directory)
    if isinstance(manifest, GroupedManifest):
        return _group_sets(root, manifest)
    if isinstance(manifest, AppendedManifest):
        return [set_of(root, one) for one in manifest.sets]
    return [CountsSet(root, manifest, join(root, MANIFEST))]


def group_directories(directory: str) -> dict[str, str]:
    """Return the directory of each group in counts by group, by value; empty for other counts.

    Raises:
        InputError: there are no counts.
        CountsError: the manifest is damaged.
    """
    root = storage.located(directory)
    manifest = read_manifest(root, directory)
    if not isinstance(manifest, GroupedManifest):
        return {}
    return {one.value: join(directory, manifest.folder(one)) for one in manifest.groups}


def _group_sets(root: str, grouped: GroupedManifest) -> list[CountsSet]:
    sets = []
    for group in grouped.groups:
        folder = join(root, grouped.folder(group))
        manifest = read_manifest(folder, folder)
        if not isinstance(manifest, CountsManifest) or group != CountedGroup.of(
            group.value, manifest
        ):
            raise CountsError(
                f"{folder}: these are not the counts that {join(root, MANIFEST)} names: count again"
            )
        path = join(folder, MANIFEST)
        sets.append(
            CountsSet(folder, manifest, path, group_by=grouped.group_by, sources=grouped.sources)
        )
    if not sets:
        raise InputError(f"{root}: no group was counted: the corpus has no documents")
    first, alone = sets[0].manifest, Totals(failures=grouped.totals.failures)
    first = replace(
        first,
        totals=first.totals + alone,
        inputs=grouped.inputs,
        dead_letters=grouped.dead_letters,
    )
    return [replace(sets[0], manifest=first), *sets[1:]]


def load_counts(directory: str) -> PretokenCounts:
    """Read and check a counts directory on any filesystem.

    Raises:
        InputError: a file is missing, or nothing was counted yet.
        CountsError: a file is damaged or of another run.
    """
    return added_up(read_counts_sets(directory))


def read_manifest(root: str, directory: str) -> CountsManifest | GroupedManifest | AppendedManifest:
    """Read the manifest of counts.

    Args:
        root: the directory.
        directory: the name of the directory in errors.

    Raises:
        InputError: there is no manifest, or a manifest of groups or of sets is damaged.
        CountsError: the manifest of one set is damaged.
    """
    path = join(root, MANIFEST)
    data = storage.read_if_there(path)
    if data is None:
        complete(directory, "counts")
        raise InputError(f"{path} was removed while it was read: try again")
    kind = (json_object(data) or {}).get("kind")

    def inputs() -> bytes:
        return storage.read(join(root, INPUTS))

    if kind not in (APPENDED_KIND, GROUPED_KIND):
        return CountsManifest.from_json(data, where=path, inputs=inputs)
    value = read_manifest_object(path)
    known: dict[str, Any] = {"kind": kind, "version": VERSION, "again": "count again"}
    if kind == APPENDED_KIND:
        return manifest_from(AppendedManifest, value, path, **known)
    return manifest_from(GroupedManifest, value, path, inputs=inputs, **known)


def set_of(directory: str, one: AppendedSet) -> CountsSet:
    """Read the manifest of a set and return the set.

    Raises:
        InputError: the manifest is missing.
        CountsError: the manifest is damaged.
    """
    path = join(directory, one.manifest)
    if not one.generation and not storage.exists(path):
        path = join(directory, MANIFEST)  # of the first job, which nothing was appended to yet
    manifest = CountsManifest.from_json(
        storage.read(path), where=path, inputs=lambda: storage.read(join(directory, one.inputs))
    )
    return CountsSet(directory, manifest, path, appended=True, set_aside=one.set_aside)
