"""Check an encoded corpus against its manifest, and against its input.

Every file is read in full and compared with its record: size and SHA-256. Given the inputs, each
part is made again and compared. Since that shares all of making, an independent check is made too:
ids must decode to the text.
"""

from __future__ import annotations

import tempfile
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from bpe._inputs_file import inputs_file_names
from pipelines import storage
from pipelines.corpus.splits import FileRange, Split
from pipelines.elements import OncePerProcess
from pipelines.encode.duplicates import duplicate_ids
from pipelines.encode.manifest import Part, read_encoded
from pipelines.encode.rows import ID, NOTHING
from pipelines.encode.steps import EncodeJob, encode_split, tokenizer_of
from pipelines.errors import InputError, VerificationError
from pipelines.output.names import RECORDS_FILE, parse_part
from pipelines.output.state import check_file, check_names
from pipelines.planned import anywhere
from pipelines.progress import many
from pipelines.storage import join
from pipelines.tokenizer_files import stored_tokenizer
from pipelines.verify.base import Check
from pipelines.verify.inputs import match_inputs
from pipelines.verify.made_again import first_difference, refuse_other

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from bpe import Tokenizer
    from pipelines.encode.manifest import EncodedManifest
    from pipelines.encode.steps import EncodedBlock
    from pipelines.progress import SlotWriter
    from pipelines.settings import InputSettings, RowSettings
    from pipelines.stage.record import Record
    from pipelines.verify.base import Verification


@dataclass(frozen=True, kw_only=True)
class CheckParts(Check):
    """The check of all parts; each unit is a part, which is made again if inputs are given.

    Attributes:
        job: the job that made the parts.
        inputs: the inputs to make the parts again; None: the parts are checked by themselves.
        tokenizers: the tokenizer of each process.
    """

    job: EncodeJob
    inputs: InputSettings | None
    tokenizers: OncePerProcess = field(default_factory=OncePerProcess)

    def pieces(self) -> Iterator[tuple[tuple[Part, Split], int]]:
        """Yield the parts of the manifest, each with its split and the bytes to read."""
        manifest = read_encoded(self.output)
        paths = paths_of(self.output, manifest, self.inputs)
        index = -1
        for part in manifest.parts:
            pieces = []
            for piece in part.inputs:
                index += piece.start == 0  # another file begins; not by name, two may look the same
                path = "" if paths is None else paths[index]
                pieces.append(FileRange(**vars(piece), path=path, file_index=index))
            name = parse_part(part.file)
            if name is None:  # `read_encoded` has refused it
                raise VerificationError(f"the manifest names a part {part.file!r}")
            split = Split(**vars(name), pieces=tuple(pieces))
            yield (part, split), part.bytes if paths is None else split.size

    def check(
        self, piece: tuple[Part, Split], /, *, slot: SlotWriter, stopped: Callable[[], bool]
    ) -> dict[str, Any]:
        """Compare the files of a part with its record and, if inputs are given, with its input."""
        part, split = piece
        if part.fingerprint != self.job.fingerprint(split):
            raise VerificationError(
                f"{join(self.output, part.file)}: it was made from other inputs or with other "
                "settings than the manifest says"
            )
        check_file(join(self.output, part.file), part.bytes, part.sha256)
        if (letters := part.dead_letters) is not None:
            check_file(join(self.output, letters.file), letters.bytes, letters.sha256)
        if self.inputs is not None:
            self._compare(part, split, slot=slot, stopped=stopped)
        return {"documents": part.documents}

    def _compare(
        self, part: Part, split: Split, *, slot: SlotWriter, stopped: Callable[[], bool]
    ) -> None:
        """Make a part again, in a temporary directory, and compare it with the stored part."""
        path = join(self.output, part.file)
        tokenizer = self.tokenizers.get(self.job.tokenizer.sha256, lambda: tokenizer_of(self.job))
        check = partial(check_decoded, tokenizer=tokenizer, settings=self.job.rows, where=path)
        with tempfile.TemporaryDirectory(prefix="bpe-verify-") as folder:
            job = replace(self.job, directory=folder)
            made = Part.of_unit(
                encode_split(split, job, tokenizer, stopped, observe=check, slot=slot, again=True)
            )
            if (made.bytes, made.sha256) != (part.bytes, part.sha256):
                with storage.open_binary(join(folder, made.file)) as file:
                    refuse_other(path, file)
        for name in (*vars(NOTHING), "bad_records"):
            found, stated = getattr(made, name), getattr(part, name)
            if found != stated:
                raise VerificationError(
                    f"{path}: its input gives {name.replace('_', ' ')} {found}, the manifest says "
                    f"{stated}"
                )

    def fold(self, records: Sequence[Record]) -> None:
        """Raise the first error; count duplicate ids and compare them with the manifest.

        Raises:
            VerificationError: a part is wrong, or the duplicate ids differ.
        """
        super().fold(records)
        manifest = read_encoded(self.output)
        if (stated := manifest.duplicate_ids) is None:  # they were not counted
            return
        again = duplicate_ids(self.output, manifest.parts)
        if again != stated:
            raise VerificationError(
                f"{self.output}: the manifest says {stated.documents} duplicate ids, the parts "
                f"have {again.documents}"
            )


