"""``manifest.json`` of an export, written last: its plan, totals, and where its records are."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any

from bpe._codec import to_jsonable
from bpe.files import fingerprint, with_checksum
from pipelines import storage
from pipelines.export.rows import ExportLayout
from pipelines.option import changed
from pipelines.output.names import MANIFEST, TRAIN, manifest_from
from pipelines.output.state import complete
from pipelines.settings import ExportSettings
from pipelines.stage.record import Record, StoredFile
from pipelines.storage import join
from pipelines.totals import Taken

KIND = "export"
VERSION = 2


@dataclass(frozen=True, kw_only=True)
class ExportedSource:
    """A directory of ids, as `bpe encode` writes them, under any path; ``pins`` of its parts."""

    name: str
    files: int
    documents: int
    tokens: int
    pins: str


@dataclass(frozen=True, kw_only=True)
class ExportedTokenizer:
    """``tokenizer.json``: SHA-256 (hex), and one more than the greatest id."""

    sha256: str
    vocab_size: int


@dataclass(frozen=True, kw_only=True)
class ExportHeader(ExportLayout):
    """The settings that make two runs the same export: the head of plan and manifest.

    Attributes:
        kind: `KIND`.
        version: `VERSION`.
        layout: the version of the bytes of parts.
        sources: the sources, in order.
        tokenizer: the tokenizer that made the ids.
        id_type: ``uint16`` or ``uint32``.
        columns: the types of the columns that pass through, by name.
        unit_tokens: the most tokens in a unit of work, unless a single part has more.
        settings: the settings of the export.
    """

    kind: str = KIND
    version: int = VERSION
    layout: int
    sources: tuple[ExportedSource, ...]
    tokenizer: ExportedTokenizer
    id_type: str
    columns: Mapping[str, str]
    unit_tokens: int
    settings: ExportSettings

    @property
    def head(self) -> dict[str, Any]:
        """Return the fields of the header, by name."""
        return {one.name: getattr(self, one.name) for one in fields(ExportHeader)}

    @property
    def header(self) -> dict[str, Any]:
        """Return the fields of the header in a plan, as JSON values."""
        head = self.head
        del head["kind"], head["version"]
        settings = {"to": self.settings.to, **changed(self.settings)}
        return {name: to_jsonable(value) for name, value in {**head, "settings": settings}.items()}

    @property
    def fingerprint(self) -> str:
        """Return the SHA-256 (hex) of the header, on which the files of every unit depend."""
        return fingerprint(self.header)


@dataclass(frozen=True, kw_only=True)
class RowTotals:
    """Totals of the rows of a half.

    Attributes:
        documents: the number of documents taken; a document taken twice counts twice.
        rows: the number of rows.
        tokens: the number of ids in the rows, without padding.
        padding: the number of ids of the pad token that fill rows.
        dropped_tokens: the number of ids that are in no row.
        dropped_documents: the number of documents that are in no row.
        cut: the number of documents longer than a row (best-fit packing), or whose end was in a
            dropped row.
    """

    documents: int = 0
    rows: int = 0
    tokens: int = 0
    padding: int = 0
    dropped_tokens: int = 0
    dropped_documents: int = 0
    cut: int = 0


@dataclass(frozen=True, kw_only=True)
class HalfTotals(RowTotals):
    """Sums over the parts of training or of validation; ``files`` hold rows, of so many bytes."""

    files: int = 0
    bytes: int = 0


@dataclass(frozen=True, kw_only=True)
class ExportManifest(ExportHeader):
    """The fields of the file, in its order.

    Attributes:
        taken: what was taken of each source for training.
        training: totals.
        validation: totals of the documents held out.
        index: the files that list the others.
        records: the file of the records.
    """

    taken: tuple[Taken, ...]
    training: HalfTotals
    validation: HalfTotals
    index: tuple[StoredFile, ...]
    records: StoredFile

    @property
    def halves(self) -> tuple[HalfTotals, HalfTotals]:
        """Return the totals of training and of validation."""
        return self.training, self.validation

    def to_json(self) -> dict[str, Any]:
        """Return the manifest as JSON values, in the order of the file, its checksum last."""
        return with_checksum(to_jsonable(self))


def files_of(record: Record, half: str) -> list[StoredFile]:
    """Return the files of a unit that hold rows of a half."""
    counts = record.totals["files"]
    first = 0 if half == TRAIN else counts.get(TRAIN, 0)
    return list(record.files[first : first + counts.get(half, 0)])


def half_totals(records: Sequence[Record], half: str) -> HalfTotals:
    """Return the totals of a half, summed over the units."""
    totals = Counter[str]()
    for record in records:
        totals.update(record.totals["halves"].get(half, {}))
    files = [file for record in records for file in files_of(record, half)]
    return HalfTotals(**totals, files=len(files), bytes=sum(file.bytes for file in files))


def read_export(directory: str) -> ExportManifest:
    """Return the manifest of the export in ``directory``, every value checked.

    Raises:
        InputError: the manifest is missing, or lacks a value, or has one of the wrong type.
    """
    value = complete(directory, "export").manifest
    path = join(storage.located(directory), MANIFEST)
    return manifest_from(ExportManifest, value, path, version=VERSION, again="export the ids again")
