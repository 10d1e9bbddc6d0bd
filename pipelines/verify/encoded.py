"""Is an encoded corpus what its manifest says, and what its input says?

Every file is read in full: its size, SHA-256 and rows against the manifest. Given the inputs, each
part is made again and compared instead of written. Since that shares all of making, an independent
check goes beside it: ids must decode to the text.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from functools import partial
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from bpe._inputs_file import beside
from bpe.errors import BpeError
from pipelines import storage
from pipelines.append import base_of
from pipelines.corpus.inputs import find_inputs
from pipelines.corpus.splits import FileRange, Split
from pipelines.encode.duplicates import duplicate_ids
from pipelines.encode.manifest import Totals
from pipelines.encode.parts import Sums, open_part, read_rows
from pipelines.encode.rows import ID, INPUT_IDS, KEY, NUM_TOKENS, without_ends
from pipelines.encode.steps import EncodeJob, make, unknown_id
from pipelines.errors import ConfigError, InputError, StoppedError, VerificationError
from pipelines.output.check_files import Finding, check_file, check_names, checked_file, raise_first
from pipelines.output.names import (
    BASE,
    RECORDS_FILE,
    TOKENIZER,
    fingerprint,
    parse_part,
    part_file,
    read_plan,
)
from pipelines.progress import SlotWriter
from pipelines.storage import join
from pipelines.tokenizer_files import PUT_BACK, load_tokenizer

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    import pyarrow.parquet as pq

    from bpe import Tokenizer
    from bpe.counts.manifest import DeadLetters
    from pipelines.corpus.inputs import InputFile
    from pipelines.encode.encoder import EncodedBlock
    from pipelines.encode.manifest import EncodedManifest, Part
    from pipelines.failures import Failures
    from pipelines.settings import InputSettings, RowSettings
    from pipelines.totals import DuplicateIds


@dataclass(frozen=True, kw_only=True)
class VerifyEncodedJob:
    """Everything a worker must know to check parts; small, and picklable.

    Attributes:
        encode: the job that made them.
        compare: whether the inputs are read again, and compared.
    """

    encode: EncodeJob
    compare: bool

    @property
    def directory(self) -> str:
        """Of the corpus."""
        return self.encode.directory

    def with_counters(self, counters_path: str | None) -> VerifyEncodedJob:
        """The same, whose workers tell their progress to a file of slots, one for each part."""
        reading = replace(self.encode.reading, counters_path=counters_path)
        return replace(self, encode=replace(self.encode, reading=reading))


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
class StatedParts:
    """What a manifest says of all parts taken together.

    Attributes:
        directory: of the corpus.
        numbers: what they hold, as `VerifySummary` and formats are named.
        error: what is wrong with these.
        duplicates: documents of one id; None where nobody looked for them.
    """

    directory: str
    numbers: Mapping[str, int]
    error: VerificationError | None
    duplicates: DuplicateIds | None


@dataclass(frozen=True, kw_only=True)
class VerifyingEncoded:
    """A verification of an encoded corpus, planned.

    Attributes:
        job: for the workers.
        manifest: its fingerprint.
        parts: to check.
        stated: what they are to add up to.
        tokenizer: of the corpus.
        splits: none: a part is compared with its own.
    """

    job: VerifyEncodedJob
    manifest: str
    parts: tuple[PartCheck, ...]
    stated: StatedParts
    tokenizer: Tokenizer
    splits: tuple[Split, ...] = ()


def plan_encoded(
    directory: str, manifest: EncodedManifest, *, inputs: InputSettings | None = None
) -> VerifyingEncoded:
    """Check an encoded corpus but for its parts, and plan the checks of the parts.

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
        "encoded",
        named={part.file for part in manifest.parts}
        | {letters.file for letters in manifest.dead_letters}
        | beside(manifest.inputs)
        | {RECORDS_FILE},
        appended=manifest.generation > 0,
    )
    path = join(root, TOKENIZER)
    if not storage.exists(path):
        raise VerificationError(f"{path} is missing: {PUT_BACK}")
    try:
        tokenizer = load_tokenizer(path)
    except InputError as error:
        raise VerificationError(f"{error}: {PUT_BACK}") from error
    if storage.digest(path).sha256 != manifest.tokenizer.sha256:
        raise VerificationError(f"{path} is not the tokenizer that the manifest names: {PUT_BACK}")
    if tokenizer.max_id + 1 != manifest.tokenizer.vocab_size:
        raise VerificationError(
            f"the manifest says vocab_size {manifest.tokenizer.vocab_size}, the tokenizer has "
            f"{tokenizer.max_id + 1}"
        )
    job = EncodeJob.of(manifest, root)
    try:
        job.layout(tokenizer)
    except ConfigError as error:
        raise VerificationError(f"the manifest contradicts itself: {error}") from error
    files = _matched(manifest, _files(root, manifest, inputs)) if inputs else None
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
        for number, (part, split) in enumerate(
            zip(manifest.parts, _splits(manifest, files), strict=True)
        )
    )
    for letters in dead.values():
        raise VerificationError(f"the manifest names {letters.file}, which is of no part")
    return VerifyingEncoded(
        job=VerifyEncodedJob(encode=job, compare=inputs is not None),
        manifest=fingerprint(manifest.to_json()),
        parts=parts,
        stated=StatedParts(
            directory=root,
            numbers=_numbers(manifest),
            error=_wrong_total(manifest),
            duplicates=manifest.duplicate_ids,
        ),
        tokenizer=tokenizer,
    )


