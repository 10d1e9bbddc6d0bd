"""Manifests above those of several counts.

- Of counts by group: which groups there are. Each has a directory of its own.
- Of counts that files were appended to: a set of shards for each job.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, field

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
    """A group: its value, and what was counted of it.

    Attributes:
        value: of the field.
        documents: texts.
        bytes: of the texts.
        pretokens: occurrences.
        distinct_pretokens: different ones.
    """

    value: str
    documents: int
    bytes: int
    pretokens: int
    distinct_pretokens: int

    @classmethod
    def of(cls, value: str, manifest: CountsManifest) -> CountedGroup:
        """The group whose counts have this manifest."""
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
    """Everything the ``manifest.json`` above the directories of groups says.

    Attributes:
        group_by: the field; ``source`` where groups are the sources of a mix.
        groups: sorted by value.
        totals: of all groups, and the bad records, which are in none.
        inputs: the files that were counted.
        dead_letters: files of bad records.
        parts: none: those of each group are in its own manifest.
        sources: of a mix, the files of each; none where groups are values of a field.
    """

    group_by: str
    groups: tuple[CountedGroup, ...]
    totals: Totals
    inputs: tuple[CountedInput, ...]
    dead_letters: tuple[DeadLetters, ...] = ()
    parts: tuple[str, ...] = field(default=())
    sources: tuple[MixSource, ...] = ()

    def folder(self, group: CountedGroup) -> str:
        """The folder of a group's counts, below the directory."""
        return group_folder(self.group_by, group.value)

    def files(self) -> dict[str, bytes]:
        """Return the files to write, by name, the manifest last."""
        value = {"kind": GROUPED_KIND, "version": VERSION, **to_jsonable(self)}
        value["totals"] = asdict(self.totals)
        value, inputs = take_out(with_checksum(value))
        before = {} if inputs is None else {INPUTS: inputs}
        return {**before, MANIFEST: json_bytes(value)}


@dataclass(frozen=True, kw_only=True)
class AppendedSet:
    """A set of shards.

    Attributes:
        generation: in the names of its files.
        jobs: how many appended what it holds; 0 of the first job.
        set_aside: files that could not be read.
    """

    generation: int
    jobs: int
    set_aside: tuple[SetAside, ...] = ()

    @property
    def manifest(self) -> str:
        """The file of its manifest, below the directory."""
        return f"manifest-g{self.generation:04d}.json"

    @property
    def inputs(self) -> str:
        """The file of its inputs, where they are very many."""
        return of_generation(INPUTS, self.generation)


@dataclass(frozen=True, kw_only=True)
class AppendedManifest:
    """The manifest: the sets, and those that this generation has superseded."""

    generation: int
    sets: tuple[AppendedSet, ...]
    superseded: tuple[int, ...] = ()

    def to_bytes(self) -> bytes:
        """The file."""
        return manifest_bytes({"kind": APPENDED_KIND, "version": VERSION, **to_jsonable(self)})
