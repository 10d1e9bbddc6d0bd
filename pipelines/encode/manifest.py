"""``manifest.json`` of an encoded corpus: what the directory holds, written last."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal

from bpe._codec import decode, encode
from bpe._inputs_file import INPUTS, put_back, take_out
from bpe.counts.manifest import DeadLetters, add_formats
from bpe.files import CHECKSUM, with_checksum
from pipelines import storage
from pipelines.corpus.documents import ReadOptions
from pipelines.errors import InputError
from pipelines.output.entries import (
    COUNTS_KIND,
    LOG,
    WATCH,
    Entry,
    Watch,
    key_of,
    read_folded,
    read_log,
    standing,
)
from pipelines.output.names import (
    DATA,
    GROUPED_KIND,
    MANIFEST,
    dead_letters_file,
    json_bytes,
    parse_part,
    part_file,
    read_manifest_object,
)
from pipelines.output.state import complete
from pipelines.settings import RowSettings
from pipelines.stage.record import Record, StoredFile, iterate_records
from pipelines.storage import join
from pipelines.totals import DuplicateIds, SourceTotals

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from pipelines.corpus.splits import Split
    from pipelines.output.entries import Taken

KIND = "encoded"
VERSION = 7  # 6 held the parts itself, each with its own proof in its footer


@dataclass(frozen=True, kw_only=True)
class Source:
    """An input file as the manifest names it; ``size`` in bytes as stored.

    ``source`` is the name of the input that it is of, empty where that has none.
    """

    name: str
    size: int
    format: str
    compression: str
    source: str = ""


@dataclass(frozen=True, kw_only=True, slots=True)
class SourceRange:
    """Bytes ``[start, end)``, as stored, of the input file ``name``."""

    name: str
    start: int
    end: int


@dataclass(frozen=True, kw_only=True, slots=True)
class Part:
    """A part: its file with size in bytes and SHA-256, what is in it, and what it was read from.

    ``fingerprint`` is the SHA-256 (hex) of all that its bytes depend on.
    """

    file: str
    fingerprint: str
    documents: int
    tokens: int
    unknown: int
    text_bytes: int
    bytes: int
    sha256: str
    inputs: tuple[SourceRange, ...]
    source: str = ""


def unit_name(file: str) -> str:
    """What the unit of work is called that makes a part: as its file."""
    return file.removeprefix(f"{DATA}/").removesuffix(".parquet")


def ranges_of(split: Split) -> tuple[SourceRange, ...]:
    """What a split reads, as the manifest names it."""
    return tuple(
        SourceRange(name=piece.name, start=piece.start, end=piece.end) for piece in split.pieces
    )


@dataclass(frozen=True, kw_only=True)
class Totals:
    """Sums over all parts; ``bytes`` is the size of the Parquet files.

    ``unknown`` of the ``tokens`` are ids of the unknown token; ``sources`` has the named sources.
    """

    documents: int
    tokens: int
    unknown: int
    text_bytes: int
    bytes: int
    failures: int
    sources: Mapping[str, SourceTotals] = field(default_factory=dict)

    @classmethod
    def of(cls, parts: Sequence[Part], dead_letters: Iterable[DeadLetters]) -> Totals:
        """The sums over these parts, and over these files of bad records."""
        sources: dict[str, SourceTotals] = {}
        for part in parts:
            if part.source:
                before = sources.get(part.source, SourceTotals())
                sources[part.source] = SourceTotals(
                    documents=before.documents + part.documents,
                    tokens=before.tokens + part.tokens,
                    text_bytes=before.text_bytes + part.text_bytes,
                )
        return cls(
            documents=sum(part.documents for part in parts),
            tokens=sum(part.tokens for part in parts),
            unknown=sum(part.unknown for part in parts),
            text_bytes=sum(part.text_bytes for part in parts),
            bytes=sum(part.bytes for part in parts),
            failures=sum(letters.records for letters in dead_letters),
            sources=sources,
        )


@dataclass(frozen=True, kw_only=True)
class TokenizerFile:
    """The tokenizer beside the manifest: SHA-256 (hex), and one more than its greatest id."""

    file: Literal["tokenizer.json"] = "tokenizer.json"
    sha256: str
    vocab_size: int


@dataclass(frozen=True, kw_only=True)
class EncodedManifest:
    """What an encoded corpus is made of: the fields of the file, in its order.

    In the file, ``records`` stands for the dead letters and parts, which are in that file. Where
    files are encoded as they arrive, it does not.

    Attributes:
        kind: `KIND`.
        version: `VERSION`.
        tokenizer: whose ids the rows hold.
        id_type: ``uint16`` or ``uint32``.
        settings: how the inputs were read.
        rows: how documents became rows.
        totals: sums over the parts.
        inputs: every file that was read, in order.
        dead_letters: the files of bad records.
        parts: in order.
        records: the file of the records of all parts; None where files are encoded as they arrive.
        watch: where files are encoded as they arrive, what is known of each; else None.
        duplicate_ids: None where files are encoded as they arrive, which nobody compares.
        discarded: whether the parts were removed, after their export was verified.
    """

    kind: str = KIND
    version: int = VERSION
    tokenizer: TokenizerFile
    id_type: str
    settings: ReadOptions
    rows: RowSettings
    totals: Totals
    inputs: tuple[Source, ...]
    dead_letters: tuple[DeadLetters, ...]
    parts: tuple[Part, ...]
    records: StoredFile | None = None
    watch: Watch | None = None
    duplicate_ids: DuplicateIds | None = None
    discarded: bool = False

    @property
    def watched(self) -> bool:
        """Whether files are encoded as they arrive, each to parts of its own."""
        return self.watch is not None

    @property
    def failed(self) -> tuple[str, ...] | None:
        """Of a watch, the inputs that could not be read; else None."""
        if self.watch is None:
            return None
        return tuple(one.name for one in self.watch.inputs if one.failed is not None)

    @property
    def formats(self) -> dict[str, int]:
        """Documents by the format of the files that held them; a part is of one, or of no file."""
        of = {source.name: source.format for source in self.inputs}
        parts = [part for part in self.parts if part.inputs]
        return add_formats(*({of[part.inputs[0].name]: part.documents} for part in parts))

    def files(self) -> dict[str, bytes]:
        """What to write, by name, in this order: the manifest is last; see `bpe._inputs_file`."""
        named = {**self.to_json()}
        del named["parts"], named["dead_letters"]
        value, inputs = take_out(with_checksum(named))
        before = {} if inputs is None else {INPUTS: inputs}
        return {**before, MANIFEST: json_bytes(value)}

    def to_json(self) -> dict[str, Any]:
        """The manifest as JSON values, in the order of the file, its checksum last."""
        value = encode(self)
        for name in ("records", "watch", "duplicate_ids"):
            if value[name] is None:
                del value[name]
        if not self.discarded:
            del value["discarded"]
        return with_checksum(value)


def together(manifests: Sequence[EncodedManifest], taken: Iterable[Taken]) -> EncodedManifest:
    """One manifest of all inputs that were ``taken``, in the order of their names.

    Args:
        manifests: of one input or of several each, and made by the same settings. Where several
            are of one input, its parts are those that have its key.
        taken: the inputs.
    """
    inputs = {one.key: one for one in taken}
    failed = {one.name for one in inputs.values() if one.failed is not None}
    parts = [part for one in manifests for part in one.parts if key_of(part.file) in inputs]
    dead = [one for of in manifests for one in of.dead_letters if key_of(one.file) in inputs]
    sources = {source.name: source for one in manifests for source in one.inputs}
    names = {one.name for one in inputs.values()} - failed
    ordered = tuple(sorted(parts, key=lambda part: inputs[key_of(part.file)].name))
    return replace(
        manifests[0],
        totals=Totals.of(ordered, dead),
        inputs=tuple(source for name, source in sorted(sources.items()) if name in names),
        parts=ordered,
        dead_letters=tuple(sorted(dead, key=lambda one: inputs[key_of(one.file)].name)),
    )


def read_watched(directory: str) -> Entry:
    """What was made of all inputs that a watch has encoded so far, as one entry.

    Raises:
        InputError: something is damaged.
    """
    log = read_log(directory)
    return folded(directory, read_folded(directory), log)


def folded(directory: str, before: Entry, log: Mapping[str, Entry]) -> Entry:
    """The entry that holds what an earlier one of ``manifest.json`` does, and what a log does.

    Raises:
        InputError: something is damaged.
    """
    holds = standing(before.taken, log)
    taken = tuple(one for _, one in sorted(holds.taken.items()))
    manifests = [encoded_of(before.to_json(), directory)]
    manifests += [
        encoded_of(one.to_json(), directory, file=f"{LOG}/{id_}.json")
        for id_, one in holds.entries.items()
    ]
    return Entry(together(manifests, taken).to_json(), taken)


def read_kind(directory: str) -> tuple[str, bool]:
    """What the manifest in ``directory`` says it is of: ``counts`` or ``encoded``.

    And whether it has a checksum: those of earlier releases have none.

    Raises:
        InputError: there is no manifest, it is damaged, or not one of ours.
    """
    value = _read(directory)
    kind, has_checksum = value.get("kind"), CHECKSUM in value
    if kind in (COUNTS_KIND, GROUPED_KIND):
        return "counts", has_checksum
    if kind not in ("counts", KIND):
        raise InputError(f"{_path(directory)}: not a manifest of counts or of an encoded corpus")
    return str(kind), has_checksum


def is_discarded(directory: str) -> bool:
    """Whether the parts of a corpus were removed; of its manifest, only the mark is looked at.

    Raises:
        InputError: there is no manifest, or it is damaged.
    """
    return bool(_read(directory).get("discarded"))


def read_encoded(directory: str, *, discarded: bool = False) -> EncodedManifest:
    """The manifest of the encoded corpus in ``directory``, every value checked.

    Args:
        directory: of the corpus.
        discarded: whether its parts may be gone.

    Raises:
        InputError: there is none, something in it is missing or of the wrong type, or its parts
            were discarded.
    """
    value = _read(directory)
    if value.get("discarded") and not discarded:
        raise InputError(
            f"{directory}: its parts were removed when their export was verified (bpe run "
            "--discard-ids): encode the corpus again, with bpe encode --overwrite"
        )
    if WATCH in value or (value.get("kind"), value.get("version")) != (KIND, VERSION):
        return encoded_of(read_encoded_json(directory), directory)
    parts: list[Part] = []
    dead: list[DeadLetters] = []
    try:
        bare = {**_with_inputs(value, directory), "dead_letters": [], "parts": []}
        manifest = encoded_of(bare, directory)
        for record in _records(value, directory):  # of very many parts, one as JSON at a time
            parts.append(decode(Part, record.totals["part"]))
            if record.totals["dead_letters"] is not None:
                dead.append(decode(DeadLetters, record.totals["dead_letters"]))
        manifest = replace(manifest, parts=tuple(parts), dead_letters=tuple(dead))
        _check_names(manifest)
    except (ValueError, LookupError, TypeError) as error:
        raise InputError(
            f"{_path(directory)}: damaged: {error}: encode the corpus again"
        ) from error
    return manifest


def read_encoded_json(directory: str) -> dict[str, Any]:
    """The manifest in ``directory`` as JSON values, of which none is checked.

    Where files are encoded as they arrive, it has what the log holds beside it, and no checksum:
    there is no such file.

    Raises:
        InputError: there is none, or it is damaged.
    """
    value = _read(directory)
    if value.get("kind") == KIND and WATCH in value:
        value = read_watched(storage.located(directory)).to_json()
        del value[CHECKSUM]
        return value
    if value.get("kind") != KIND or value.get("version") != VERSION:
        return value
    try:
        value = _with_inputs(value, directory)
        parts, dead = named_in(_records(value, directory))
    except (ValueError, LookupError, TypeError) as error:
        raise InputError(f"{_path(directory)}: {error}: encode the corpus again") from error
    return {**value, "dead_letters": dead, "parts": parts}


def named_in(records: Iterable[Record]) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """The parts and the dead letters of records, as JSON values."""
    made = [record.totals for record in records]
    dead = [one["dead_letters"] for one in made if one["dead_letters"] is not None]
    return [one["part"] for one in made], dead


def _with_inputs(value: dict[str, Any], directory: str) -> dict[str, Any]:
    return put_back(value, lambda: storage.read(join(storage.located(directory), INPUTS)))


def _records(value: Mapping[str, Any], directory: str) -> Iterator[Record]:
    records = value.get("records")
    if not isinstance(records, dict):
        raise InputError(f"{_path(directory)}: names no records: encode the corpus again")
    return iterate_records(storage.located(directory), str(records.get("sha256")))


def encoded_of(
    value: Mapping[str, Any], directory: str, *, file: str = MANIFEST
) -> EncodedManifest:
    """The manifest that was read in ``directory``, every value checked.

    Args:
        value: what `read_encoded_json` has read, or an entry of a watch.
        directory: of the corpus.
        file: that it was read from, for errors.

    Raises:
        InputError: something in it is missing or of the wrong type.
    """
    path = storage.join(storage.located(directory), file)
    kind, version = value.get("kind"), value.get("version")
    if kind != KIND:
        raise InputError(f"{path}: kind {kind!r}: not the manifest of an encoded corpus")
    if version != VERSION:
        raise InputError(
            f"{path} has version {version!r}, this release reads {VERSION}: use the release of "
            "beam-bpe that wrote it, or encode the corpus again to another directory"
        )
    try:
        manifest = decode(EncodedManifest, value)
        _check_names(manifest)
    except ValueError as error:
        raise InputError(f"{path}: damaged: {error}: encode the corpus again") from error
    return manifest


def watched_files(manifest: EncodedManifest) -> set[str]:
    """The files of a corpus that is watched, which may be taken away; none of any other."""
    if not manifest.watched:
        return set()
    parts = {part.file for part in manifest.parts}
    return parts | {letters.file for letters in manifest.dead_letters}


def _check_names(manifest: EncodedManifest) -> None:
    """Refuse names that a job never gives: no manifest leads out of its directory."""
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
    named = {letters.file for letters in manifest.dead_letters}
    if unknown := named - {dead_letters_file(number, parts) for number in range(parts)}:
        raise ValueError(f"dead letters {min(unknown)!r}")


def _path(directory: str) -> str:
    return join(storage.located(directory), MANIFEST)


def _read(directory: str) -> dict[str, Any]:
    path = _path(directory)
    if not storage.exists(path):
        complete(directory, "counts", "encoded")
    return read_manifest_object(path)
