"""``manifest.json`` of an encoded corpus: what the directory holds, written last."""

from __future__ import annotations

from dataclasses import asdict, dataclass, fields
from typing import TYPE_CHECKING, Any, TypeVar

from bpe._checksum import CHECKSUM, with_checksum
from bpe.counts.manifest import add_formats
from pipelines import storage
from pipelines.corpus.documents import ReadOptions
from pipelines.encode.parts import DeadLetters
from pipelines.encode.rows import Dropped
from pipelines.errors import InputError
from pipelines.output.names import (
    MANIFEST,
    TOKENIZER,
    dead_letters_file,
    parse_part,
    part_file,
    read_manifest_object,
)
from pipelines.output.state import complete
from pipelines.settings import RowSettings
from pipelines.watch import log

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from pipelines.encode.parts import FinishedPart

KIND = "encoded"
VERSION = 4  # 3 had its parts beside the manifest


@dataclass(frozen=True, kw_only=True)
class Source:
    """An input file as the manifest names it; ``size`` in bytes as stored."""

    name: str
    size: int
    format: str
    compression: str


@dataclass(frozen=True, kw_only=True)
class SourceRange:
    """Bytes ``[start, end)``, as stored, of the input file ``name``."""

    name: str
    start: int
    end: int


@dataclass(frozen=True, kw_only=True)
class Part:
    """A part: its file with size in bytes and SHA-256, what is in it, and what it was read from."""

    file: str
    documents: int
    rows: int
    tokens: int
    unknown: int
    text_bytes: int
    dropped: Dropped
    bytes: int
    sha256: str
    inputs: tuple[SourceRange, ...]


@dataclass(frozen=True, kw_only=True)
class Totals:
    """Sums over all parts; ``bytes`` is the size of the Parquet files.

    ``documents`` were encoded; all but ``dropped.documents`` are in ``rows``, and all their ids
    but ``dropped.tokens`` are the ``tokens`` of these rows. ``unknown`` of them are ids of the
    unknown token.
    """

    documents: int
    rows: int
    tokens: int
    unknown: int
    text_bytes: int
    dropped: Dropped
    bytes: int
    failures: int


@dataclass(frozen=True, kw_only=True)
class EncodedManifest:
    """What an encoded corpus is made of.

    Attributes:
        tokenizer_sha256: of ``tokenizer.json`` beside the manifest (hex).
        vocab_size: one more than the greatest id of the tokenizer.
        id_type: ``uint16`` or ``uint32``.
        reading: how the inputs were read.
        rows: how documents became rows.
        totals: sums over the parts.
        inputs: every file that was read, in order.
        parts: in order.
        dead_letters: the files of bad records.
        failed: where files are encoded as they arrive, those that could not be read; None where
            all were there when the job began.
    """

    tokenizer_sha256: str
    vocab_size: int
    id_type: str
    reading: ReadOptions
    rows: RowSettings
    totals: Totals
    inputs: tuple[Source, ...]
    parts: tuple[Part, ...]
    dead_letters: tuple[DeadLetters, ...]
    failed: tuple[str, ...] | None = None

    @property
    def watched(self) -> bool:
        """Whether files are encoded as they arrive, each to parts of its own."""
        return self.failed is not None

    @property
    def formats(self) -> dict[str, int]:
        """Documents by the format of the files that held them; a part is of one, or of no file."""
        of = {source.name: source.format for source in self.inputs}
        parts = [part for part in self.parts if part.inputs]
        return add_formats(*({of[part.inputs[0].name]: part.documents} for part in parts))

    @classmethod
    def of(
        cls,
        parts: Iterable[FinishedPart],
        *,
        tokenizer_sha256: str,
        vocab_size: int,
        id_type: str,
        reading: ReadOptions,
        rows: RowSettings,
    ) -> EncodedManifest:
        """The manifest of finished parts, given in any order."""
        ordered = sorted(parts, key=lambda part: part.split.part)
        sources = {
            piece.file_index: Source(
                name=piece.name,
                size=piece.file_size,
                format=piece.format,
                compression=piece.compression,
            )
            for part in ordered
            for piece in part.split.pieces
        }
        dead = tuple(p.contents.dead_letters for p in ordered if p.contents.dead_letters)
        return cls(
            tokenizer_sha256=tokenizer_sha256,
            vocab_size=vocab_size,
            id_type=id_type,
            reading=reading,
            rows=rows,
            totals=Totals(
                documents=sum(part.contents.documents for part in ordered),
                rows=sum(part.contents.rows for part in ordered),
                tokens=sum(part.contents.tokens for part in ordered),
                unknown=sum(part.contents.unknown for part in ordered),
                text_bytes=sum(part.contents.text_bytes for part in ordered),
                dropped=sum((part.contents.dropped for part in ordered), Dropped()),
                bytes=sum(part.written.bytes for part in ordered),
                failures=sum(letters.records for letters in dead),
            ),
            inputs=tuple(source for _, source in sorted(sources.items())),
            parts=tuple(part_of(part) for part in ordered),
            dead_letters=dead,
        )

    def to_json(self) -> dict[str, Any]:
        """The manifest as JSON values, in the order of the file, its checksum last."""
        value = {
            "kind": KIND,
            "version": VERSION,
            "tokenizer": {
                "file": TOKENIZER,
                "sha256": self.tokenizer_sha256,
                "vocab_size": self.vocab_size,
            },
            "id_type": self.id_type,
            "settings": self.reading.to_json(),
            "rows": self.rows.to_json(),
            "totals": asdict(self.totals),
            "inputs": [asdict(source) for source in self.inputs],
            "dead_letters": [asdict(letters) for letters in self.dead_letters],
            "parts": [asdict(part) for part in self.parts],
        }
        return with_checksum(value)


