"""The manifest of counts by group: which groups there are. Each has a directory of its own."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

from bpe._codec import from_jsonable, to_jsonable
from bpe._inputs_file import INPUTS, put_back, take_out
from bpe.counts.manifest import CountedInput, CountsManifest, DeadLetters, Totals
from bpe.errors import CountsError
from bpe.files import is_intact, with_checksum
from pipelines.corpus.mix import MixSource
from pipelines.output.names import GROUPED_KIND, MANIFEST, group_folder, json_bytes

if TYPE_CHECKING:
    from collections.abc import Callable

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

    @classmethod
    def read(
        cls, value: dict[str, Any], *, where: str, inputs: Callable[[], bytes]
    ) -> GroupedManifest:
        """From the JSON object in the file; arguments as those of ``CountsManifest.from_json``.

        Raises:
            CountsError: it is of another version, damaged, or was edited.
        """
        if (version := value.get("version")) != VERSION:
            raise CountsError(
                f"{where} has version {version!r:.60}, this library reads {VERSION}: count again "
                "to another directory"
            )
        if not is_intact(value):
            raise CountsError(
                f"{where}: checksum mismatch: the file is corrupt or was edited: count again"
            )
        try:
            return from_jsonable(cls, put_back(value, inputs))
        except ValueError as error:
            raise CountsError(f"{where}: {error}: count again") from error
