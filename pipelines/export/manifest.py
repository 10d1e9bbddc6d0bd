"""``export.json``: what an export holds, written last."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from bpe._codec import decode, encode
from bpe.files import CHECKSUM, with_checksum
from pipelines import storage
from pipelines.errors import InputError
from pipelines.output.names import EXPORT, read_manifest_object
from pipelines.settings import ExportSettings
from pipelines.storage import join

KIND = "export"
VERSION = 1


@dataclass(frozen=True, kw_only=True)
class ExportedFile:
    """A file of an export, and how many rows and ids it holds."""

    file: str
    rows: int
    tokens: int
    bytes: int
    sha256: str


@dataclass(frozen=True, kw_only=True)
class ExportedPart:
    """What was made of a part of the encoded corpus.

    Attributes:
        source: the part, below the directory of the corpus.
        source_sha256: of that file (hex).
        rows: in it.
        tokens: ids in it.
        files: that hold its rows, in order; none where it has no ids, or where all parts were
            joined in one file.
    """

    source: str
    source_sha256: str
    rows: int
    tokens: int
    files: tuple[ExportedFile, ...]


@dataclass(frozen=True, kw_only=True)
class IndexFile:
    """A file that lists the others: its name, size in bytes and SHA-256 (hex)."""

    file: str
    bytes: int
    sha256: str


@dataclass(frozen=True, kw_only=True)
class Encoded:
    """The encoded corpus that was exported.

    Attributes:
        manifest_sha256: of its manifest, as JSON with sorted keys and no spaces (hex).
        tokenizer_sha256: of its ``tokenizer.json`` (hex).
        vocab_size: one more than the greatest id there may be.
        id_type: ``uint16`` or ``uint32``.
        chunked: whether a row is a chunk of a document.
        packed: whether a row holds several documents.
    """

    manifest_sha256: str
    tokenizer_sha256: str
    vocab_size: int
    id_type: str
    chunked: bool
    packed: bool


@dataclass(frozen=True, kw_only=True)
class ExportTotals:
    """Sums over all parts: documents that the corpus says it holds, rows, ids, bytes of files."""

    documents: int
    rows: int
    tokens: int
    bytes: int


@dataclass(frozen=True, kw_only=True)
class ExportManifest:
    """The fields of the file, in its order.

    Attributes:
        kind: `KIND`.
        version: `VERSION`.
        encoded: what was exported.
        settings: in which format.
        totals: sums over the parts.
        index: the files that list the others.
        joined: the files that hold all parts, where they were joined.
        parts: in the order of the corpus.
    """

    kind: str = KIND
    version: int = VERSION
    encoded: Encoded
    settings: ExportSettings
    totals: ExportTotals
    index: tuple[IndexFile, ...]
    joined: tuple[ExportedFile, ...]
    parts: tuple[ExportedPart, ...]

    @property
    def files(self) -> tuple[ExportedFile, ...]:
        """All files that hold rows."""
        return (*self.joined, *(file for part in self.parts for file in part.files))

    @property
    def listed(self) -> tuple[ExportedFile | IndexFile, ...]:
        """All files but ``export.json`` itself."""
        return (*self.files, *self.index)

    def to_json(self) -> dict[str, Any]:
        """The manifest as JSON values, in the order of the file, its checksum last."""
        return with_checksum(encode(self))


def read_export(directory: str) -> ExportManifest:
    """The manifest of the export in ``directory``, every value checked.

    Raises:
        InputError: there is none, or something in it is missing or of the wrong type.
    """
    path = join(storage.located(directory), EXPORT)
    value = read_manifest_object(path)
    kind, version = value.get("kind"), value.get("version")
    if (kind, version) != (KIND, VERSION):
        raise InputError(
            f"{path}: kind {kind!r}, version {version!r}: this release reads {KIND!r} of version "
            f"{VERSION}: export the corpus again"
        )
    value.pop(CHECKSUM, None)
    try:
        manifest = decode(ExportManifest, value)
        _check_names(manifest)
    except ValueError as error:
        raise InputError(f"{path}: damaged: {error}: export the corpus again") from error
    return manifest


def _check_names(manifest: ExportManifest) -> None:
    """Refuse names that lead out of the directory."""
    for one in manifest.listed:
        if "/" in one.file or one.file in ("", ".", ".."):
            raise ValueError(f"a file is {one.file!r}")