def part_of(part: FinishedPart) -> Part:
    """A finished part as the manifest names it."""
    return Part(
        file=part.file,
        documents=part.contents.documents,
        rows=part.contents.rows,
        tokens=part.contents.tokens,
        unknown=part.contents.unknown,
        text_bytes=part.contents.text_bytes,
        dropped=part.contents.dropped,
        bytes=part.written.bytes,
        sha256=part.written.sha256,
        inputs=tuple(
            SourceRange(name=piece.name, start=piece.start, end=piece.end)
            for piece in part.split.pieces
        ),
    )


def read_kind(directory: str) -> tuple[str, bool]:
    """What the manifest in ``directory`` says it is of: ``counts`` or ``encoded``.

    And whether it has a checksum: those of earlier releases have none.

    Raises:
        InputError: there is no manifest, it is damaged, or not one of ours.
    """
    value = _read(directory)
    kind, has_checksum = value.get("kind"), CHECKSUM in value
    if kind == log.COUNTS_KIND:
        return "counts", has_checksum
    if kind not in ("counts", KIND):
        raise InputError(f"{_path(directory)}: not a manifest of counts or of an encoded corpus")
    return str(kind), has_checksum


def read_encoded(directory: str) -> EncodedManifest:
    """The manifest of the encoded corpus in ``directory``, every value checked.

    Raises:
        InputError: there is none, or something in it is missing or of the wrong type.
    """
    return encoded_of(read_encoded_json(directory), directory)


def read_encoded_json(directory: str) -> dict[str, Any]:
    """The manifest in ``directory`` as JSON values, of which none is checked.

    Where files are encoded as they arrive, it has what the log holds beside it, and no checksum:
    there is no such file.

    Raises:
        InputError: there is none, or it is damaged.
    """
    value = _read(directory)
    if value.get("kind") == KIND and log.WATCH in value:
        value = log.read_manifest(storage.located(directory))
        value.pop(CHECKSUM, None)
    return value


def encoded_of(value: Mapping[str, Any], directory: str) -> EncodedManifest:
    """The manifest that `read_encoded_json` has read in ``directory``, every value checked.

    Raises:
        InputError: something in it is missing or of the wrong type.
    """
    path = _path(directory)
    kind, version = value.get("kind"), value.get("version")
    if kind != KIND:
        raise InputError(f"{path}: kind {kind!r}: not the manifest of an encoded corpus")
    if version != VERSION:
        raise InputError(
            f"{path} has version {version!r}, this release reads {VERSION}: use the release of "
            "beam-bpe that wrote it, or encode the corpus again to another directory"
        )
    try:
        manifest = EncodedManifest(
            tokenizer_sha256=_text(value["tokenizer"], "sha256"),
            vocab_size=_number(value["tokenizer"], "vocab_size"),
            id_type=_text(value, "id_type"),
            reading=_reading(value["settings"]),
            rows=_rows(value["rows"]),
            totals=_record(Totals, value["totals"], dropped=_dropped(value["totals"])),
            inputs=tuple(_record(Source, source) for source in value["inputs"]),
            dead_letters=tuple(_record(DeadLetters, letters) for letters in value["dead_letters"]),
            parts=tuple(_read_part(part) for part in value["parts"]),
            failed=_failed(value.get(log.WATCH)),
        )
        _check_names(manifest, _text(value["tokenizer"], "file"))
    except (KeyError, TypeError, ValueError) as error:
        raise InputError(
            f"{path}: damaged: {type(error).__name__}: {error}: encode the corpus again"
        ) from error
    return manifest


