"""Is an output what its manifest says, and what its input says?

Every file is read in full: its size and SHA-256 against the manifest, its contents against what
its own footer says. Given the inputs, every document is read again: it must have its row, the row
must decode to the bytes of the document, and encoding the document must give the row.
"""

from __future__ import annotations

import uuid
from collections import Counter
from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING

import pyarrow as pa

from bpe._inputs_file import beside
from pipelines import storage
from pipelines.corpus.inputs import find_inputs
from pipelines.corpus.places import watched_inputs
from pipelines.corpus.splits import FileRange, Split, plan_splits
from pipelines.encode.manifest import Totals
from pipelines.encode.parts import ShuffledSplit, open_part, read_contents
from pipelines.encode.shuffle import shuffle_split, shuffled_documents
from pipelines.encode.steps import EncodeJob, unknown_id, wrong_mix
from pipelines.encode.tokenizer_files import PUT_BACK, load_tokenizer
from pipelines.errors import (
    ConfigError,
    InputError,
    OutputError,
    StoppedError,
    VerificationError,
)
from pipelines.output.check_files import Finding, check_file, check_names, checked_file, raise_first
from pipelines.output.names import TOKENIZER, fingerprint, parse_part, training_twin
from pipelines.progress import SlotWriter
from pipelines.storage import join
from pipelines.verify.mix import MixSums, MixTally, check_mix
from pipelines.verify.rows import DocumentsAgain, PartComparison, PartRows, check_decoded

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from bpe import Tokenizer
    from bpe.counts.manifest import DeadLetters
    from pipelines.corpus.inputs import InputFile
    from pipelines.corpus.mix import Mix
    from pipelines.encode.encoder import EncodedBlock
    from pipelines.encode.manifest import EncodedManifest, Part
    from pipelines.encode.parts import Contents
    from pipelines.encode.rows import RowLayout
    from pipelines.failures import Failures
    from pipelines.settings import InputSettings


_STATED = (
    "documents",
    "rows",
    "tokens",
    "unknown",
    "text_bytes",
    "dropped",
    "padding",
    "cut_documents",
)


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

    @property
    def slots(self) -> str | None:
        """The file where parts tell their progress, unless the splits do."""
        return None if self.shuffles_again else self.encode.reading.counters_path

    @property
    def shuffles_again(self) -> bool:
        """Whether the inputs are encoded again to shuffle files of this verification."""
        return self.compare and self.encode.rows.shuffles

    def in_directory(self, directory: str) -> VerifyEncodedJob:
        """The same, whose shuffle files go to a directory; empty: that of the corpus."""
        return replace(self, encode=replace(self.encode, shuffle_directory=directory))

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
        numbers: what they hold, as `VerifySummary` and formats are named.
        error: what is wrong with these.
        mix: which documents a mix takes, where that is compared with the inputs; else None.
    """

    numbers: Mapping[str, int]
    error: VerificationError | None
    mix: Mix | None = None


@dataclass(frozen=True, kw_only=True)
class VerifyingEncoded:
    """A verification of an encoded corpus, planned.

    Attributes:
        job: for the workers.
        manifest: its fingerprint; empty where files are still encoded as they arrive.
        parts: to check.
        stated: what they are to add up to.
        tokenizer: of the corpus.
        splits: to encode again, where documents are shuffled; else a part is compared with its own.
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
        expected={part.file for part in manifest.parts} | beside(manifest.inputs),
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
    files = _files(root, manifest, inputs) if inputs else None
    if files is not None:
        files = _matched(manifest, files)
    again: tuple[Split, ...] = ()
    if manifest.rows.shuffles:
        splits = _shuffled_parts(manifest)
        if inputs is not None and files is not None:
            again = tuple(plan_splits(files, inputs.split_size))
        job = replace(job, splits=len(again), shuffle_key=uuid.uuid4().hex[:20])
    else:
        splits = _splits(manifest, files)
    dead = {letters.file: letters for letters in manifest.dead_letters}
    if len(dead) < len(manifest.dead_letters):
        raise VerificationError("the manifest names a file of dead letters twice")
    parts = tuple(
        PartCheck(
            number=number,
            part=part,
            split=split,
            # Those of a shuffled corpus are of splits that have no part of their own.
            dead_letters=None
            if manifest.rows.shuffles
            else dead.pop(split.dead_letters_file, None),
        )
        for number, (part, split) in enumerate(zip(manifest.parts, splits, strict=True))
    )
    for letters in dead.values():  # of a shuffled split, or of an input of a watch without a part
        check_file(join(root, letters.file), letters.bytes, letters.sha256)
    return VerifyingEncoded(
        job=VerifyEncodedJob(encode=job, compare=inputs is not None),
        manifest="" if manifest.watched else fingerprint(manifest.to_json()),
        parts=parts,
        stated=StatedParts(
            numbers=_numbers(manifest),
            error=_wrong_total(manifest),
            mix=None if inputs is None else manifest.mix,
        ),
        tokenizer=tokenizer,
        splits=again,
    )


