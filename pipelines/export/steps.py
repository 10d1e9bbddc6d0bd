"""Writing an export, without Beam: what the steps of `pipelines.export.job` do.

Beside the files of a part lies a hidden one that says what they are, so that a job that is resumed
keeps them. These, and the files of parts that were joined, are removed when `EXPORT` is written.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from bpe._codec import decode, encode
from bpe.files import with_checksum
from pipelines import storage
from pipelines.encode.manifest import Part, fingerprint_of
from pipelines.errors import ConfigError, InputError, JobError
from pipelines.export.format import ExportJob, stem
from pipelines.export.formats import FORMATS
from pipelines.export.manifest import (
    Encoded,
    ExportedFile,
    ExportedPart,
    ExportManifest,
    ExportTotals,
    IndexFile,
    read_export,
)
from pipelines.export.source import PartSource
from pipelines.output.check_files import named_file
from pipelines.output.directory import plan_of_run, remove_temporaries
from pipelines.output.names import (
    EXPORT,
    fingerprint,
    json_bytes,
    parse_export,
    read_manifest_object,
    training_twin,
)
from pipelines.progress import SlotWriter
from pipelines.storage import Written, join

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from pipelines.encode.manifest import EncodedManifest
    from pipelines.settings import ExportSettings

# The version of the bytes of a part's files, in its fingerprint: raise it when the same ids and
# settings give others than before.
LAYOUT = 1


@dataclass(frozen=True, kw_only=True)
class PartToExport:
    """A part of the encoded corpus; ``number`` in the order of its manifest."""

    number: int
    part: Part


@dataclass(frozen=True, kw_only=True)
class DonePart:
    """A part that was exported; ``documents`` are those of which something is in its rows."""

    number: int
    documents: int
    part: ExportedPart


def encoded_by(manifest: EncodedManifest) -> Encoded:
    """What an export says of the corpus with this manifest."""
    return Encoded(
        manifest_sha256=fingerprint_of(manifest),
        tokenizer_sha256=manifest.tokenizer.sha256,
        vocab_size=manifest.tokenizer.vocab_size,
        id_type=manifest.id_type,
        chunked=manifest.rows.max_tokens is not None,
        packed=manifest.rows.pack is not None,
    )


def chosen_parts(manifest: EncodedManifest, settings: ExportSettings) -> tuple[Part, ...]:
    """The parts for training, or those held out; what fills up their rows is among the tokens.

    Raises:
        ConfigError: none are held out.
    """
    parts = [
        replace(part, tokens=part.tokens + part.padding)
        for part in manifest.parts
        if (training_twin(part.file) is not None) == settings.validation
    ]
    if not parts and settings.validation:
        raise ConfigError(
            "`validation`: no documents of this corpus were held out: encode it with `validation`, "
            "such as 0.5%"
        )
    return tuple(parts)


def check_settings(job: ExportJob, parts: Sequence[Part]) -> None:
    """Refuse what the format cannot hold.

    Raises:
        ConfigError: the corpus has such rows or ids.
    """
    check_rows(job.settings, packed=job.encoded.packed, source=job.source)
    tokens = [part.tokens for part in parts]
    FORMATS[job.settings.to].check(job, max(tokens, default=0), sum(tokens))


def check_rows(settings: ExportSettings, *, packed: bool, source: str) -> None:
    """Refuse rows that the format cannot hold.

    Args:
        settings: the format.
        packed: whether a row holds several documents.
        source: the directory of the rows.

    Raises:
        ConfigError: it cannot.
    """
    if settings.with_id and packed:
        raise ConfigError(
            f"`with_id`: the rows of {source} are packed, and each holds several documents: "
            "leave it out"
        )


def export_part(
    piece: PartToExport, job: ExportJob, *, stopped: Callable[[], bool] = lambda: False
) -> DonePart:
    """Write the files of a part.

    Args:
        piece: the part.
        job: the export.
        stopped: asked between row groups, whether nobody needs the result any more.

    Raises:
        InputError: the part is not the file that the manifest names.
        OutputError: a file cannot be written.
        StoppedError: nobody needs the result any more.
    """
    part, path = piece.part, join(job.source, piece.part.file)
    with (
        named_file(job.source, part.file, part.bytes, part.sha256) as file,
        SlotWriter(job.counters_path, piece.number) as slot,
    ):
        source = PartSource(
            file,
            path=path,
            part=part,
            with_id=job.settings.with_id,
            slot=slot,
            stopped=stopped,
        )
        # No trainer opens an empty file: one cannot be mapped into memory.
        files = FORMATS[job.settings.to].write(source, job) if part.tokens else ()
        slot.update(documents=_documents(part), bytes=part.bytes)
    exported = ExportedPart(
        source=part.file,
        source_sha256=part.sha256,
        rows=part.rows,
        tokens=part.tokens,
        files=files,
    )
    state = {"fingerprint": _fingerprint(piece, job), "part": encode(exported)}
    storage.write(_state_file(piece, job), json_bytes(with_checksum(state)))
    return _done(piece, exported)


def kept_part(piece: PartToExport, job: ExportJob) -> DonePart | None:
    """A part whose files an earlier run finished, read in full; None where it must be written."""
    try:
        state = read_manifest_object(_state_file(piece, job))
        if state.get("fingerprint") != _fingerprint(piece, job):
            return None
        exported = decode(ExportedPart, state.get("part"))
        for one in exported.files:
            if parse_export(one.file) is None:  # what a file says is never used as a path
                return None
            found = storage.digest(join(job.directory, one.file))
            if found != Written(bytes=one.bytes, sha256=one.sha256):
                return None
    except (InputError, ValueError):
        return None
    with SlotWriter(job.counters_path, piece.number) as slot:
        slot.keep(documents=piece.part.documents, bytes=piece.part.bytes)
    return _done(piece, exported)


def _done(piece: PartToExport, exported: ExportedPart) -> DonePart:
    return DonePart(number=piece.number, documents=_documents(piece.part), part=exported)


def _documents(part: Part) -> int:
    """How many documents have something in the rows of a part."""
    return part.documents - part.dropped.documents


def _state_file(piece: PartToExport, job: ExportJob) -> str:
    return join(job.directory, f".{stem(piece.part.file)}.json")


def _fingerprint(piece: PartToExport, job: ExportJob) -> str:
    """SHA-256 (hex) of what the bytes of a part's files depend on."""
    settings = {**encode(job.settings), "one_file": None}
    return fingerprint(
        [LAYOUT, piece.part.file, piece.part.sha256, settings, encode(job.encoded)["id_type"]]
    )


