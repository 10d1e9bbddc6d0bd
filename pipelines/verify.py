"""Is an output what its manifest says, and what its input says?

Every file is read in full: its size and SHA-256 against the manifest, its contents against what
its own footer says. Given the inputs, every document is read again: it must have its row, the row
must decode to the bytes of the document, and encoding the document must give the row.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from pipelines import storage
from pipelines.documents import ReadOptions, read_split
from pipelines.encoding import encode_block, load_tokenizer, part_fingerprint, part_settings
from pipelines.errors import InputError, VerificationError
from pipelines.inputs import find_inputs
from pipelines.manifest import read_encoded
from pipelines.output import DEAD_LETTERS, TOKENIZER, part_name
from pipelines.parts import open_part, read_contents, read_rows
from pipelines.progress import SlotWriter
from pipelines.settings import cores
from pipelines.splits import FileRange, Split
from pipelines.storage import join

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from bpe import Tokenizer
    from pipelines.encoding import EncodedBlock
    from pipelines.inputs import InputFile
    from pipelines.manifest import EncodedManifest, Part
    from pipelines.parts import Contents
    from pipelines.settings import InputSettings


@dataclass(frozen=True, kw_only=True)
class _Encoded:
    directory: str
    manifest: EncodedManifest
    tokenizer: Tokenizer
    splits: tuple[Split, ...]
    compare: bool
    counters_path: str | None


def verify_encoded(
    directory: str,
    *,
    inputs: InputSettings | None = None,
    counters_path: str | None = None,
) -> EncodedManifest:
    """Check an encoded corpus; return its manifest.

    Args:
        directory: that holds it.
        inputs: where its documents come from, to compare them too. How they are read stands in
            the manifest.
        counters_path: the file of progress slots, one for each part.

    Raises:
        VerificationError: something is not as it must be; the message names part, row, document.
        InputError: there is no manifest, or an input cannot be read.
    """
    root = storage.located(directory)
    manifest = read_encoded(root)
    check_names(
        root,
        expected={part.file for part in manifest.parts},
        dead={letters.file for letters in manifest.dead_letters},
    )
    path = join(root, TOKENIZER)
    try:
        tokenizer = load_tokenizer(path)
    except InputError as error:
        raise VerificationError(f"{error}: its rows cannot be checked without it") from error
    if storage.digest(path).sha256 != manifest.tokenizer_sha256:
        raise VerificationError(f"{path} is not the tokenizer that the manifest names")
    if tokenizer.max_id + 1 != manifest.vocab_size:
        raise VerificationError(
            f"the manifest says vocab_size {manifest.vocab_size}, the tokenizer has "
            f"{tokenizer.max_id + 1}"
        )
    encoded = _Encoded(
        directory=root,
        manifest=manifest,
        tokenizer=tokenizer,
        splits=_splits(manifest, find_inputs(inputs) if inputs else None),
        compare=inputs is not None,
        counters_path=counters_path,
    )
    for letters in manifest.dead_letters:
        _check_file(join(root, *letters.file.split("/")), letters.bytes, letters.sha256)
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
    return manifest


def check_names(directory: str, *, expected: set[str], dead: set[str]) -> None:
    """Refuse parts and dead letters that no manifest names, and half-written files.

    Raises:
        VerificationError: there is one.
    """
    found = [(entry.name, entry.name) for entry in storage.entries(directory)]
    found += [
        (f"{DEAD_LETTERS}/{entry.name}", entry.name)
        for entry in storage.entries(join(directory, DEAD_LETTERS))
    ]
    for name, base in found:
        extra = name.endswith(".parquet") or name.startswith(f"{DEAD_LETTERS}/")
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


def _check_totals(manifest: EncodedManifest) -> None:
    totals = manifest.totals
    for name, stated, found in (
        ("documents", totals.documents, sum(part.rows for part in manifest.parts)),
        ("tokens", totals.tokens, sum(part.tokens for part in manifest.parts)),
        ("text_bytes", totals.text_bytes, sum(part.text_bytes for part in manifest.parts)),
        ("bytes", totals.bytes, sum(part.bytes for part in manifest.parts)),
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
            for name in ("rows", "tokens", "text_bytes"):
                if getattr(contents, name) != getattr(part, name):
                    raise VerificationError(
                        f"{path}: its footer says {name} {getattr(contents, name)}, the manifest "
                        f"{getattr(part, name)}"
                    )
            _check_origin(encoded, number, contents, path)
            kind = str(file.schema_arrow.field("input_ids").type.value_type)
            if kind != encoded.manifest.id_type:
                raise VerificationError(
                    f"{path}: its ids are {kind}, the manifest says {encoded.manifest.id_type}"
                )
            rows = _Rows(path, _checked_rows(file, path, part, encoded.manifest))
            if encoded.compare:
                _compare(encoded, number, rows, slot)
            else:
                size = 0
                while (table := rows.rest()) is not None:
                    size += table.nbytes
                    slot.update(documents=rows.taken, bytes=min(size, part.bytes))
                slot.update(documents=rows.taken, bytes=part.bytes)
    except (pa.ArrowException, OSError, ValueError) as error:
        if isinstance(error, (VerificationError, InputError)):
            raise
        raise VerificationError(f"{path}: {' '.join(str(error).split())}") from error


def _check_origin(encoded: _Encoded, number: int, contents: Contents, path: str) -> None:
    """What the manifest says of inputs and settings against what the part was made from."""
    manifest = encoded.manifest
    settings = part_settings(manifest.tokenizer_sha256, manifest.id_type, manifest.settings)
    if contents.fingerprint != part_fingerprint(encoded.splits[number], settings):
        raise VerificationError(
            f"{path}: it was made from other inputs or with other settings than the manifest says"
        )
    name = f"{DEAD_LETTERS}/{part_name(number, len(manifest.parts), 'jsonl')}"
    stated = [letters for letters in manifest.dead_letters if letters.file == name]
    if stated != ([contents.dead_letters] if contents.dead_letters else []):
        raise VerificationError(f"{path}: its dead letters are not those that the manifest names")


def _checked_rows(
    file: object, path: str, part: Part, manifest: EncodedManifest
) -> Iterator[pa.Table]:
    row = tokens = 0
    for table in read_rows(file):
        values = table["input_ids"].combine_chunks().flatten()
        if len(values) and pc.max(values).as_py() >= manifest.vocab_size:
            for at, ids in enumerate(table["input_ids"].to_pylist()):
                if ids and max(ids) >= manifest.vocab_size:
                    raise VerificationError(
                        f"{path}, row {row + at}, document {table['id'][at].as_py()!r}: id "
                        f"{max(ids)} does not exist, the vocabulary has {manifest.vocab_size}"
                    )
        row += len(table)
        tokens += len(values)
        yield table
    if tokens != part.tokens:
        raise VerificationError(f"{path} holds {tokens} tokens, the manifest says {part.tokens}")


class _Rows:
    """The rows of a part, taken in portions that are not those of its row groups."""

    def __init__(self, path: str, tables: Iterable[pa.Table]) -> None:
        self._path = path
        self._tables = iter(tables)
        self._left: pa.Table | None = None
        self.taken = 0

    def take(self, rows: int) -> pa.Table:
        """The next ``rows`` rows, or as many as are left."""
        got: list[pa.Table] = []
        wanted = rows
        while wanted:
            if self._left is None or not len(self._left):
                self._left = next(self._tables, None)
                if self._left is None:
                    break
            got.append(self._left.slice(0, wanted))
            self._left = self._left.slice(len(got[-1]))
            wanted -= len(got[-1])
        self.taken += rows - wanted
        return pa.concat_tables(got).combine_chunks() if got else pa.table({})

    def rest(self) -> pa.Table | None:
        """What is left of the row group at hand, or the next one; None at the end."""
        table = self._left if self._left is not None and len(self._left) else None
        self._left = None
        table = table if table is not None else next(self._tables, None)
        self.taken += len(table) if table is not None else 0
        return table


def _compare(encoded: _Encoded, number: int, rows: _Rows, slot: SlotWriter) -> None:
    """Read the documents of a part again, and compare each with its row."""
    manifest, part = encoded.manifest, encoded.manifest.parts[number]
    path = join(encoded.directory, part.file)
    split = encoded.splits[number]
    options = ReadOptions(**manifest.settings)
    failures = size = 0
    for block in read_split(split, options):
        documents = encode_block(block, encoded.tokenizer, split)
        failures += len(block.bad) + len(documents.bad)
        first = rows.taken
        found = rows.take(len(documents.ids))
        if rows.taken - first < len(documents.ids):
            raise VerificationError(
                f"{path} ends after row {rows.taken}: document "
                f"{documents.ids[rows.taken - first].as_py()!r} of the input has no row"
            )
        if len(documents.ids):
            _compare_rows(encoded, path, first, found, documents)
        size += block.input_bytes
        slot.update(documents=rows.taken, bytes=size)
    if (more := rows.rest()) is not None:
        raise VerificationError(
            f"{path}, row {rows.taken - len(more)}: document {more['id'][0].as_py()!r} is not in "
            "the input"
        )
    name = part.file.removesuffix(".parquet") + ".jsonl"
    stated = sum(d.records for d in manifest.dead_letters if d.file == f"{DEAD_LETTERS}/{name}")
    if failures != stated:
        raise VerificationError(
            f"{path}: its input has {failures} bad records, the manifest says {stated}"
        )


def _compare_rows(
    encoded: _Encoded, path: str, first: int, found: pa.Table, documents: EncodedBlock
) -> None:
    def differs(row: int, how: str) -> VerificationError:
        document = documents.ids[row].as_py()
        return VerificationError(f"{path}, row {first + row}, document {document!r}: {how}")

    ids = found["id"].combine_chunks()
    if (row := _first_difference(ids, documents.ids)) is not None:
        raise differs(row, f"the row is of document {ids[row].as_py()!r}")
    stored = found["input_ids"].combine_chunks().cast(pa.list_(pa.uint32()))
    if encoded.tokenizer.lossless:
        texts = encoded.tokenizer.decode_arrow(stored)
        if (row := _first_difference(texts, documents.texts.cast(pa.large_binary()))) is not None:
            raise differs(row, "its ids do not decode to its text")
    if not stored.equals(documents.input_ids):
        rows = range(len(stored))
        row = next(row for row in rows if stored[row] != documents.input_ids[row])
        raise differs(row, "encoding its text gives other ids")


def _first_difference(found: pa.Array, expected: pa.Array) -> int | None:
    if found.equals(expected):
        return None
    return int(pc.index(pc.not_equal(found, expected), pa.scalar(value=True)).as_py())


def _splits(manifest: EncodedManifest, files: list[InputFile] | None) -> tuple[Split, ...]:
    """The splits of the parts, over ``files``, which may lie elsewhere by now."""
    if files is not None:
        _check_inputs(manifest, files)
    index = -1
    splits = []
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
                    file_index=index,
                    format=source.format,  # type: ignore[arg-type]  # what the manifest says
                    compression=source.compression,  # type: ignore[arg-type]
                    start=piece.start,
                    end=piece.end,
                    file_size=source.size,
                )
            )
        splits.append(Split(part=number, parts=len(manifest.parts), pieces=tuple(pieces)))
    if index != len(manifest.inputs) - 1:
        raise VerificationError(
            f"the manifest names {len(manifest.inputs)} inputs, its parts are of {index + 1}"
        )
    return tuple(splits)


def _check_inputs(manifest: EncodedManifest, files: list[InputFile]) -> None:
    """Refuse files that are not those of the manifest, by name and size."""
    names = {file.name for file in files}
    for source in manifest.inputs:
        if source.name not in names:
            raise VerificationError(
                f"input {source.name!r} of the manifest is not among the files given: give the "
                "same --input patterns as for bpe encode"
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
