"""Manifests that name other manifests of counts.

- Counts by group: the manifest names the groups. Each group has a directory of its own.
- Counts that files were appended to: the manifest names the sets of shards.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from bpe._codec import to_jsonable
from bpe._inputs_file import INPUTS, take_out
from bpe.counts.manifest import CountedInput, CountsManifest, DeadLetters, Totals
from bpe.files import with_checksum
from pipelines.corpus.mix import MixSource
from pipelines.output.names import (
    APPENDED_KIND,
    GROUPED_KIND,
    MANIFEST,
    group_folder,
    json_bytes,
    manifest_bytes,
    of_generation,
)
from pipelines.totals import SetAside

VERSION = 1


@dataclass(frozen=True)
class CountedGroup:
    """A group, with the totals of its counts.

    Attributes:
        value: the value of the field.
        documents: number of documents.
        bytes: bytes of text.
        pretokens: number of pre-tokens.
        distinct_pretokens: number of distinct pre-tokens.
    """

    value: str
    documents: int
    bytes: int
    pretokens: int
    distinct_pretokens: int

    @classmethod
    def of(cls, value: str, manifest: CountsManifest) -> CountedGroup:
        """Return the group of this value, with totals from the manifest of its counts."""
        totals = manifest.totals
        return cls(
            value=value,
            documents=totals.documents,
            bytes=totals.bytes,
            pretokens=totals.pretokens,
            distinct_pretokens=sum(part.rows for part in manifest.parts),
        )


@dataclass(frozen=True, kw_only=True)
class GroupedManifest:
    """The contents of the ``manifest.json`` of counts by group.

    Attributes:
        group_by: the field; ``source`` if groups are the sources of a mix.
        groups: the groups, sorted by value.
        totals: the totals of all groups, with the bad records, which are in no group.
        inputs: the files that were counted.
        dead_letters: files of bad records.
        parts: empty: the manifest of each group names the parts of the group.
        sources: the sources of a mix with their files; empty if groups are values of a field.
    """

    group_by: str
    groups: tuple[CountedGroup, ...]
    totals: Totals
    inputs: tuple[CountedInput, ...]
    dead_letters: tuple[DeadLetters, ...] = ()
    parts: tuple[str, ...] = field(default=())
    sources: tuple[MixSource, ...] = ()

    @property
    def field(self) -> str | None:
        """Return the field that names the group of a record; None if no field does."""
        return None if self.sources else self.group_by

    def folder(self, group: CountedGroup) -> str:
        """Return the folder of a group's counts, below the directory."""
        return group_folder(self.group_by, group.value)

    def files(self) -> dict[str, bytes]:
        """Return the files to write, by name, the manifest last."""
        value = {"kind": GROUPED_KIND, "version": VERSION, **to_jsonable(self)}
        value, inputs = take_out(with_checksum(value))
        return {**inputs, MANIFEST: json_bytes(value)}


@dataclass(frozen=True, kw_only=True)
class AppendedSet:
    """A set of shards.

    Attributes:
        generation: the generation in the names of the set's files.
        jobs: the number of jobs that appended the counts of the set; 0 for the first job.
        set_aside: files that could not be read.
    """

    generation: int
    jobs: int
    set_aside: tuple[SetAside, ...] = ()

    @property
    def manifest(self) -> str:
        """Return the file of the set's manifest, below the directory."""
        return f"manifest-g{self.generation:04d}.json"

    @property
    def inputs(self) -> str:
        """Return the file of the set's inputs, if there are too many for the manifest."""
        return of_generation(INPUTS, self.generation)


@dataclass(frozen=True, kw_only=True)
class AppendedManifest:
    """The manifest: the sets, and the generations of sets that this generation supersedes."""

    generation: int
    sets: tuple[AppendedSet, ...]
    superseded: tuple[int, ...] = ()

    def to_bytes(self) -> bytes:
        """Return the bytes of the manifest file."""
        return manifest_bytes({"kind": APPENDED_KIND, "version": VERSION, **to_jsonable(self)})
