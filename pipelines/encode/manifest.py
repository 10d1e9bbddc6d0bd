"""``manifest.json`` of an encoded corpus: the list of its files, written last."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from typing import TYPE_CHECKING, Any, Literal

from bpe._codec import from_jsonable, to_jsonable
from bpe._inputs_file import INPUTS, take_out
from bpe.counts.manifest import DeadLetters, add_formats
from bpe.files import with_checksum
from pipelines import storage
from pipelines.corpus.documents import ReadOptions
from pipelines.encode.rows import NOTHING, Sums
from pipelines.errors import InputError
from pipelines.output.names import (
    DATA,
    MANIFEST,
    RECORDS_FILE,
    json_bytes,
    manifest_from,
    of_generation,
)
from pipelines.output.state import complete
from pipelines.settings import RowSettings
from pipelines.stage.record import Record, StoredFile, read_records
from pipelines.storage import join
from pipelines.totals import DuplicateIds, SetAside, SourceTotals

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from pipelines.corpus.splits import Split
    from pipelines.stage.stage import Made

KIND = "encoded"
VERSION = 8  # 7 had records with sources and ranges apart


@dataclass(frozen=True, kw_only=True)
class Source:
    """An input file as the manifest names it; ``size`` in bytes as stored.

    ``source`` is the name of the source of the file; empty if the source has no name.
    """

    name: str
    size: int
    format: str
    compression: str
    source: str = ""


@dataclass(frozen=True, kw_only=True)
class SourceRange:
    """A piece of a split without path, version and number, which decide no bytes of its part."""

    name: str
    file_size: int
    format: str
    compression: str
    source: str
    start: int
    end: int


@dataclass(frozen=True, kw_only=True)
class Part(Sums):
    """A part: its file with size in bytes and SHA-256, sums over its rows, and its inputs.

    Attributes:
        fingerprint: SHA-256 (hex) of all values that decide the bytes of the part; that of the
            record is of a split's unreadable files, too.
        dead_letters: the file of the bad records of the same split, if any.
        set_aside: files that an appending job could not read.
    """

    file: str
    fingerprint: str
    bytes: int
    sha256: str
    inputs: tuple[SourceRange, ...]
    dead_letters: DeadLetters | None = None
    set_aside: tuple[SetAside, ...] = ()

    @property
    def source(self) -> str:
        """Return the source of the inputs; empty if the source has no name."""
        return self.inputs[0].source if self.inputs else ""

    @property
    def names(self) -> list[str]:
        """Return the names of the files of the part, with the files that were set aside."""
        return [*(one.name for one in self.inputs), *(one.name for one in self.set_aside)]

    @property
    def bad_records(self) -> int:
        """Return the number of bad records of the same split."""
        return self.dead_letters.records if self.dead_letters else 0

    @classmethod
    def of_unit(cls, unit: Record | Made) -> Part:
        """Return the part of a unit of work.

        Raises:
            ValueError, LookupError, TypeError: the unit is not of an encoded corpus.
        """
        return from_jsonable(cls, {**vars(unit.files[0]), **unit.totals})


def unit_name(file: str) -> str:
    """Return the name of the unit of work that makes a part: the stem of its file."""
    return file.removeprefix(f"{DATA}/").removesuffix(".parquet")


def ranges_of(split: Split) -> list[dict[str, Any]]:
    """Return the ranges of inputs that a split reads, as the JSON values of `SourceRange`."""
    names = [one.name for one in fields(SourceRange)]
    return [{name: getattr(piece, name) for name in names} for piece in split.pieces]


@dataclass(frozen=True, kw_only=True)
class Totals(Sums):
    """Sums over all parts; ``bytes`` is the size of the Parquet files.

    ``sources`` has the sums of each named source.
    """

    bytes: int
    failures: int
    sources: Mapping[str, SourceTotals] = field(default_factory=dict)

    @classmethod
    def of_parts(cls, parts: Sequence[Part]) -> Totals:
        """Return the sums over some parts and their files of bad records."""
        sources: dict[str, Sums] = {}
        for part in parts:
            if part.source:
                sources[part.source] = sources.get(part.source, NOTHING) + part
        return cls(
            **vars(sum(parts, NOTHING)),
            bytes=sum(part.bytes for part in parts),
            failures=sum(part.bad_records for part in parts),
            sources={
                name: SourceTotals(one.documents, one.tokens, one.text_bytes)
                for name, one in sources.items()
            },
        )


@dataclass(frozen=True, kw_only=True)
class TokenizerFile:
    """The tokenizer of the corpus: SHA-256 (hex), and one more than its greatest id."""

    file: Literal["tokenizer.json"] = "tokenizer.json"
    sha256: str
    vocab_size: int


@dataclass(frozen=True, kw_only=True)
class EncodedHeader:
    """Settings that are equal in two runs of the same encoding; fields of job and manifest.

    Attributes:
        kind: `KIND`.
        version: `VERSION`.
        tokenizer: the tokenizer of the ids.
        id_type: ``uint16`` or ``uint32``.
        settings: the settings of reading inputs.
        rows: the settings of rows.
    """

    kind: str = KIND
    version: int = VERSION
    tokenizer: TokenizerFile
    id_type: Literal["uint16", "uint32"]
    settings: ReadOptions
    rows: RowSettings

    @property
    def head(self) -> dict[str, Any]:
        """Return the fields of `EncodedHeader`, by name."""
        return {one.name: getattr(self, one.name) for one in fields(EncodedHeader)}


@dataclass(frozen=True, kw_only=True)
class EncodedManifest(EncodedHeader):
    """The manifest of an encoded corpus: the fields of the file, in its order.

    ``manifest.json`` has no parts: ``records`` names the file that holds them.

    Attributes:
        totals: sums over the parts.
        inputs: all files that were read, in order.
        parts: the parts, in order.
        records: the file of the records of all parts.
        duplicate_ids: the documents with equal ids; None after files were appended, because ids
            are not compared then.
        discarded: whether the parts were removed after their export was verified.
        generation: the number of jobs that have appended to the corpus.
    """

    totals: Totals
    inputs: tuple[Source, ...]
    parts: tuple[Part, ...] = ()
    records: StoredFile | None = None
    duplicate_ids: DuplicateIds | None = None
    discarded: bool = False
    generation: int = 0

    @property
    def formats(self) -> dict[str, int]:
        """Return the number of documents by the format of their files.

        All files of a part have one format; parts without files are not counted.
        """
        parts = [part for part in self.parts if part.inputs]
        return add_formats(*({part.inputs[0].format: part.documents} for part in parts))

    @property
    def figures(self) -> dict[str, Any]:
        """Return the fields that summaries of encoding and of verification share."""
        return {
            "documents": self.totals.documents,
            "bytes": self.totals.text_bytes,
            "tokens": self.totals.tokens,
            "unknown_tokens": self.totals.unknown,
            "failures": self.totals.failures,
            "formats": self.formats,
            "parts": len(self.parts),
        }

    @property
    def dead_letters(self) -> tuple[DeadLetters, ...]:
        """Return the files of bad records."""
        return tuple(part.dead_letters for part in self.parts if part.dead_letters)

    @property
    def set_aside(self) -> tuple[SetAside, ...]:
        """Return the files that appending jobs could not read."""
        return tuple(one for part in self.parts for one in part.set_aside)

    def files(self) -> dict[str, bytes]:
        """Return the files to write, by name, the manifest last; see `bpe._inputs_file`."""
        value, inputs = take_out(self.to_json(), of_generation(INPUTS, self.generation))
        return {**inputs, MANIFEST: json_bytes(value)}

    def to_json(self) -> dict[str, Any]:
        """Return the manifest as JSON values, in the order of the file, with the checksum last."""
        value = to_jsonable(replace(self, parts=()))
        for name in ("parts", "records", "duplicate_ids", "discarded", "generation"):
            if not value[name]:
                del value[name]
        return with_checksum(value)


def read_header(directory: str, *, discarded: bool = False) -> EncodedManifest:
    """Read and check the manifest of the encoded corpus in ``directory``, without its parts.

    Args:
        directory: the directory of the corpus.
        discarded: whether a corpus with discarded parts is accepted.

    Raises:
        InputError: there is no manifest, a value is missing or of the wrong type, or the parts
            were discarded.
    """
    root, value = storage.located(directory), complete(directory, "encoded").manifest
    if value.get("discarded") and not discarded:
        raise InputError(
            f"{directory}: its parts were removed when their export was verified (bpe run "
            "--discard-ids): encode the corpus again, with bpe encode --overwrite"
        )

    def inputs() -> bytes:
        file = of_generation(INPUTS, value.get("generation", 0))
        return storage.read(join(root, file))

    again = "encode the corpus again to another directory"
    known: dict[str, Any] = {"version": VERSION, "again": again, "inputs": inputs}
    return manifest_from(EncodedManifest, value, join(root, MANIFEST), **known)


def records_of(header: EncodedManifest, directory: str) -> Iterator[Record]:
    """Yield the records of a corpus, read in batches; errors are those of `read_records`."""
    file = of_generation(RECORDS_FILE, header.generation)
    sha256 = header.records.sha256 if header.records else ""
    return read_records(storage.located(directory), sha256, file)


def read_encoded(directory: str, *, discarded: bool = False) -> EncodedManifest:
    """Read the manifest of the encoded corpus in ``directory``, with its parts.

    Arguments and errors are those of `read_header`.

    Raises:
        InputError: also if the records of the corpus are damaged.
    """
    header = read_header(directory, discarded=discarded)
    try:
        # Of very many records, one as JSON at a time.
        parts = tuple(map(Part.of_unit, records_of(header, directory)))
    except (ValueError, LookupError, TypeError) as error:
        path = join(storage.located(directory), MANIFEST)
        raise InputError(f"{path}: damaged: {error}: encode the corpus again") from error
    return replace(header, parts=parts)
