"""Is an output what its manifest says, and what its input says?

Every file is read in full: its size and SHA-256 against the manifest, its contents against what
its own footer says. Given the inputs, every document is read again: it must have its row, the row
must decode to the bytes of the document, and encoding the document must give the row.
"""

from __future__ import annotations

from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
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
from pipelines.errors import ConfigError, InputError, VerificationError
from pipelines.output.names import DATA, DEAD_LETTERS, TOKENIZER, parse_part
from pipelines.progress import SlotWriter
from pipelines.settings import cores
from pipelines.storage import join
from pipelines.verify.rows import PartComparison, PartRows
from pipelines.watch.arrivals import Arrivals, Place
from pipelines.watch.settings import WatchSettings

if TYPE_CHECKING:
    from collections.abc import Sequence

    from bpe import Tokenizer
    from pipelines.corpus.inputs import InputFile
    from pipelines.encode.manifest import EncodedManifest
    from pipelines.encode.parts import Contents
    from pipelines.encode.rows import RowLayout
    from pipelines.settings import InputSettings


@dataclass(frozen=True, kw_only=True)
class _Encoded:
    directory: str
    manifest: EncodedManifest
    tokenizer: Tokenizer
    layout: RowLayout
    splits: tuple[Split, ...]
    compare: bool
    counters_path: str | None


def verify_encoded(
    directory: str,
    manifest: EncodedManifest,
    *,
    inputs: InputSettings | None = None,
    counters_path: str | None = None,
) -> Tokenizer:
    """Check an encoded corpus; return its tokenizer.

    Args:
        directory: that holds it.
        manifest: what it must be.
        inputs: where its documents come from, to compare them too. How they are read stands in
            the manifest.
        counters_path: the file of progress slots, one for each part.

    Raises:
        VerificationError: something is not as it must be; the message names part, row, document.
        InputError: an input cannot be read.
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
    encoded = _Encoded(
        directory=root,
        manifest=manifest,
        tokenizer=tokenizer,
        layout=_layout(manifest, tokenizer),
        splits=_splits(manifest, _files(root, manifest, inputs) if inputs else None),
        compare=inputs is not None,
        counters_path=counters_path,
    )
    for letters in manifest.dead_letters:
        _check_file(join(root, letters.file), letters.bytes, letters.sha256)
    with ThreadPoolExecutor(cores()) as pool:
        pending = [
            pool.submit(_check_part, encoded, number) for number in range(len(manifest.parts))
        ]
        try:
            for future in pending:  # in order: the first part that is wrong is the one named
                future.result()
        except BaseException:
            pool.shutdown(cancel_futures=True)
            raise
    _check_totals(manifest)
    return tokenizer


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


def _layout(manifest: EncodedManifest, tokenizer: Tokenizer) -> RowLayout:
    try:
        return row_layout(
            manifest.rows, id_type=manifest.id_type, reading=manifest.reading, tokenizer=tokenizer
        )
    except ConfigError as error:
        raise VerificationError(f"the manifest contradicts itself: {error}") from error


def _check_totals(manifest: EncodedManifest) -> None:
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


def _check_part(encoded: _Encoded, number: int) -> None:
    part = encoded.manifest.parts[number]
    path = join(encoded.directory, part.file)
    _check_file(path, part.bytes, part.sha256)
    try:
        with (
            storage.open_binary(path) as source,
            SlotWriter(encoded.counters_path, number) as slot,
        ):
            file = open_part(source)
            contents = read_contents(file)
            for name in ("documents", "rows", "tokens", "unknown", "text_bytes", "dropped"):
                if getattr(contents, name) != getattr(part, name):
                    raise VerificationError(
                        f"{path}: its footer says {name} {getattr(contents, name)}, the manifest "
                        f"{getattr(part, name)}"
                    )
            _check_origin(encoded, number, contents, path)
            rows = PartRows(
                file,
                path=path,
                part=part,
                layout=encoded.layout,
                vocab_size=encoded.manifest.vocab_size,
                unknown=unknown_id(encoded.tokenizer),
            )
            if encoded.compare:
                _compare(encoded, number, rows, slot)
            else:
                size = 0
                while (table := rows.rest()) is not None:
                    size += table.nbytes
                    slot.update(documents=rows.documents, bytes=min(size, part.bytes))
                slot.update(documents=rows.documents, bytes=part.bytes)
    except (pa.ArrowException, OSError, ValueError) as error:
        if isinstance(error, (VerificationError, InputError)):
            raise
        raise VerificationError(f"{path}: {' '.join(str(error).split())}") from error


def _check_origin(encoded: _Encoded, number: int, contents: Contents, path: str) -> None:
    """What the manifest says of inputs and settings against what the part was made from."""
    manifest = encoded.manifest
    settings = part_settings(
        tokenizer_sha256=manifest.tokenizer_sha256,
        id_type=manifest.id_type,
        reading=manifest.reading,
        rows=manifest.rows,
    )
    if contents.fingerprint != part_fingerprint(encoded.splits[number], settings):
        raise VerificationError(
            f"{path}: it was made from other inputs or with other settings than the manifest says"
        )
    name = encoded.splits[number].dead_letters_file
    stated = [letters for letters in manifest.dead_letters if letters.file == name]
    if stated != ([contents.dead_letters] if contents.dead_letters else []):
        raise VerificationError(f"{path}: its dead letters are not those that the manifest names")


def _compare(encoded: _Encoded, number: int, rows: PartRows, slot: SlotWriter) -> None:
    manifest, part = encoded.manifest, encoded.manifest.parts[number]
    comparison = PartComparison(
        split=encoded.splits[number],
        reading=manifest.reading,
        layout=encoded.layout,
        tokenizer=encoded.tokenizer,
    )
    failures = comparison.run(rows, part, slot)
    name = encoded.splits[number].dead_letters_file
    stated = sum(d.records for d in manifest.dead_letters if d.file == name)
    if failures != stated:
        raise VerificationError(
            f"{rows.path}: its input has {failures} bad records, the manifest says {stated}"
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
