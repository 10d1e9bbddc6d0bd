"""Read sets of shards, each with a manifest, and add them up."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from bpe.counts import PretokenCounts, check_agreement, combine
from bpe.counts.files import read_parts
from bpe.counts.manifest import summed
from pipelines import storage

if TYPE_CHECKING:
    from collections.abc import Sequence

    from bpe.counts.manifest import CountsManifest
    from pipelines.corpus.mix import MixSource
    from pipelines.totals import SetAside


@dataclass(frozen=True)
class CountsSet:
    """Shards with a manifest: a counts directory, one set of several in it, or one group.

    Attributes:
        directory: the directory of the counts.
        manifest: the manifest.
        path: the path of the manifest.
        appended: whether the set is in a directory that files were appended to.
        set_aside: files that could not be read when the set was appended.
        group_by: the field of counts by group; None for other counts. The first set also has the
            inputs and the bad records, which are of no group.
        sources: the sources of a mix, if these are the groups; else empty.
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
        """Return the field that names the group of a record; None if no field does."""
        return None if self.sources else self.group_by

    @property
    def names(self) -> set[str]:
        """Return the names of the files of the set, with the files set aside."""
        return {one.name for one in self.manifest.inputs} | {one.name for one in self.set_aside}

    def load(self) -> PretokenCounts:
        """Read and check the counts.

        Raises:
            CountsError: a file is missing, damaged or of another run.
        """
        parts = read_parts(self.manifest, storage.read_if_there, directory=self.directory)
        return PretokenCounts.of(parts, self.manifest, where=self.path)


def added_up(sets: Sequence[CountsSet]) -> PretokenCounts:
    """Add up the counts of all sets.

    Documents are in the order of the sets; for groups, in the order of the corpus.
    """
    if sets[0].group_by is not None:
        groups = [one.load().sorted_counts for one in sets]
        return PretokenCounts.of(groups, manifest_of_sets(sets), where=sets[0].path)
    return combine([(one.load(), 1) for one in sets], names=[one.path for one in sets])


def manifest_of_sets(sets: Sequence[CountsSet]) -> CountsManifest:
    """Return one manifest for all sets."""
    first, *others = sets
    if not others:
        return first.manifest
    for other in others:
        check_agreement(first.manifest, other.manifest, titles=(first.path, other.path))
    manifests = [one.manifest for one in sets]
    # The order is that of the first; several sets have one only as groups of one corpus.
    parts = tuple(part for one in manifests for part in one.parts)
    return replace(first.manifest, parts=parts, **summed(manifests))