def finish_export(done: Iterable[DonePart], job: ExportJob, *, parts: int) -> dict[str, Any]:
    """Check that all parts are there, join them if asked to, and write what lists them.

    Args:
        done: all parts, in any order.
        job: the export.
        parts: how many there must be.

    Returns:
        What ``export.json`` holds.

    Raises:
        OutputError: another job has taken the directory over, or a file cannot be written.
        JobError: the runner lost a part.
    """
    if job.run:
        plan_of_run(job.directory, job.run)
    if storage.exists(join(job.directory, EXPORT)):  # this step was retried
        manifest = read_export(job.directory)
        remove_leftovers(job.directory, manifest)
        return manifest.to_json()
    ordered = sorted(done, key=lambda one: one.number)
    if [one.number for one in ordered] != list(range(parts)):
        raise JobError(
            f"the runner returned {len(ordered)} parts of {parts}: use another runner; parts that "
            "are there can be kept with `resume`"
        )
    manifest = _manifest([one.part for one in ordered], sum(one.documents for one in ordered), job)
    storage.write(join(job.directory, EXPORT), json_bytes(manifest.to_json()))
    remove_leftovers(job.directory, manifest)
    return manifest.to_json()


def _manifest(parts: list[ExportedPart], documents: int, job: ExportJob) -> ExportManifest:
    of_format = FORMATS[job.settings.to]
    joined: tuple[ExportedFile, ...] = ()
    if job.settings.one_file:
        joined = of_format.join(parts, job)
        parts = [
            ExportedPart(
                source=part.source,
                source_sha256=part.source_sha256,
                rows=part.rows,
                tokens=part.tokens,
                files=(),
            )
            for part in parts
        ]
    index = tuple(
        IndexFile(file=name, bytes=written.bytes, sha256=written.sha256)
        for name, data in of_format.index(parts, job).items()
        for written in [storage.write(join(job.directory, name), data)]
    )
    files = (*joined, *(file for part in parts for file in part.files))
    return ExportManifest(
        encoded=job.encoded,
        settings=job.settings,
        totals=ExportTotals(
            documents=documents,
            rows=sum(part.rows for part in parts),
            tokens=sum(part.tokens for part in parts),
            bytes=sum(file.bytes for file in files),
        ),
        index=index,
        joined=joined,
        parts=tuple(parts),
    )


def remove_leftovers(directory: str, manifest: ExportManifest) -> None:
    """Remove what a complete export no longer needs."""
    remove_temporaries(directory)
    for name in leftovers(directory, manifest):
        storage.remove(join(directory, name))


def leftovers(directory: str, manifest: ExportManifest) -> list[str]:
    """The files of an export that its manifest does not name."""
    named = {one.file for one in manifest.files}
    there = (entry.name for entry in storage.entries(directory))
    return [name for name in there if parse_export(name) is not None and name not in named]
