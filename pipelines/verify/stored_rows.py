"""The rows of a part of an encoded corpus: checked as they are read, compared with others."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from bpe.errors import BpeError
from pipelines.encode.parts import StoredBatches, first_difference, read_rows
from pipelines.encode.rows import ID, INPUT_IDS, KEY, NOTHING, NUM_TOKENS, Sums, without_ends
from pipelines.encode.tokens import unknown_id
from pipelines.errors import VerificationError

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pyarrow.parquet as pq

    from bpe import Tokenizer
    from pipelines.encode.manifest import Part
    from pipelines.encode.steps import EncodedBlock, EncodeJob
    from pipelines.settings import RowSettings


class StoredRows:
    """The rows of a part, taken in order.

    Args:
        file: the part.
        path: where it is, for messages.
        part: what the manifest says of it.
        job: that made it.
        tokenizer: of the job.
    """

    def __init__(
        self, file: pq.ParquetFile, *, path: str, part: Part, job: EncodeJob, tokenizer: Tokenizer
    ) -> None:
        self.path = path
        self._tokenizer = tokenizer
        self._part = part
        self._job = job
        self._rows = StoredBatches(self._checked(file))

    @property
    def taken(self) -> int:
        """Rows that were taken so far."""
        return self._rows.taken

    def left(self) -> Iterator[pa.Table]:
        """Take what was not compared, a row group or what is left of one at a time.

        Raises:
            VerificationError, ValueError: the rows of the part cannot be rows.
        """
        return iter(self._rows.take, None)

    def compare(self, made: pa.RecordBatch) -> None:
        """Take as many rows as were made, which they must be.

        Raises:
            VerificationError: there is a difference; the message names row and document.
            ValueError: the rows of the part cannot be rows.
        """
        for table, some in self._rows.beside(made):
            if table is None:
                raise VerificationError(
                    f"{self.path} ends after row {self.taken}: document "
                    f"{some.column(ID)[0].as_py()!r} of the input has no row"
                )
            self._compare(table, some)

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
            decode = self._tokenizer.decode_bytes
            same = decode(stored) == decode(made)  # type: ignore[arg-type]  # lists of ids
        except BpeError:
            same = False
        if same or not keeps_texts(self._tokenizer, self._job.rows):
            return "encoding its text gives other ids"
        return "its ids do not decode to its text"

    def _checked(self, file: pq.ParquetFile) -> Iterator[pa.Table]:
        layout = self._job.layout(self._tokenizer)
        sums, unknown = NOTHING, unknown_id(self._tokenizer)
        for table in read_rows(file, layout):
            batch, row = table.combine_chunks().to_batches()[0], sums.documents
            input_ids = batch.column(INPUT_IDS)
            if (pc.max(input_ids.flatten()).as_py() or 0) >= self._job.tokenizer.vocab_size:
                raise self._no_such_id(table, row)
            lengths = pc.list_value_length(input_ids).cast(pa.uint32())
            if (at := first_difference(batch.column(NUM_TOKENS), lengths)) is not None:
                raise VerificationError(
                    f"{self.path}, row {row + at}: {NUM_TOKENS} is not the length of {INPUT_IDS}"
                )
            without_ends(input_ids, prepend=layout.prepend, append=layout.append)
            sums += Sums.of(batch, text_bytes=0, unknown=unknown)
            yield table
        for name, found in vars(replace(sums, text_bytes=self._part.text_bytes)).items():
            if found != getattr(self._part, name):
                raise VerificationError(
                    f"{self.path} holds {found} {name}, the manifest says "
                    f"{getattr(self._part, name)}"
                )

    def _no_such_id(self, table: pa.Table, first: int) -> VerificationError:
        size = self._job.tokenizer.vocab_size
        greatest = [max(ids, default=0) for ids in table[INPUT_IDS].to_pylist()]
        row = next(row for row, id_ in enumerate(greatest) if id_ >= size)
        return VerificationError(
            f"{self.path}, row {first + row}, document {table[ID][row].as_py()!r}: id "
            f"{greatest[row]} does not exist, the vocabulary has {size}"
        )


def keeps_texts(tokenizer: Tokenizer, settings: RowSettings) -> bool:
    """True if all documents decode to their texts: no allowed special token drops whitespace."""
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