def _files(
    directory: str, manifest: EncodedManifest, inputs: InputSettings
) -> tuple[InputFile, ...]:
    """The files that the manifest must be of, as the job called them."""
    if BASE not in read_plan(directory):
        return find_inputs(inputs).files
    aside = {one.name for one in manifest.set_aside}
    found = find_inputs(inputs, below=base_of(directory)).files
    return tuple(file for file in found if file.name not in aside)


def _numbers(manifest: EncodedManifest) -> dict[str, int]:
    totals = manifest.totals
    return {
        "parts": len(manifest.parts),
        "documents": totals.documents,
        "bytes": totals.text_bytes,
        "tokens": totals.tokens,
        "unknown_tokens": totals.unknown,
        "failures": totals.failures,
        **manifest.formats,
    }


def _wrong_total(manifest: EncodedManifest) -> VerificationError | None:
    """What is wrong with the totals of a manifest: they are the sums over its parts."""
    stated, found = manifest.totals, Totals.of(manifest.parts, manifest.dead_letters)
    for name in (field.name for field in fields(Totals)):
        if getattr(stated, name) != getattr(found, name):
            return VerificationError(
                f"the manifest's total of {name} is {getattr(stated, name)}, its parts add up to "
                f"{getattr(found, name)}"
            )
    return None


def check_part(
    check: PartCheck, job: VerifyEncodedJob, tokenizer: Tokenizer, failures: Failures
) -> Finding:
    """Check the files of a part against the manifest and each other, and its rows.

    Args:
        check: the part.
        job: what it is a part of.
        tokenizer: that made its ids.
        failures: where the job ends.

    Raises:
        StoppedError: nobody needs the result any more.
    """
    error = None
    try:
        _check_part(check, job, tokenizer, failures)
    except (VerificationError, InputError) as caught:
        error = caught
    return Finding(number=check.number, error=error)