def watched_files(manifest: EncodedManifest) -> set[str]:
    """The files of a corpus that is watched, which may be taken away; none of any other."""
    if not manifest.watched:
        return set()
    parts = {part.file for part in manifest.parts}
    return parts | {letters.file for letters in manifest.dead_letters}


def _check_names(manifest: EncodedManifest, tokenizer: str) -> None:
    """Refuse names that a job never gives: no manifest leads out of its directory."""
    if tokenizer != TOKENIZER:
        raise ValueError(f"tokenizer {tokenizer!r}")
    if manifest.id_type not in ("uint16", "uint32"):
        raise ValueError(f"id_type {manifest.id_type!r}")
    if manifest.watched:
        files = [part.file for part in manifest.parts]
        for file in (*files, *(letters.file for letters in manifest.dead_letters)):
            name = parse_part(file)
            if name is None or not name.key:
                raise ValueError(f"a part is {file!r}")
        return
    parts = len(manifest.parts)
    for number, part in enumerate(manifest.parts):
        if part.file != part_file(number, parts):
            raise ValueError(f"part {number} is {part.file!r}")
    dead = {dead_letters_file(number, parts) for number in range(parts)}
    if unknown := {letters.file for letters in manifest.dead_letters} - dead:
        raise ValueError(f"dead letters {min(unknown)!r}")


def _failed(watched: Any) -> tuple[str, ...] | None:
    if watched is None:
        return None
    return tuple(_text(one["inputs"][0], "name") for one in watched if one["failed"] is not None)


def _read_part(value: Any) -> Part:
    ranges = tuple(_record(SourceRange, source) for source in value["inputs"])
    return _record(Part, value, dropped=_dropped(value), inputs=ranges)


def _reading(value: Any) -> ReadOptions:
    _check_types(value, text_field=str, id_field=(str, type(None)), keep=list)
    _check_types(value, max_record_bytes=int, block_bytes=int)
    for column in value["keep"]:
        _check_types(column, name=str, type=str)
    options = ReadOptions.from_json(value)
    for kept in options.keep:
        _ = kept.field  # its type is one
    return options


def _rows(value: Any) -> RowSettings:
    _check_types(value, prepend_token=(str, type(None)), append_token=(str, type(None)))
    _check_types(value, max_tokens=(int, type(None)), pack=(int, type(None)), allow_special=list)
    _check_types(value, dropout=(int, float), dropout_seed=int)
    for token in value["allow_special"]:
        if not isinstance(token, str):
            raise TypeError(f"allow_special {token!r:.80} is not text")
    return RowSettings.from_json(value)


def _check_types(value: Any, **kinds: type | tuple[type, ...]) -> None:
    for key, kind in kinds.items():
        if not isinstance(value[key], kind) or isinstance(value[key], bool):
            raise TypeError(f"{key} {value[key]!r:.80} is of the wrong kind")


def _dropped(value: Any) -> Dropped:
    return _record(Dropped, value["dropped"])


_Record = TypeVar("_Record", Source, SourceRange, Part, Totals, DeadLetters, Dropped)


def _record(kind: type[_Record], value: Any, **read: Any) -> _Record:
    """A record of the manifest: what was ``read`` of it, and texts and numbers of these names."""
    for field in fields(kind):
        if field.name not in read:
            take = _text if field.type in ("str", str) else _number
            read[field.name] = take(value, field.name)
    return kind(**read)


def _text(value: Any, key: str) -> str:
    if not isinstance(value[key], str):
        raise TypeError(f"{key} {value[key]!r} is not text")
    return str(value[key])


def _number(value: Any, key: str) -> int:
    if type(value[key]) is not int or value[key] < 0:
        raise TypeError(f"{key} {value[key]!r} is not a whole number")
    return int(value[key])


def _path(directory: str) -> str:
    return storage.join(storage.located(directory), MANIFEST)


def _read(directory: str) -> dict[str, Any]:
    path = _path(directory)
    if not storage.exists(path):
        complete(directory, "counts", "encoded")
    return read_manifest_object(path)
