"""Is an encoded corpus what its manifest says, and what its input says?

Every file is read in full: its size, SHA-256 and rows against the manifest. Given the inputs, each
part is made again and compared instead of written. Since that shares all of making, an independent
check is made too: ids must decode to the text.
"""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from functools import partial
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from bpe._inputs_file import inputs_file_names
from pipelines.corpus.splits import FileRange, Split
from pipelines.elements import OncePerProcess
from pipelines.encode.duplicates import duplicate_ids
from pipelines.encode.manifest import Totals, read_encoded
from pipelines.encode.parts import open_part
from pipelines.encode.rows import ID
from pipelines.encode.steps import EncodeJob, make, tokenizer_of
from pipelines.errors import ConfigError, InputError, StoppedError, VerificationError
from pipelines.output.check_files import check_file, check_names, checked_file
from pipelines.output.names import (
    RECORDS_FILE,
    parse_part,
    part_file,
)
from pipelines.planned import anywhere
from pipelines.storage import join
from pipelines.tokenizer_files import stored_tokenizer
from pipelines.verify.checks import Check
from pipelines.verify.inputs import Stated, match_inputs
from pipelines.verify.stored_rows import StoredRows, check_decoded, keeps_texts

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from bpe import Tokenizer
    from pipelines.encode.manifest import EncodedManifest, Part
    from pipelines.progress import SlotWriter
    from pipelines.settings import InputSettings
    from pipelines.stage.record import Record
    from pipelines.totals import DuplicateIds
    from pipelines.verify.checks import Verification


@dataclass(frozen=True, kw_only=True)
class CheckParts(Check):
    """Each unit is a part, which is read in full, and made again where the inputs are given.

    Attributes:
        job: that made the parts.
        inputs: to make the parts again; None: they are checked by themselves.
        duplicates: what the manifest says of documents of one id; None where nobody looked.
        tokenizers: one a process.
    """

    job: EncodeJob
    inputs: InputSettings | None
    duplicates: DuplicateIds | None
    tokenizers: OncePerProcess = field(default_factory=OncePerProcess)

    def pieces(self) -> Iterator[tuple[tuple[Part, Split], int]]:
        """The parts of the manifest, each with its split."""
        manifest = read_encoded(self.output)
        paths = paths_of(self.output, manifest, self.inputs)
        for part, split in zip(manifest.parts, splits_of(manifest, paths), strict=True):
            yield (part, split), part.bytes if paths is None else split.size

    def check(
        self, piece: tuple[Part, Split], /, *, slot: SlotWriter, stopped: Callable[[], bool]
    ) -> dict[str, Any]:
        """Check the files of a part against the manifest and each other, and its rows."""
        part, split = piece
        letters = part.dead_letters
        path = join(self.output, part.file)
        if part.fingerprint != self.job.fingerprint(split):
            raise VerificationError(
                f"{path}: it was made from other inputs or with other settings than the manifest "
                "says"
            )
        if letters is not None:
            check_file(join(self.output, letters.file), letters.bytes, letters.sha256)
        tokenizer = self.tokenizers.get(self.job.tokenizer.sha256, lambda: tokenizer_of(self.job))
        try:
            with checked_file(path, part.bytes, part.sha256) as source:
                rows = StoredRows(
                    open_part(source), path=path, part=part, job=self.job, tokenizer=tokenizer
                )
                if self.inputs is not None:
                    self._compare(part, split, rows, tokenizer, slot=slot, stopped=stopped)
                for _ in rows.left():
                    if stopped():
                        raise StoppedError
                    size = part.bytes * rows.taken // max(part.documents, 1)
                    slot.update(documents=rows.taken, bytes=min(size, part.bytes))
        except (pa.ArrowException, OSError, ValueError) as error:
            if isinstance(error, InputError):
                raise
            raise VerificationError(f"{path}: {' '.join(str(error).split())}") from error
        return {"documents": part.documents}

    def _compare(
        self,
        part: Part,
        split: Split,
        rows: StoredRows,
        tokenizer: Tokenizer,
        *,
        slot: SlotWriter,
        stopped: Callable[[], bool],
    ) -> None:
        """Make a part again, and compare it with the one that is there."""
        check = partial(check_decoded, tokenizer=tokenizer, settings=self.job.rows, where=rows.path)
        made = make(
            *(split, self.job, tokenizer, stopped),
            add=rows.compare,
            observe=check,
            slot=slot,
        )
        for table in rows.left():
            raise VerificationError(
                f"{rows.path}, row {rows.taken - len(table)}: document "
                f"{table[ID][0].as_py()!r} is not in the input"
            )
        stated = {
            **{name: getattr(part, name) for name in vars(made.sums)},
            "bad records": part.dead_letters.records if part.dead_letters else 0,
        }
        for name, found in {**vars(made.sums), "bad records": made.bad_records}.items():
            if found != stated[name]:
                raise VerificationError(
                    f"{rows.path}: its input gives {name} {found}, the manifest says {stated[name]}"
                )

    def fold(self, records: Sequence[Record]) -> None:
        """Raise the first error; compare documents of one id.

        Raises:
            VerificationError: a part is wrong, or the number of duplicate ids.
        """
        super().fold(records)
        if self.duplicates is None:
            return
        files = [part_file(number, len(records)) for number in range(len(records))]
        again = duplicate_ids(self.output, files)
        if again != self.duplicates:
            raise VerificationError(
                f"{self.output}: the manifest says {self.duplicates.documents} duplicate ids, the "
                f"parts have {again.documents}"
            )


