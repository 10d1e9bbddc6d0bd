"""Counts in a directory of any filesystem: what was counted, and the counts themselves.

A directory that files were appended to holds several sets of shards; here they are one.
"""

from __future__ import annotations

import functools
import operator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from bpe._inputs_file import INPUTS
from bpe._native import merge_runs
from bpe.counts import PretokenCounts, check_agreement, combine
from bpe.counts.manifest import CountsManifest, Totals
from bpe.errors import CountsError
from pipelines import storage
from pipelines.count.appended import AppendedManifest, appended_of, manifest_in
from pipelines.count.load import load_set
from pipelines.count.manifest import CountedGroup, GroupedManifest, is_grouped
from pipelines.errors import InputError
from pipelines.output.names import MANIFEST
from pipelines.output.state import complete
from pipelines.storage import join

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pipelines.corpus.mix import MixSource
    from pipelines.count.appended import AppendedSet
    from pipelines.totals import SetAside


@dataclass(frozen=True)
class CountsSet:
    """Shards with a manifest: all of a counts directory, or what one job has appended to it.

    Attributes:
        directory: of the counts.
        manifest: what it says.
        path: of the manifest.
        appended: whether it is one of several.
        set_aside: files that could not be read when it was appended.
        group_by: of counts by group, the field; else None. The first set also has what is of no
            group: the inputs, and the bad records.
        sources: of a mix, where the groups are these, which no field of a record names.
    """

    directory: str
    manifest: CountsManifest
    path: str
    appended: bool = False
    set_aside: tuple[SetAside, ...] = ()
    group_by: str | None = None
    sources: tuple[MixSource, ...] = ()

    @property
    def group_field(self) -> str | None:
        """The field that names the group of a record; None where no field does."""
        return None if self.sources else self.group_by

    def load(self) -> PretokenCounts:
        """Read and check the counts.

        Raises:
            InputError: a file is missing.
            CountsError: a file is damaged or of another run.
        """
        return load_set(self.directory, self.manifest, where=self.path)


def read_counts_manifest(directory: str) -> CountsManifest:
    """The manifest of a counts directory on any filesystem; of a watch, that of all sets.

    Raises:
        InputError: there is none.
        CountsError: it is damaged.
    """
    return _manifest_of(read_counts_sets(directory))


def read_counts_sets(directory: str) -> list[CountsSet]:
    """The sets of a counts directory on any filesystem, in the order of their inputs.

    Raises:
        InputError: there are none, or nothing was counted yet.
        CountsError: a manifest is damaged.
    """
    root = storage.located(directory)
    manifest = _read_manifest(root, directory)
    if isinstance(manifest, GroupedManifest):
        return _group_sets(root, manifest)
    if isinstance(manifest, AppendedManifest):
        return [set_of(root, one) for one in manifest.sets]
    return [CountsSet(root, manifest, join(root, MANIFEST))]


def group_directories(directory: str) -> dict[str, str]:
    """The directories of the groups in counts by group, by value; empty for other counts.

    Raises:
        InputError: there are no counts.
        CountsError: they are damaged.
    """
    root = storage.located(directory)
    manifest = _read_manifest(root, directory)
    if not isinstance(manifest, GroupedManifest):
        return {}
    return {one.value: join(directory, manifest.folder(one)) for one in manifest.groups}


def _group_sets(root: str, grouped: GroupedManifest) -> list[CountsSet]:
    sets = []
    for group in grouped.groups:
        folder = join(root, grouped.folder(group))
        manifest = _read_manifest(folder, folder)
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


def set_of(root: str, one: AppendedSet) -> CountsSet:
    """A set of counts that were appended to; errors of `manifest_in`."""
    manifest, path = manifest_in(root, one), join(root, one.manifest)
    return CountsSet(root, manifest, path, appended=True, set_aside=one.set_aside)


def load_counts(directory: str) -> PretokenCounts:
    """Read and check a counts directory on any filesystem.

    Raises:
        InputError: a file is missing, or nothing was counted yet.
        CountsError: a file is damaged or of another run.
    """
    return added_up(read_counts_sets(directory))


def load_several_counts(directory: str) -> tuple[CountsManifest, PretokenCounts]:
    """The manifest and the counts, of the same files, where there are several sets.

    The rows of the manifest's parts are more than those of the counts: each set has its own.

    Raises:
        InputError: a file is missing.
        CountsError: a file is damaged or of another run.
    """
    sets = read_counts_sets(directory)
    return _manifest_of(sets), added_up(sets)


def added_up(sets: Sequence[CountsSet]) -> PretokenCounts:
    """The counts of all sets; documents in the order given (of groups: in that of the corpus)."""
    if sets[0].group_by is not None:
        return _regrouped(sets)
    return combine([(one.load(), 1) for one in sets], names=[one.path for one in sets])


def _regrouped(sets: Sequence[CountsSet]) -> PretokenCounts:
    """The counts of the corpus that groups are of, where each document has its place."""
    manifest = _manifest_of(sets)
    try:
        return PretokenCounts.of(merge_runs([one.load().run for one in sets]), manifest)
    except OverflowError as error:
        raise CountsError(f"{sets[0].path}: {error}") from error


def _manifest_of(sets: Sequence[CountsSet]) -> CountsManifest:
    """The manifest that sets have together."""
    first, *others = sets
    if not others:
        return first.manifest
    for other in others:
        check_agreement(first.manifest, other.manifest, titles=(first.path, other.path))
    manifests = [one.manifest for one in sets]
    spans = [one.order_span for one in manifests if one.order_span is not None]
    if first.group_by is not None:
        spans = spans[:1]  # all groups are of one corpus
    prunes = [one.prune for one in manifests if one.prune is not None]
    cuts = [one.cut for one in manifests if one.cut is not None]
    return replace(
        first.manifest,
        cut=functools.reduce(operator.add, cuts) if cuts else None,
        prune=functools.reduce(operator.add, prunes) if prunes else None,
        order_span=sum(spans) if spans else None,
        totals=sum((one.totals for one in manifests), Totals()),
        inputs=tuple(sorted(file for one in manifests for file in one.inputs)),
        parts=tuple(part for one in manifests for part in one.parts),
    )


def _read_manifest(
    root: str, directory: str
) -> CountsManifest | GroupedManifest | AppendedManifest:
    """The manifest of counts.

    Args:
        root: the directory.
        directory: what errors call it.
    """
    path = join(root, MANIFEST)
    data = storage.read_if_there(path)
    if data is None:
        complete(directory, "counts")
        raise InputError(f"{path} was removed while it was read: try again")
    if (appended := appended_of(data, path)) is not None:
        return appended
    if (grouped := is_grouped(data)) is not None:
        return GroupedManifest.read(
            grouped, where=path, inputs=lambda: storage.read(join(root, INPUTS))
        )
    return CountsManifest.from_json(
        data, where=path, inputs=lambda: storage.read(join(root, INPUTS))
    )