def conclude_encoded(results: Iterable[Finding | StatedParts]) -> Mapping[str, int]:
    """What a corpus holds, where all of its parts were checked and are right, and so are the sums.

    Raises:
        VerificationError, InputError: of the first part that is wrong; it says how many are.
        JobError: the runner lost some.
    """
    found = list(results)
    (stated,) = (one for one in found if isinstance(one, StatedParts))
    number = stated.numbers["parts"]
    raise_first([one for one in found if isinstance(one, Finding)], number, "parts")
    if stated.error is not None:
        raise stated.error
    if stated.duplicates is not None:
        again = duplicate_ids(stated.directory, [part_file(i, number) for i in range(number)])
        if again != stated.duplicates:
            raise VerificationError(
                f"{stated.directory}: the manifest says {stated.duplicates.documents} duplicate "
                f"ids, the parts have {again.documents}"
            )
    return stated.numbers


def _check_part(
    check: PartCheck, job: VerifyEncodedJob, tokenizer: Tokenizer, failures: Failures
) -> None:
    part, path = check.part, join(job.directory, check.part.file)
    if part.fingerprint != job.encode.fingerprint(check.split):
        raise VerificationError(
            f"{path}: it was made from other inputs or with other settings than the manifest says"
        )
    if check.dead_letters is not None:
        letters = check.dead_letters
        check_file(join(job.directory, letters.file), letters.bytes, letters.sha256)
    try:
        with checked_file(path, part.bytes, part.sha256) as source:
            file = open_part(source)
            rows = StoredRows(file, path=path, part=part, job=job.encode, tokenizer=tokenizer)
            size = 0
            with SlotWriter(job.encode.reading.counters_path, check.number) as slot:
                if job.compare:
                    _compare(check, job.encode, rows, slot=slot, stopped=failures.stopped)
                    return
                while (table := rows.rest()) is not None:
                    if failures.stopped():
                        raise StoppedError
                    size += table.nbytes
                    slot.update(documents=rows.taken, bytes=min(size, part.bytes))
                slot.update(documents=rows.taken, bytes=part.bytes)
    except (pa.ArrowException, OSError, ValueError) as error:
        if isinstance(error, (VerificationError, InputError)):
            raise
        raise VerificationError(f"{path}: {' '.join(str(error).split())}") from error


def _compare(
    check: PartCheck,
    job: EncodeJob,
    rows: StoredRows,
    *,
    slot: SlotWriter,
    stopped: Callable[[], bool],
) -> None:
    """Make a part again, and compare it with the one that is there."""
    made = make(
        check.split,
        job,
        rows.tokenizer,
        stopped,
        add=rows.compare,
        observe=partial(
            check_decoded, tokenizer=rows.tokenizer, settings=job.rows, where=rows.path
        ),
        slot=slot,
    )
    if (more := rows.rest()) is not None:
        raise VerificationError(
            f"{rows.path}, row {rows.taken - len(more)}: document {more[ID][0].as_py()!r} is not "
            "in the input"
        )
    for name, found in vars(made.sums).items():
        if found != getattr(check.part, name):
            raise VerificationError(
                f"{rows.path}: its input gives {name} {found}, the manifest says "
                f"{getattr(check.part, name)}"
            )
    stated = check.dead_letters.records if check.dead_letters else 0
    if made.bad_records != stated:
        raise VerificationError(
            f"{rows.path}: its input has {made.bad_records} bad records, the manifest says {stated}"
        )


