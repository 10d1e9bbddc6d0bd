"""Is an output what its manifest says, and what its input says?

Every file is read in full: its size and SHA-256 against the manifest, its contents against what
its own footer says. Given the inputs, every document is read again: it must have its row, the row
must decode to the bytes of the document, and encoding the document must give the row.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import pyarrow as pa

from pipelines import storage
from pipelines.corpus.inputs import find_inputs, input_file
from pipelines.corpus.splits import FileRange, Split
from pipelines.encode.parts import open_part, read_contents
from pipelines.encode.rows import Dropped
from pipelines.encode.steps import (
    part_fingerprint,
    part_settings,
    row_layout,
    unknown_id,
)
from pipelines.encode.tokenizer_files import PUT_BACK, load_tokenizer
from pipelines.errors import ConfigError, InputError, StoppedError, VerificationError
from pipelines.output.names import DATA, DEAD_LETTERS, TOKENIZER, parse_part
from pipelines.progress import SlotWriter
from pipelines.storage import join
from pipelines.verify.rows import PartComparison, PartRows
from pipelines.watch.arrivals import Arrivals, Place
from pipelines.watch.settings import WatchSettings

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from bpe import Tokenizer
    from pipelines.corpus.documents import ReadOptions
    from pipelines.corpus.inputs import InputFile
    from pipelines.encode.manifest import EncodedManifest, Part
    from pipelines.encode.parts import Contents, DeadLetters
    from pipelines.encode.rows import RowLayout
    from pipelines.settings import InputSettings, RowSettings


@dataclass(frozen=True, kw_only=True)
class VerifyJob:
    """Everything a worker must know to check parts; small, and picklable.

    Attributes:
        directory: that holds the corpus.
        tokenizer_sha256: of its ``tokenizer.json`` (hex).
        vocab_size: one more than the greatest id there may be.
        id_type: ``uint16`` or ``uint32``.
        reading: how the inputs were read.
        rows: how documents became rows.
        compare: whether the inputs are read again, and compared.
        counters_path: the file of progress slots, one for each part.
    """

    directory: str
    tokenizer_sha256: str
    vocab_size: int
    id_type: str
    reading: ReadOptions
    rows: RowSettings
    compare: bool
    counters_path: str | None = None

    def layout(self, tokenizer: Tokenizer) -> RowLayout:
        """Of the rows of all parts.

        Raises:
            VerificationError: the tokenizer and the settings do not go together.
        """
        try:
            return row_layout(
                self.rows, id_type=self.id_type, reading=self.reading, tokenizer=tokenizer
            )
        except ConfigError as error:
            raise VerificationError(f"the manifest contradicts itself: {error}") from error


@dataclass(frozen=True, kw_only=True)
class PartCheck:
    """A part to check.

    Attributes:
        number: in the order of the manifest.
        part: what the manifest says of it.
        split: that it was made of; its files may lie elsewhere by now.
        dead_letters: what the manifest says of the bad records of the split.
    """

    number: int
    part: Part
    split: Split
    dead_letters: DeadLetters | None

    def size(self, *, compare: bool) -> int:
        """Bytes that are read for it: of its inputs, or of its own file."""
        return self.split.size if compare else self.part.bytes


@dataclass(frozen=True, kw_only=True)
class Verifying:
    """A verification, planned: what workers know, the parts, and the tokenizer."""

    job: VerifyJob
    parts: tuple[PartCheck, ...]
    tokenizer: Tokenizer

    def watched(self, counters_path: str | None) -> Verifying:
        """The same, whose workers tell their progress to a file of slots."""
        return replace(self, job=replace(self.job, counters_path=counters_path))


def plan_verifying(
    directory: str, manifest: EncodedManifest, *, inputs: InputSettings | None = None
) -> Verifying:
    """Check an encoded corpus but for its parts and their sums, and plan the checks of the parts.

    Args:
        directory: that holds it.
        manifest: what it must be.
        inputs: where its documents come from, to compare them too. How they are read stands in
            the manifest.

    Raises:
        VerificationError: something is not as it must be.
        InputError: the inputs cannot be listed.
    """
    root = storage.located(directory)
    check_names(
        root,
        expected={part.file for part in manifest.parts},
        dead={letters.file for letters in manifest.dead_letters},
        watched=manifest.watched,
    )
    path = join(root, TOKENIZER)
    if not storage.exists(path):
        raise VerificationError(f"{path} is missing: {PUT_BACK}")
    try:
        tokenizer = load_tokenizer(path)
    except InputError as error:
        raise VerificationError(f"{error}: {PUT_BACK}") from error
    if storage.digest(path).sha256 != manifest.tokenizer_sha256:
        raise VerificationError(f"{path} is not the tokenizer that the manifest names: {PUT_BACK}")
    if tokenizer.max_id + 1 != manifest.vocab_size:
        raise VerificationError(
            f"the manifest says vocab_size {manifest.vocab_size}, the tokenizer has "
            f"{tokenizer.max_id + 1}"
        )
    job = VerifyJob(
        directory=root,
        tokenizer_sha256=manifest.tokenizer_sha256,
        vocab_size=manifest.vocab_size,
        id_type=manifest.id_type,
        reading=manifest.reading,
        rows=manifest.rows,
        compare=inputs is not None,
    )
    job.layout(tokenizer)
    splits = _splits(manifest, _files(root, manifest, inputs) if inputs else None)
    dead = {letters.file: letters for letters in manifest.dead_letters}
    if len(dead) < len(manifest.dead_letters):
        raise VerificationError("the manifest names a file of dead letters twice")
    parts = tuple(
        PartCheck(
            number=number,
            part=part,
            split=split,
            dead_letters=dead.pop(split.dead_letters_file, None),
        )
        for number, (part, split) in enumerate(zip(manifest.parts, splits, strict=True))
    )
    for letters in dead.values():  # of an input of a watch that made no part
        _check_file(join(root, letters.file), letters.bytes, letters.sha256)
    return Verifying(job=job, parts=parts, tokenizer=tokenizer)


def _files(
    directory: str, manifest: EncodedManifest, inputs: InputSettings
) -> tuple[InputFile, ...]:
    """The files that the manifest must be of, as the job called them."""
    if manifest.failed is None:
        return find_inputs(inputs).files
    arrivals = Arrivals(
        [Place.of(pattern) for pattern in inputs.patterns],
        output=directory,
        settings=WatchSettings(),
        format_=inputs.format,
    )
    named = [
        input_file(one.path, arrivals.name(one.path), one.size_in_bytes, inputs.format)
        for one in arrivals.find()
    ]
    failed = set(manifest.failed)
    return tuple(
        sorted((file for file in named if file.name not in failed), key=lambda file: file.name)
    )


def check_names(
    directory: str, *, expected: set[str], dead: set[str], watched: bool = False
) -> None:
    """Refuse parts and dead letters that no manifest names, and half-written files.

    Where files are taken as they arrive (``watched``), those of the next ones may be there already.

    Raises:
        VerificationError: there is one.
    """
    found = [(entry.name, entry.name) for entry in storage.entries(directory)]
    for folder in (DATA, DEAD_LETTERS):
        inside = {entry.name for entry in storage.entries(join(directory, folder))}
        if not storage.is_local(directory):  # entries are objects there
            inside |= storage.folders(join(directory, folder))
        found += [(f"{folder}/{name}", name) for name in sorted(inside)]
    for name, base in found:
        named = parse_part(name)
        if watched and ((named and named.key) or storage.is_temporary(base) is not None):
            continue  # of a file that is taken at the moment
        extra = name.endswith(".parquet") or "/" in name
        if storage.is_temporary(base) is not None:
            raise VerificationError(
                f"{join(directory, name)} is half written: a job is at work here, or was killed"
            )
        if extra and name not in expected | dead:
            raise VerificationError(
                f"{join(directory, name)} is not named in the manifest: it is of another run, or "
                "none of ours: move it away"
            )


def _check_file(path: str, size: int, sha256: str) -> None:
    if not storage.exists(path):
        raise VerificationError(f"{path} is missing, the manifest names it")
    found = storage.digest(path)
    if found.bytes != size:
        raise VerificationError(f"{path} has {found.bytes} bytes, the manifest says {size}")
    if found.sha256 != sha256:
        raise VerificationError(f"{path}: its SHA-256 is not that of the manifest: it was changed")


def check_totals(manifest: EncodedManifest) -> None:
    """Compare the totals of a manifest with the sums over its parts.

    Raises:
        VerificationError: they differ.
    """
    totals = manifest.totals
    for name, stated, found in (
        ("documents", totals.documents, sum(part.documents for part in manifest.parts)),
        ("rows", totals.rows, sum(part.rows for part in manifest.parts)),
        ("tokens", totals.tokens, sum(part.tokens for part in manifest.parts)),
        ("unknown", totals.unknown, sum(part.unknown for part in manifest.parts)),
        ("text_bytes", totals.text_bytes, sum(part.text_bytes for part in manifest.parts)),
        ("bytes", totals.bytes, sum(part.bytes for part in manifest.parts)),
        ("dropped", totals.dropped, sum((p.dropped for p in manifest.parts), Dropped())),
        ("failures", totals.failures, sum(d.records for d in manifest.dead_letters)),
    ):
        if stated != found:
            raise VerificationError(
                f"the manifest's total of {name} is {stated}, its parts add up to {found}"
            )


def check_part(
    check: PartCheck, job: VerifyJob, tokenizer: Tokenizer, *, stopped: Callable[[], bool]
) -> None:
    """Check the files of a part against the manifest and each other, and its rows.

    Args:
        check: the part.
        job: what it is a part of.
        tokenizer: that made its ids.
        stopped: asked between blocks, whether nobody needs the result any more.

    Raises:
        VerificationError: something is not as it must be; the message names part, row, document.
        InputError: an input cannot be read.
        StoppedError: nobody needs the result any more.
    """
    part, path = check.part, join(job.directory, check.part.file)
    _check_file(path, part.bytes, part.sha256)
    if check.dead_letters is not None:
        letters = check.dead_letters
        _check_file(join(job.directory, letters.file), letters.bytes, letters.sha256)
    try:
        with (
            storage.open_binary(path) as source,
            SlotWriter(job.counters_path, check.number) as slot,
        ):
            file = open_part(source)
            contents = read_contents(file)
            for name in ("documents", "rows", "tokens", "unknown", "text_bytes", "dropped"):
                if getattr(contents, name) != getattr(part, name):
                    raise VerificationError(
                        f"{path}: its footer says {name} {getattr(contents, name)}, the manifest "
                        f"{getattr(part, name)}"
                    )
            _check_origin(check, job, contents, path)
            layout = job.layout(tokenizer)
            rows = PartRows(
                file,
                path=path,
                part=part,
                layout=layout,
                vocab_size=job.vocab_size,
                unknown=unknown_id(tokenizer),
            )
            if job.compare:
                comparison = PartComparison(
                    split=check.split, reading=job.reading, layout=layout, tokenizer=tokenizer
                )
                _check_failures(check, path, comparison.run(rows, part, slot, stopped=stopped))
                return
            size = 0
            while (table := rows.rest()) is not None:
                if stopped():
                    raise StoppedError
                size += table.nbytes
                slot.update(documents=rows.documents, bytes=min(size, part.bytes))
            slot.update(documents=rows.documents, bytes=part.bytes)
    except (pa.ArrowException, OSError, ValueError) as error:
        if isinstance(error, (VerificationError, InputError)):
            raise
        raise VerificationError(f"{path}: {' '.join(str(error).split())}") from error


def _check_origin(check: PartCheck, job: VerifyJob, contents: Contents, path: str) -> None:
    """What the manifest says of inputs and settings against what the part was made from."""
    settings = part_settings(
        tokenizer_sha256=job.tokenizer_sha256,
        id_type=job.id_type,
        reading=job.reading,
        rows=job.rows,
    )
    if contents.fingerprint != part_fingerprint(check.split, settings):
        raise VerificationError(
            f"{path}: it was made from other inputs or with other settings than the manifest says"
        )
    if contents.dead_letters != check.dead_letters:
        raise VerificationError(f"{path}: its dead letters are not those that the manifest names")


def _check_failures(check: PartCheck, path: str, failures: int) -> None:
    stated = check.dead_letters.records if check.dead_letters else 0
    if failures != stated:
        raise VerificationError(
            f"{path}: its input has {failures} bad records, the manifest says {stated}"
        )


def _splits(manifest: EncodedManifest, files: Sequence[InputFile] | None) -> tuple[Split, ...]:
    """The splits of the parts, over ``files``, which may lie elsewhere by now."""
    if files is not None:
        _check_inputs(manifest, files)
    index = -1
    splits = []
    seen: Counter[str] = Counter()
    for number, part in enumerate(manifest.parts):
        pieces = []
        for piece in part.inputs:
            index += piece.start == 0  # another file begins; not by name, two may look the same
            source = manifest.inputs[index] if 0 <= index < len(manifest.inputs) else None
            if source is None or source.name != piece.name:
                raise VerificationError(
                    f"the manifest says that {part.file} is of {piece.name!r}, which is not where "
                    "it stands among its inputs"
                )
            pieces.append(
                FileRange(
                    path=files[index].path if files is not None else "",
                    name=piece.name,
                    file_index=0 if manifest.watched else index,
                    format=source.format,  # type: ignore[arg-type]  # what the manifest says
                    compression=source.compression,  # type: ignore[arg-type]
                    start=piece.start,
                    end=piece.end,
                    file_size=source.size,
                )
            )
        name = parse_part(part.file)
        if name is None:  # `read_encoded` has refused it
            raise VerificationError(f"the manifest names a part {part.file!r}")
        splits.append(
            Split(
                part=seen[name.key] if manifest.watched else number,
                parts=name.parts,
                pieces=tuple(pieces),
                key=name.key,
            )
        )
        seen[name.key] += 1
    if index != len(manifest.inputs) - 1:
        raise VerificationError(
            f"the manifest names {len(manifest.inputs)} inputs, its parts are of {index + 1}"
        )
    return tuple(splits)


def _check_inputs(manifest: EncodedManifest, files: Sequence[InputFile]) -> None:
    """Refuse files that are not those of the manifest, by name and size."""
    names = {file.name for file in files}
    for source in manifest.inputs:
        if source.name not in names:
            raise VerificationError(
                f"input {source.name!r} of the manifest is not among the files given: give the "
                "same `input` patterns as for bpe encode"
            )
    if extra := names - {source.name for source in manifest.inputs}:
        raise VerificationError(f"input {min(extra)!r} is not among the inputs of the manifest")
    if [file.name for file in files] != [source.name for source in manifest.inputs]:
        raise VerificationError("the files given do not stand in the order of the manifest")
    for file, source in zip(files, manifest.inputs, strict=True):
        if file.size != source.size:
            raise VerificationError(
                f"{file.path} has {file.size} bytes, the manifest says {source.size}: the input "
                "was changed"
            )