def verify_encoded(job: Verification, tokenizer: Tokenizer | None) -> dict[str, Any]:
    """Check an encoded corpus against its manifest and, where they are given, its inputs.

    Args:
        job: the output to verify; its manifest says how inputs are read.
        tokenizer: that it must have been encoded with; None: any.

    Returns:
        What it holds, for `VerifySummary`.

    Raises:
        VerificationError: something is not as it must be.
        JobError: it cannot be checked.
    """
    root = job.directory
    manifest = read_encoded(root)
    own = check_encoded(root, manifest)
    paths = paths_of(root, manifest, job.inputs)
    splits = splits_of(manifest, paths)
    check = CheckParts(
        output=root,
        job=EncodeJob.of(manifest, root),
        inputs=None if job.inputs is None else anywhere(job.inputs),
        duplicates=manifest.duplicate_ids,
        reads=paths is None,
    )
    totals = manifest.totals
    size = totals.bytes if paths is None else sum(split.size for split in splits)
    job.run(check, reads=paths or (), pieces=len(splits), size=size)
    _check_totals(manifest)
    if not manifest.generation:
        job.refuse_another(manifest, read_encoded(root))
    if tokenizer is not None and tokenizer.sha256 != manifest.tokenizer.sha256:
        raise VerificationError(
            f"{root} was encoded with another tokenizer than the one in its folder: encode it again"
        )
    return {
        "parts": len(splits),
        "documents": totals.documents,
        "bytes": totals.text_bytes,
        "tokens": totals.tokens,
        "unknown_tokens": totals.unknown,
        "failures": totals.failures,
        "formats": manifest.formats,
        "lossless": keeps_texts(own, manifest.rows),
    }


def paths_of(
    root: str, manifest: EncodedManifest, inputs: InputSettings | None
) -> list[str] | None:
    """Return the present paths of a manifest's inputs; None if they are not read.

    Raises:
        VerificationError: those given are others.
        InputError: they cannot be listed.
    """
    if inputs is None:
        return None
    stated = (Stated(one.name, one.size, one.source) for one in manifest.inputs)
    files = match_inputs(root, inputs, stated, set_aside=manifest.set_aside)
    return [file.path for file in files]


def check_encoded(root: str, manifest: EncodedManifest) -> Tokenizer:
    """Check the names and the tokenizer of an encoded corpus; return the tokenizer.

    Raises:
        VerificationError: something is not as it must be.
    """
    letters = (letters.file for letters in manifest.dead_letters)
    named = {*letters, *(part.file for part in manifest.parts), *inputs_file_names(manifest.inputs)}
    check_names(root, "encoded", named=named | {RECORDS_FILE}, appended=manifest.generation > 0)
    try:
        tokenizer = stored_tokenizer(root, manifest.tokenizer.sha256)
        EncodeJob.of(manifest, root).layout(tokenizer)
    except InputError as error:
        raise VerificationError(str(error)) from error
    except ConfigError as error:
        raise VerificationError(f"the manifest contradicts itself: {error}") from error
    if tokenizer.max_id + 1 != manifest.tokenizer.vocab_size:
        raise VerificationError(
            f"the manifest says vocab_size {manifest.tokenizer.vocab_size}, the tokenizer has "
            f"{tokenizer.max_id + 1}"
        )
    return tokenizer


def _check_totals(manifest: EncodedManifest) -> None:
    stated, found = manifest.totals, Totals.of_parts(manifest.parts)
    for name in (one.name for one in fields(Totals)):
        if getattr(stated, name) != getattr(found, name):
            raise VerificationError(
                f"the manifest's total of {name} is {getattr(stated, name)}, its parts add up to "
                f"{getattr(found, name)}"
            )


def splits_of(manifest: EncodedManifest, paths: Sequence[str] | None) -> list[Split]:
    """The splits of the parts of a manifest.

    Args:
        manifest: of the corpus.
        paths: of its inputs by now; None if they are not read.

    Raises:
        VerificationError: parts and inputs of the manifest do not go together.
    """
    index = -1
    splits = []
    for part in manifest.parts:
        pieces = []
        for piece in part.inputs:
            index += piece.start == 0  # another file begins; not by name, two may look the same
            source = manifest.inputs[index] if 0 <= index < len(manifest.inputs) else None
            if source is None or source.name != piece.name:
                raise VerificationError(
                    f"the manifest says that {part.file} is of {piece.name!r}, which is not its "
                    "place among the inputs"
                )
            pieces.append(
                FileRange(
                    path=paths[index] if paths is not None else "",
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
        split = Split(
            part=name.part, parts=name.parts, pieces=tuple(pieces), generation=name.generation
        )
        if split.source != part.source:
            raise VerificationError(
                f"the manifest says that {part.file} is of the source {part.source!r}, and its "
                f"inputs of {split.source!r}"
            )
        splits.append(split)
    if index != len(manifest.inputs) - 1:
        raise VerificationError(
            f"the manifest names {len(manifest.inputs)} inputs, its parts are of {index + 1}"
        )
    return splits
