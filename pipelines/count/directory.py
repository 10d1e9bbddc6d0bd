"""Read counts, and their manifests, from a directory of any filesystem.

A directory that files were appended to, or of counts by group, holds more than one set of shards.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

from bpe._inputs_file import INPUTS
from bpe.counts import PretokenCounts, check_agreement
from bpe.counts.files import read_part
from bpe.counts.manifest import CountsManifest, summed
from bpe.errors import CountsError
from pipelines import storage
from pipelines.count.manifest import (
    VERSION,
    AppendedManifest,
    AppendedSet,
    CountedGroup,
    GroupedManifest,
)
from pipelines.errors import InputError
from pipelines.output.names import (
    APPENDED_KIND,
    GROUPED_KIND,
    MANIFEST,
    manifest_from,
)
from pipelines.output.state import complete
from pipelines.storage import join

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from bpe._native import SortedCounts
    from bpe.counts.manifest import CountsPart
    from pipelines.totals import SetAside


@dataclass(frozen=True, kw_only=True)
class StoredCounts:
    """The counts in a directory: one set of shards, or one for each job or group.

    Attributes:
        directory: the directory.
        sets: the manifest of each set, by the path of the manifest; its files are next to it.
        appended: the manifest above the sets of several jobs; else None.
        grouped: the manifest above counts by group; else None.
    """

    directory: str
    sets: Mapping[str, CountsManifest]
    appended: AppendedManifest | None = None
    grouped: GroupedManifest | None = None

    @property
    def manifest(self) -> CountsManifest:
        """Return one manifest for all sets; only groups of one corpus have an order in common."""
        sets = [*self.sets.values()]
        manifest = sets[0]
        if len(sets) > 1:
            parts = tuple(part for one in sets for part in one.parts)
            letters = tuple(file for one in sets for file in one.dead_letters)
            manifest = replace(manifest, parts=parts, dead_letters=letters, **summed(sets))
        if (grouped := self.grouped) is None:
            return manifest
        return replace(
            manifest,
            totals=grouped.totals,
            inputs=grouped.inputs,
            dead_letters=grouped.dead_letters,
        )

    @property
    def set_aside(self) -> list[SetAside]:
        """Return the files that could not be read when they were appended."""
        return [
            file for one in (self.appended.sets if self.appended else ()) for file in one.set_aside
        ]

    @property
    def files(self) -> list[tuple[str, CountsPart]]:
        """Return the path of each part, one set after the other, with its entry of a manifest."""
        folders = ((path.rpartition("/")[0], one) for path, one in self.sets.items())
        return [(join(folder, part.file), part) for folder, one in folders for part in one.parts]

    @property
    def shards(self) -> list[list[tuple[str, CountsPart]]]:
        """Return the `files` of each shard, one of each set."""
        files, shards = self.files, len(next(iter(self.sets.values())).parts)
        return [files[shard::shards] for shard in range(shards)]

    def load(self) -> PretokenCounts:
        """Read and check the counts of all sets.

        Raises:
            CountsError: a file is missing, damaged or of another run.
        """
        shards = self.shards
        counts = [
            one
            for shard, files in enumerate(shards)
            for one in read_shard(files, shard, len(shards))
        ]
        return PretokenCounts.of(counts, self.manifest, where=join(self.directory, MANIFEST))


def read_shard(
    files: Iterable[tuple[str, CountsPart]], shard: int, shards: int
) -> list[SortedCounts]:
    """Return the counts in each of the files that `StoredCounts.shards` gives for a shard.

    Raises:
        CountsError: a file is missing, damaged or of another run.
    """
    return [
        read_part(storage.read_if_there(path), part, shard=shard, shards=shards, where=path)
        for path, part in files
    ]


def read_counts(directory: str) -> StoredCounts:
    """Read the manifests of a counts directory on any filesystem, and check that they agree.

    Raises:
        InputError: there are no complete counts, or nothing was counted yet.
        CountsError: a manifest is damaged, or two manifests do not agree.
    """
    value, root = complete(directory, "counts").manifest, storage.located(directory)
    path = join(root, MANIFEST)
    known: dict[str, Any] = {"version": VERSION, "again": "count again"}
    appended, grouped = None, None
    if value["kind"] == GROUPED_KIND:
        inputs = partial(storage.read, join(root, INPUTS))
        grouped = manifest_from(GroupedManifest, value, path, inputs=inputs, **known)
        sets = _of_groups(root, grouped)
    elif value["kind"] == APPENDED_KIND:
        appended = manifest_from(AppendedManifest, value, path, **known)
        sets = dict(_set_of(root, one) for one in appended.sets)
    else:
        sets = {path: _read_set(path)}
    (path, first), *others = sets.items()
    for other_path, other in others:
        check_agreement(first, other, titles=(path, other_path))
    return StoredCounts(directory=root, sets=sets, appended=appended, grouped=grouped)


def _of_groups(root: str, grouped: GroupedManifest) -> dict[str, CountsManifest]:
    sets = {}
    for group in grouped.groups:
        folder = join(root, grouped.folder(group))
        path = join(folder, MANIFEST)
        manifest = _read_set(path) if storage.exists(path) else None
        if manifest is None or group != CountedGroup.of(group.value, manifest):
            raise CountsError(
                f"{folder}: these are not the counts that {join(root, MANIFEST)} names: count again"
            )
        sets[path] = manifest
    if not sets:
        raise InputError(f"{root}: no group was counted: the corpus has no documents")
    return sets


def load_counts(directory: str) -> PretokenCounts:
    """Read and check counts; errors are those of `read_counts` and `StoredCounts.load`."""
    return read_counts(directory).load()


def group_directories(directory: str) -> dict[str, str]:
    """Return the directory of each group in counts by group, by value; empty for other counts.

    Errors are those of `read_counts`.
    """
    grouped = read_counts(directory).grouped
    if grouped is None:
        return {}
    return {one.value: join(directory, grouped.folder(one)) for one in grouped.groups}


def _set_of(directory: str, one: AppendedSet) -> tuple[str, CountsManifest]:
    """Read the manifest of a set; return its path, too."""
    path = join(directory, one.manifest)
    if not one.generation and not storage.exists(path):
        path = join(directory, MANIFEST)  # of the first job, which nothing was appended to yet
    return path, _read_set(path, one.inputs)


def _read_set(path: str, inputs: str = INPUTS) -> CountsManifest:
    """Read the manifest of one set; ``inputs`` is the file next to it with very many inputs."""
    read = partial(storage.read, join(path.rpartition("/")[0], inputs))
    return CountsManifest.from_json(storage.read(path), where=path, inputs=read)