def verify_encoded(job: Verification, tokenizer: Tokenizer | None) -> dict[str, Any]:
    """Check an encoded corpus against its manifest and, where they are given, its inputs.

    Args:
        job: the output to verify; its manifest says how inputs are read.
        tokenizer: the tokenizer that must have encoded the corpus; None: any.

    Returns:
        Totals of the corpus, for `VerifySummary`.

    Raises:
        VerificationError: the corpus is wrong.
        JobError: the corpus cannot be checked.
    """
    root = job.directory
    manifest = read_encoded(root)
    own = check_encoded(root, manifest)
    encoding = EncodeJob.of(manifest, root)
    _check_totals(manifest, encoding.manifest(manifest.parts))
    paths = paths_of(root, manifest, job.inputs)
    check = CheckParts(
        output=root,
        job=encoding,
        inputs=None if job.inputs is None else anywhere(job.inputs),
        reads=paths is None,
    )
    size = (
        manifest.totals.bytes if paths is None else sum(source.size for source in manifest.inputs)
    )
    job.run(check, reads=paths or (), pieces=len(manifest.parts), size=size)
    if not manifest.generation:
        job.refuse_another(manifest, read_encoded(root))
    if tokenizer is not None and tokenizer.sha256 != manifest.tokenizer.sha256:
        raise VerificationError(
            f"{root} was encoded with another tokenizer than the one in its folder: encode it again"
        )
    return {**manifest.figures, "lossless": keeps_texts(own, manifest.rows)}


def paths_of(
    root: str, manifest: EncodedManifest, inputs: InputSettings | None
) -> list[str] | None:
    """Return the present paths of a manifest's inputs; None if no inputs are given.

    Raises:
        VerificationError: the inputs given are not those of the manifest.
        InputError: the inputs cannot be listed.
    """
    if inputs is None:
        return None
    stated = ((one.name, one.size, one.source) for one in manifest.inputs)
    files = match_inputs(root, inputs, stated, set_aside=manifest.set_aside)
    return [file.path for file in files]


def check_encoded(root: str, manifest: EncodedManifest) -> Tokenizer:
    """Check the file names and the tokenizer of an encoded corpus; return the tokenizer.

    Raises:
        VerificationError: a file name or the tokenizer is wrong.
    """
    letters = (letters.file for letters in manifest.dead_letters)
    named = {*letters, *(part.file for part in manifest.parts), *inputs_file_names(manifest.inputs)}
    check_names(root, "encoded", named=named | {RECORDS_FILE}, appended=manifest.generation > 0)
    try:
        return stored_tokenizer(root, manifest.tokenizer.sha256)
    except InputError as error:
        raise VerificationError(str(error)) from error


def _check_totals(stated: EncodedManifest, found: EncodedManifest) -> None:
    """Compare the totals and inputs of a manifest with those that its parts give."""
    for name, total in vars(found.totals).items():
        if (said := getattr(stated.totals, name)) != total:
            raise VerificationError(
                f"the manifest's total of {name} is {said}, its parts add up to {total}"
            )
    if stated.inputs != found.inputs:
        raise VerificationError(
            f"the manifest's list of {many(len(stated.inputs), 'input')} is not that of its parts, "
            f"which have {many(len(found.inputs), 'input')}"
        )


def keeps_texts(tokenizer: Tokenizer, settings: RowSettings) -> bool:
    """Return True if all documents decode to their texts, with all whitespace."""
    dropping = {token for token, flags in tokenizer.token_flags.items() if flags.drop_whitespace}
    if "all" not in settings.allow_special:
        dropping.intersection_update(settings.allow_special)
    return tokenizer.lossless and not dropping


def check_decoded(
    encoded: EncodedBlock, *, tokenizer: Tokenizer, settings: RowSettings, where: str
) -> None:
    """Check that the ids of documents decode to their texts, if `keeps_texts` is true.

    Args:
        encoded: the documents.
        tokenizer: the tokenizer that encoded the documents.
        settings: the settings of the rows.
        where: the path of the documents' part, for the message.

    Raises:
        VerificationError: the ids of a document do not decode to its text.
    """
    if not keeps_texts(tokenizer, settings):
        return
    decoded = tokenizer.decode_arrow(encoded.plain)
    at = first_difference(decoded, encoded.texts.cast(pa.large_binary()))
    if at is not None:
        name = encoded.rows.column(ID)[at].as_py()
        raise VerificationError(f"{where}: document {name!r}: its ids do not decode to it")
