"""``manifest.json`` of an export, written last: its plan, totals, and where its records are."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from bpe._codec import decode, encode
from bpe.files import CHECKSUM, with_checksum
from pipelines import storage
from pipelines.errors import InputError
from pipelines.option import changed
from pipelines.output.names import MANIFEST, read_manifest_object
from pipelines.settings import ExportSettings
from pipelines.stage.record import StoredFile
from pipelines.storage import join
from pipelines.totals import Taken

KIND = "export"
VERSION = 2


@dataclass(frozen=True, kw_only=True)
class PinnedSource:
    """A source as the plan has it, but for where it lies."""

    name: str
    files: int
    documents: int
    tokens: int
    pins: str


@dataclass(frozen=True, kw_only=True)
class TokenizerFile:
    """``tokenizer.json``: SHA-256 (hex), and one more than the greatest id."""

    sha256: str
    vocab_size: int


@dataclass(frozen=True, kw_only=True)
class HalfTotals:
    """Sums over the parts of training or of validation.

    Attributes:
        documents: that were taken, as often as they were.
        rows: of them.
        tokens: ids of documents in these rows.
        padding: ids of the pad token that fill rows; none of the ``tokens``.
        dropped_tokens: ids that are in no row.
        dropped_documents: documents of which nothing is in a row.
        cut: documents longer than a row (best-fit packing), or cut off by a row that was dropped.
        files: that hold rows.
        bytes: of these.
    """

    documents: int = 0
    rows: int = 0
    tokens: int = 0
    padding: int = 0
    dropped_tokens: int = 0
    dropped_documents: int = 0
    cut: int = 0
    files: int = 0
    bytes: int = 0


@dataclass(frozen=True, kw_only=True)
class ExportManifest:
    """The fields of the file, in its order.

    Attributes:
        kind: `KIND`.
        version: `VERSION`.
        layout: of the bytes of parts.
        sources: in order.
        tokenizer: whose ids they are.
        id_type: ``uint16`` or ``uint32``.
        columns: that pass through: types by name.
        unit_tokens: as in the plan.
        settings: what was exported.
        taken: what was taken of each source for training.
        training: totals.
        validation: totals of the documents held out.
        index: the files that list the others.
        records: the file of the records.
    """

    kind: str = KIND
    version: int = VERSION
    layout: int
    sources: tuple[PinnedSource, ...]
    tokenizer: TokenizerFile
    id_type: str
    columns: Mapping[str, str]
    unit_tokens: int
    settings: ExportSettings
    taken: tuple[Taken, ...]
    training: HalfTotals
    validation: HalfTotals
    index: tuple[StoredFile, ...]
    records: StoredFile

    @property
    def header(self) -> dict[str, Any]:
        """That of the plan (`ExportPlan.header`)."""
        value = encode(self)
        names = ("layout", "sources", "tokenizer", "id_type", "columns", "unit_tokens")
        settings = {"to": self.settings.to, **changed(self.settings)}
        return {**{name: value[name] for name in names}, "settings": settings}

    @property
    def halves(self) -> tuple[HalfTotals, HalfTotals]:
        """The totals of training and of validation."""
        return self.training, self.validation

    def to_json(self) -> dict[str, Any]:
        """The manifest as JSON values, in the order of the file, its checksum last."""
        return with_checksum(encode(self))


def read_export(directory: str) -> ExportManifest:
    """The manifest of the export in ``directory``, every value checked.

    Raises:
        InputError: there is none, or something in it is missing or of the wrong type.
    """
    path = join(storage.located(directory), MANIFEST)
    value = read_manifest_object(path)
    kind, version = value.get("kind"), value.get("version")
    if (kind, version) != (KIND, VERSION):
        raise InputError(
            f"{path}: kind {kind!r}, version {version!r}: this release reads {KIND!r} of version "
            f"{VERSION}: export the ids again"
        )
    return manifest_of(value, path)


def manifest_of(value: Mapping[str, Any], path: str) -> ExportManifest:
    """The manifest in JSON values.

    Args:
        value: the values.
        path: of their file, for errors.

    Raises:
        InputError: something in it is missing or of the wrong type.
    """
    fields = {name: one for name, one in value.items() if name != CHECKSUM}
    try:
        return decode(ExportManifest, fields)
    except ValueError as error:
        raise InputError(f"{path}: damaged: {error}: export the ids again") from error