def _shuffled_parts(manifest: EncodedManifest) -> tuple[Split, ...]:
    """The parts of a shuffled corpus, as splits of no file."""
    halves = (False, True) if manifest.rows.validation else (False,)
    number = len(manifest.parts) // len(halves)
    if any(part.inputs for part in manifest.parts):
        raise VerificationError(
            "the manifest says that parts are of ranges of inputs, and that they were shuffled"
        )
    return tuple(
        Split(part=part, parts=number, pieces=(), held_out=half)
        for half in halves
        for part in range(number)
    )


def _files(
    directory: str, manifest: EncodedManifest, inputs: InputSettings
) -> tuple[InputFile, ...]:
    """The files that the manifest must be of, as the job called them."""
    if manifest.failed is None:
        return find_inputs(inputs).files
    return watched_inputs(directory, inputs, manifest.failed)


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
    if error := wrong_mix(manifest):
        return VerificationError(f"the manifest contradicts itself: {error}")
    return None


def check_part(
    check: PartCheck, job: VerifyEncodedJob, tokenizer: Tokenizer, *, stopped: Callable[[], bool]
) -> Iterator[Finding | MixSums]:
    """Check the files of a part against the manifest and each other, and its rows.

    Of a mix, what it takes of the split comes too, where the inputs are compared.

    Args:
        check: the part.
        job: what it is a part of.
        tokenizer: that made its ids.
        stopped: asked between blocks, whether nobody needs the result any more.

    Raises:
        StoppedError: nobody needs the result any more.
    """
    error = None
    try:
        tally = _check_part(check, job, tokenizer, stopped=stopped)
        if tally is not None:
            yield tally.sums()
    except (VerificationError, InputError) as caught:
        error = caught
    if job.shuffles_again:
        number = job.encode.splits + check.number
        with SlotWriter(job.encode.reading.counters_path, number) as slot:
            slot.advance(1, 1)
    yield Finding(number=check.number, error=error)


def shuffle_again(
    split: Split, job: VerifyEncodedJob, tokenizer: Tokenizer, failures: Failures
) -> Iterator[ShuffledSplit | MixSums]:
    """Encode a split of a shuffled corpus again, to a shuffle file of its own.

    Of a mix, what it takes of the split comes too.

    Raises:
        VerificationError: the ids of a document do not decode to it.
        InputError, OutputError: a file cannot be read or written.
    """
    where = ", ".join(piece.path for piece in split.pieces[:1])
    tally = None if job.encode.mix is None else MixTally(job.encode.mix)

    def observe(encoded: EncodedBlock) -> None:
        check_decoded(encoded, tokenizer, job.encode.rows, where)
        if tally is not None:
            tally.add(encoded)

    try:
        yield shuffle_split(*(split, job.encode, tokenizer, failures), observe=observe)
    except OutputError as error:
        raise OutputError(
            f"{error} (a temporary file of this check: name another directory for these with `temp`"
            ")"
        ) from error
    if tally is not None:
        yield tally.sums()


def conclude_encoded(
    results: Iterable[Finding | StatedParts | ShuffledSplit | MixSums],
) -> Mapping[str, int]:
    """What a corpus holds, where all of its parts were checked and are right, and so are the sums.

    Raises:
        VerificationError, InputError: of the first part that is wrong; it says how many are.
        JobError: the runner lost some.
    """
    found = list(results)
    (stated,) = (one for one in found if isinstance(one, StatedParts))
    parts = [one for one in found if isinstance(one, Finding)]
    splits = [one for one in found if isinstance(one, ShuffledSplit)]
    raise_first(parts, stated.numbers["parts"], "parts")
    failures = sum(one.failures for one in splits)
    if splits and failures != stated.numbers["failures"]:
        raise VerificationError(
            f"the inputs have {failures} bad records, the manifest says "
            f"{stated.numbers['failures']}"
        )
    if stated.error is not None:
        raise stated.error
    if stated.mix is not None:
        check_mix(stated.mix, [one for one in found if isinstance(one, MixSums)])
    return stated.numbers


