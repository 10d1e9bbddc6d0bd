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
from pipelines.corpus.mix import Mix
from pipelines.encode.rows import Dropped
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
    GROUPED_KIND,
    MANIFEST,
    dead_letters_file,
    fingerprint,
    is_dead_letters,
    json_bytes,
    parse_part,
    part_files,
    read_manifest_object,
    training_twin,
)
from pipelines.output.state import complete
from pipelines.settings import RowSettings
from pipelines.storage import join

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from pipelines.encode.parts import FinishedPart
    from pipelines.output.entries import Taken

KIND = "encoded"
VERSION = 6


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
    padding: int = 0
    cut_documents: int = 0
    bytes: int
    sha256: str
    inputs: tuple[SourceRange, ...]
    source: str = ""


@dataclass(frozen=True, kw_only=True)
class SourceTotals:
    """Sums over the parts of one source."""

    documents: int
    tokens: int
    text_bytes: int


@dataclass(frozen=True, kw_only=True)
class HeldOut:
    """Sums over the parts held out for validation."""

    documents: int = 0
    rows: int = 0
    tokens: int = 0


@dataclass(frozen=True, kw_only=True)
class Totals:
    """Sums over all parts; ``bytes`` is the size of the Parquet files.

    ``documents`` were encoded; all but ``dropped.documents`` are in ``rows``, and all their ids
    but ``dropped.tokens`` are the ``tokens`` of these rows. ``unknown`` of them are ids of the
    unknown token. ``padding`` ids of the pad token fill rows; they are none of the ``tokens``.
    ``cut_documents`` are those longer than a row, where only these are cut (best-fit packing).
    ``validation`` is what of all this is held out for validation; the rest is for training.
    ``sources`` has the named sources.
    """

    documents: int
    rows: int
    tokens: int
    unknown: int
    text_bytes: int
    dropped: Dropped
    padding: int = 0
    cut_documents: int = 0
    bytes: int
    failures: int
    validation: HeldOut = HeldOut()
    sources: Mapping[str, SourceTotals] = field(default_factory=dict)

    @classmethod
    def of(cls, parts: Sequence[Part], dead_letters: Iterable[DeadLetters]) -> Totals:
        """The sums over these parts, and over these files of bad records."""
        names = (
            *("documents", "rows", "tokens", "unknown", "text_bytes"),
            *("padding", "cut_documents", "bytes"),
        )
        held_out = [part for part in parts if training_twin(part.file) is not None]
        return cls(
            **{name: sum(getattr(part, name) for part in parts) for name in names},
            validation=HeldOut(
                documents=sum(part.documents for part in held_out),
                rows=sum(part.rows for part in held_out),
                tokens=sum(part.tokens for part in held_out),
            ),
            dropped=sum((part.dropped for part in parts), Dropped()),
            failures=sum(letters.records for letters in dead_letters),
            sources={
                name: SourceTotals(
                    documents=sum(part.documents for part in own),
                    tokens=sum(part.tokens for part in own),
                    text_bytes=sum(part.text_bytes for part in own),
                )
                for name in dict.fromkeys(part.source for part in parts if part.source)
                for own in [[part for part in parts if part.source == name]]
            },
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
        watch: where files are encoded as they arrive, what is known of each; else None.
        mix: which documents a mix takes; None where all are.
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
    watch: Watch | None = None
    mix: Mix | None = None

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
    def short_rows(self) -> int:
        """Packed rows that are not full, in each part the last one at most; 0 of best-fit rows."""
        if (size := self.rows.pack) is None or self.rows.pack_remainder == "pad":
            return 0
        if self.rows.best_fit:
            return 0
        return sum(part.tokens < part.rows * size for part in self.parts)

    @property
    def formats(self) -> dict[str, int]:
        """Documents by the format of the files that held them; a part is of one, or of no file."""
        of = {source.name: source.format for source in self.inputs}
        if self.rows.shuffles:  # each part is of all inputs
            known = set(of.values())
            return dict.fromkeys(known, self.totals.documents) if len(known) == 1 else {}
        parts = [part for part in self.parts if part.inputs]
        return add_formats(*({of[part.inputs[0].name]: part.documents} for part in parts))

    def files(self) -> dict[str, bytes]:
        """What to write, by name, in this order: the manifest is last; see `bpe._inputs_file`."""
        value, inputs = take_out(self.to_json())
        before = {} if inputs is None else {INPUTS: inputs}
        return {**before, MANIFEST: json_bytes(value)}

    def to_json(self) -> dict[str, Any]:
        """The manifest as JSON values, in the order of the file, its checksum last."""
        value = encode(self)
        for name in ("watch", "mix"):
            if value[name] is None:
                del value[name]
        return with_checksum(value)


def fingerprint_of(manifest: EncodedManifest) -> str:
    """SHA-256 (hex) of all that a manifest says."""
    return fingerprint(manifest.to_json())


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
        padding=part.contents.padding,
        cut_documents=part.contents.cut_documents,
        bytes=part.written.bytes,
        sha256=part.written.sha256,
        inputs=tuple(
            SourceRange(name=piece.name, start=piece.start, end=piece.end)
            for piece in part.split.pieces
        ),
        source=part.split.source,
    )


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
    if value.get("kind") == KIND and WATCH in value:
        value = read_watched(storage.located(directory)).to_json()
        del value[CHECKSUM]
        return value
    try:
        return put_back(value, lambda: storage.read(join(storage.located(directory), INPUTS)))
    except ValueError as error:
        raise InputError(f"{_path(directory)}: {error}: encode the corpus again") from error


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
    halves = 2 if manifest.rows.validation else 1
    parts = len(manifest.parts) // halves
    if (manifest.mix is None) == bool(manifest.rows.mix):
        raise ValueError("its rows and its mix contradict each other")
    if manifest.mix is not None and not _owned(manifest.mix, len(manifest.inputs)):
        raise ValueError("the sources of its mix do not divide its inputs")
    if len(manifest.parts) % halves:
        raise ValueError(f"{len(manifest.parts)} parts, of which half are held out")
    names = part_files(parts, validation=halves == 2)
    for number, (part, expected) in enumerate(zip(manifest.parts, names, strict=True)):
        if part.file != expected:
            raise ValueError(f"part {number} is {part.file!r}")
    named = {letters.file for letters in manifest.dead_letters}
    if manifest.rows.shuffles:  # they are of splits, of which it does not say how many there were
        unknown = {name for name in named if not is_dead_letters(name)}
    else:
        unknown = named - {dead_letters_file(number, parts) for number in range(parts)}
    if unknown:
        raise ValueError(f"dead letters {min(unknown)!r}")


def _owned(mix: Mix, inputs: int) -> bool:
    """Whether every input is of one source of a mix."""
    ranges = sorted(tuple(one) for source in mix.sources for one in source.inputs)
    ends = [0, *(one[-1] for one in ranges)]
    return [one[:1] for one in ranges] == [(end,) for end in ends[:-1]] and ends[-1] == inputs


def _path(directory: str) -> str:
    return join(storage.located(directory), MANIFEST)


def _read(directory: str) -> dict[str, Any]:
    path = _path(directory)
    if not storage.exists(path):
        complete(directory, "counts", "encoded")
    return read_manifest_object(path)