class StoredRows:
    """The rows of a part, checked as they are read, and taken in any portions.

    Args:
        file: the part.
        path: where it is, for messages.
        part: what the manifest says of it.
        job: that made it.
        tokenizer: of the job.

    Attributes:
        taken: rows that were taken so far.
    """

    def __init__(
        self, file: pq.ParquetFile, *, path: str, part: Part, job: EncodeJob, tokenizer: Tokenizer
    ) -> None:
        self.path = path
        self.tokenizer = tokenizer
        self._part = part
        self._settings = job.rows
        self._vocab_size = job.vocab_size
        self._layout = job.layout(tokenizer)
        self._tables = self._checked(read_rows(file, self._layout))
        self._left: pa.Table | None = None
        self.taken = 0

    def rest(self) -> pa.Table | None:
        """What is left of the row group at hand, or the next one; None at the end.

        Raises:
            VerificationError, ValueError: the rows of the part cannot be rows.
        """
        table = self._left if self._left is not None and len(self._left) else None
        self._left = None
        table = table if table is not None else next(self._tables, None)
        self.taken += len(table) if table is not None else 0
        return table

    def compare(self, made: pa.RecordBatch) -> None:
        """Take as many rows as were made, which they must be.

        Raises:
            VerificationError: there is a difference; the message names row and document.
            ValueError: the rows of the part cannot be rows.
        """
        while len(made):
            if (table := self.rest()) is None:
                raise VerificationError(
                    f"{self.path} ends after row {self.taken}: document "
                    f"{made.column(ID)[0].as_py()!r} of the input has no row"
                )
            some = min(len(table), len(made))
            self._left = table.slice(some)
            self.taken -= len(self._left)
            self._compare(table.slice(0, some), made.slice(0, some))
            made = made.slice(some)

    def _compare(self, stored: pa.Table, made: pa.RecordBatch) -> None:
        differences = [  # the key last, which follows from another
            (at, name == KEY, column, name)
            for column, name in enumerate(made.schema.names)
            for at in [first_difference(stored[name].combine_chunks(), made.column(name))]
            if at is not None
        ]
        if not differences:
            return
        at, _, _, name = min(differences)
        found, expected = stored[name][at].as_py(), made.column(name)[at].as_py()
        row = self.taken - len(stored) + at
        raise VerificationError(
            f"{self.path}, row {row}, document {made.column(ID)[at].as_py()!r}: "
            f"{self._difference(name, found, expected)}"
        )

    def _difference(self, name: str, stored: object, made: object) -> str:
        if name == ID:
            return f"the row is of document {stored!r}"
        if name != INPUT_IDS:
            return f"{name} is {stored!r:.200}, its input says {made!r:.200}"
        try:
            decode = self.tokenizer.decode_bytes
            same = decode(stored) == decode(made)  # type: ignore[arg-type]  # lists of ids
        except BpeError:
            same = False
        if same or not keeps_texts(self.tokenizer, self._settings):
            return "encoding its text gives other ids"
        return "its ids do not decode to its text"

    def _checked(self, tables: Iterator[pa.Table]) -> Iterator[pa.Table]:
        sums, row, unknown = Sums(), 0, unknown_id(self.tokenizer)
        for table in tables:
            batch = table.combine_chunks().to_batches()[0]
            input_ids = batch.column(INPUT_IDS)
            if (pc.max(input_ids.flatten()).as_py() or 0) >= self._vocab_size:
                raise self._no_such_id(table, row)
            lengths = pc.list_value_length(input_ids).cast(pa.uint32())
            if (at := first_difference(batch.column(NUM_TOKENS), lengths)) is not None:
                raise VerificationError(
                    f"{self.path}, row {row + at}: {NUM_TOKENS} is not the length of {INPUT_IDS}"
                )
            without_ends(input_ids, prepend=self._layout.prepend, append=self._layout.append)
            sums += Sums.of(batch, text_bytes=0, unknown=unknown)
            row += len(table)
            yield table
        for name, found in vars(replace(sums, text_bytes=self._part.text_bytes)).items():
            if found != getattr(self._part, name):
                raise VerificationError(
                    f"{self.path} holds {found} {name}, the manifest says "
                    f"{getattr(self._part, name)}"
                )

    def _no_such_id(self, table: pa.Table, first: int) -> VerificationError:
        row, wrong = next(
            (row, max(ids))
            for row, ids in enumerate(table[INPUT_IDS].to_pylist())
            if ids and max(ids) >= self._vocab_size
        )
        return VerificationError(
            f"{self.path}, row {first + row}, document {table[ID][row].as_py()!r}: id {wrong} does "
            f"not exist, the vocabulary has {self._vocab_size}"
        )


