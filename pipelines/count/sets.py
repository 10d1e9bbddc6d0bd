"""Read sets of shards, each with a manifest, and add them up."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from bpe._native import add_counts
from bpe.counts import PretokenCounts, check_agreement, combine
from bpe.counts.files import read_part
from bpe.counts.manifest import summed
from bpe.errors import CountsError
from pipelines import storage
from pipelines.errors import InputError
from pipelines.storage import join

if TYPE_CHECKING:
    from collections.abc import Sequence

    from bpe._native import SortedCounts
    from bpe.counts.manifest import CountsManifest, CountsPart
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
            InputError: a file is missing.
            CountsError: a file is damaged or of another run.
        """
        parts = self.manifest.parts
        found = [
            read_part_file(join(self.directory, part.file), part, shard=shard, shards=len(parts))
            for shard, part in enumerate(parts)
        ]
        try:
            return PretokenCounts.of(add_counts(found), self.manifest)
        except (CountsError, ValueError) as error:
            raise CountsError(f"{self.path}: {error}") from error


def read_part_file(path: str, part: CountsPart, *, shard: int, shards: int) -> SortedCounts:
    """Read the counts in the file of a part; arguments and errors as for `read_part`.

    Raises:
        InputError: the file is missing.
    """
    data = storage.read_if_there(path)
    if data is None:
        raise InputError(f"{path} is missing, the manifest names it: count again")
    return read_part(data, part, shard=shard, shards=shards, where=path)


def added_up(sets: Sequence[CountsSet]) -> PretokenCounts:
    """Add up the counts of all sets.

    Documents are in the order of the sets; for groups, in the order of the corpus.
    """
    if sets[0].group_by is not None:
        return _regrouped(sets)
    return combine([(one.load(), 1) for one in sets], names=[one.path for one in sets])


def _regrouped(sets: Sequence[CountsSet]) -> PretokenCounts:
    """Add up the counts of groups; each document has its place in the corpus."""
    manifest = manifest_of_sets(sets)
    try:
        return PretokenCounts.of(add_counts([one.load().sorted_counts for one in sets]), manifest)
    except OverflowError as error:
        raise CountsError(f"{sets[0].path}: {error}") from error


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