def _check_part(
    check: PartCheck, job: VerifyEncodedJob, tokenizer: Tokenizer, *, stopped: Callable[[], bool]
) -> MixTally | None:
    tally = None
    part, path = check.part, join(job.directory, check.part.file)
    if check.dead_letters is not None:
        letters = check.dead_letters
        check_file(join(job.directory, letters.file), letters.bytes, letters.sha256)
    try:
        with (
            checked_file(path, part.bytes, part.sha256) as source,
            SlotWriter(job.slots, check.number) as slot,
        ):
            file = open_part(source)
            contents = read_contents(file)
            for name in _STATED:
                if getattr(contents, name) != getattr(part, name):
                    raise VerificationError(
                        f"{path}: its footer says {name} {getattr(contents, name)}, the manifest "
                        f"{getattr(part, name)}"
                    )
            _check_origin(check, job, contents, path)
            layout = job.encode.layout(tokenizer)
            rows = PartRows(
                file,
                path=path,
                part=part,
                layout=layout,
                vocab_size=job.encode.vocab_size,
                unknown=unknown_id(tokenizer),
                carried=job.encode.is_carried(part.file),
            )
            comparison = PartComparison(layout=layout, tokenizer=tokenizer)
            if job.encode.is_carried(part.file):
                comparison.run_carried(rows, _remainders(check.split, job, layout))
                return None
            if job.compare:
                if job.encode.rows.shuffles:
                    comparison.run(
                        *(rows, part),
                        shuffled_documents(check.split, job.encode, layout, stopped=stopped),
                    )
                    return None
                if job.encode.mix is not None and not check.split.held_out:
                    tally = MixTally(job.encode.mix)
                again = DocumentsAgain(
                    split=check.split,
                    reading=job.encode.reading.options,
                    layout=layout,
                    tokenizer=tokenizer,
                    path=path,
                    mix=job.encode.mix,
                    tally=tally,
                )
                comparison.run(rows, part, again.run(slot, stopped=stopped))
                if not check.split.held_out:  # the other part of the split has named them
                    _check_failures(check, path, again.failures)
                return tally
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
    return None


def _remainders(last: Split, job: VerifyEncodedJob, layout: RowLayout) -> Iterator[pa.RecordBatch]:
    """What the parts of a half carry to the ``last`` one, in their order."""
    for number in range(job.encode.filled):
        path = join(job.directory, replace(last, part=number).file)
        with storage.open_binary(path) as source:
            row = read_contents(open_part(source)).carried(layout)
        if row is not None:
            yield row


def _check_origin(check: PartCheck, job: VerifyEncodedJob, contents: Contents, path: str) -> None:
    """What the manifest says of inputs and settings against what the part was made from."""
    if contents.fingerprint != job.encode.fingerprint(check.split):
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
    index = -1
    splits: dict[str, Split] = {}
    twins = {part.file: twin for part in manifest.parts if (twin := training_twin(part.file))}
    seen: Counter[str] = Counter()
    for number, part in enumerate(part for part in manifest.parts if part.file not in twins):
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
                    source=source.source,
                )
            )
        name = parse_part(part.file)
        if name is None:  # `read_encoded` has refused it
            raise VerificationError(f"the manifest names a part {part.file!r}")
        splits[part.file] = Split(
            part=seen[name.key] if manifest.watched else number,
            parts=name.parts,
            pieces=tuple(pieces),
            key=name.key,
        )
        seen[name.key] += 1
    if index != len(manifest.inputs) - 1:
        raise VerificationError(
            f"the manifest names {len(manifest.inputs)} inputs, its parts are of {index + 1}"
        )
    if len(twins) != (len(splits) if manifest.rows.validation else 0):
        raise VerificationError(
            f"the manifest names {len(splits)} parts for training, {len(twins)} for validation"
        )
    ranges = {part.file: part.inputs for part in manifest.parts}
    for file, twin in twins.items():
        if ranges[file] != ranges.get(twin):
            raise VerificationError(f"the manifest says that {file} and {twin} are of other inputs")
        splits[file] = replace(splits[twin], held_out=True)
    return tuple(splits[part.file] for part in manifest.parts)


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