def keeps_texts(tokenizer: Tokenizer, settings: RowSettings) -> bool:
    """Whether all documents decode to their texts: no allowed special token drops whitespace."""
    dropping = {token for token, flags in tokenizer.token_flags.items() if flags.drop_whitespace}
    if "all" not in settings.allow_special:
        dropping.intersection_update(settings.allow_special)
    return tokenizer.lossless and not dropping


def check_decoded(
    encoded: EncodedBlock, *, tokenizer: Tokenizer, settings: RowSettings, where: str
) -> None:
    """See that the ids of documents decode to their texts, where nothing of these is dropped.

    Args:
        encoded: the documents.
        tokenizer: that encoded them.
        settings: of the rows.
        where: the part that they are of, for the message.

    Raises:
        VerificationError: they do not.
    """
    if not keeps_texts(tokenizer, settings):
        return
    decoded = tokenizer.decode_arrow(encoded.plain)
    at = first_difference(decoded, encoded.texts.cast(pa.large_binary()))
    if at is not None:
        name = encoded.rows.column(ID)[at].as_py()
        raise VerificationError(f"{where}: document {name!r}: its ids do not decode to it")


def first_difference(found: pa.Array, expected: pa.Array) -> int | None:
    """The first row in which two arrays of one type and length differ; None where none does."""
    begin, end = 0, len(found)
    while not found[begin:].equals(expected[begin:]):
        last = end
        while last - begin > 1:
            middle = (begin + last) // 2
            if found[begin:middle].equals(expected[begin:middle]):
                begin = middle
            else:
                last = middle
        if repr(found[begin].as_py()) != repr(expected[begin].as_py()):
            return begin
        begin += 1  # a NaN in both: Arrow calls them different
    return None


def _splits(manifest: EncodedManifest, files: Sequence[InputFile] | None) -> tuple[Split, ...]:
    """The splits of the parts, over ``files``, which may lie elsewhere by now."""
    index = -1
    splits = []
    for part in manifest.parts:
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
                    source=source.source,
                )
            )
        name = parse_part(part.file)
        if name is None:  # `read_encoded` has refused it
            raise VerificationError(f"the manifest names a part {part.file!r}")
        splits.append(
            Split(
                part=name.part,
                parts=name.parts,
                pieces=tuple(pieces),
                generation=name.generation,
            )
        )
        if splits[-1].source != part.source:
            raise VerificationError(
                f"the manifest says that {part.file} is of the source {part.source!r}, and its "
                f"inputs of {splits[-1].source!r}"
            )
    if index != len(manifest.inputs) - 1:
        raise VerificationError(
            f"the manifest names {len(manifest.inputs)} inputs, its parts are of {index + 1}"
        )
    return tuple(splits)


def _matched(manifest: EncodedManifest, files: Sequence[InputFile]) -> tuple[InputFile, ...]:
    """The files of the manifest, in its order and with its sources.

    Raises:
        VerificationError: the files given are others, by name, size or source.
    """
    given: dict[str, list[InputFile]] = {}
    for file in files:
        given.setdefault(file.name, []).append(file)
    found = []
    for stated in manifest.inputs:
        if not given.get(stated.name):
            raise VerificationError(
                f"input {stated.name!r} of the manifest is not among the files given: give the "
                "same `input` patterns as for bpe encode"
            )
        file = given[stated.name].pop(0)
        if file.source not in ("", stated.source):
            raise VerificationError(
                f"{file.path} was given as of the source {file.source}, and the manifest says "
                f"{stated.source or 'that it is of none'}: give the same `input` NAME=PATTERN as "
                "for bpe encode"
            )
        if file.size != stated.size:
            raise VerificationError(
                f"{file.path} has {file.size} bytes, the manifest says {stated.size}: the input "
                "was changed"
            )
        found.append(replace(file, source=stated.source))
    if more := sorted(name for name, left in given.items() if left):
        raise VerificationError(f"input {more[0]!r} is not among the inputs of the manifest")
    return tuple(found)
