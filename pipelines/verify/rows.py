"""The rows of one part: whether they can be what they claim, and what their input gives."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from bpe.errors import BpeError
from pipelines.corpus.documents import read_split
from pipelines.corpus.reading import text_bytes
from pipelines.encode.encoder import SplitEncoder
from pipelines.encode.joining import joiner
from pipelines.encode.parts import count_id, read_contents, read_rows
from pipelines.encode.rows import (
    CHUNK_INDEX,
    DOCUMENTS,
    ID,
    INPUT_IDS,
    KEY,
    NUM_TOKENS,
    carried_rows,
    columns_of,
    row_maker,
    without_padding,
)
from pipelines.errors import StoppedError, VerificationError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    import pyarrow.parquet as pq

    from bpe import Tokenizer
    from pipelines.corpus.documents import ReadOptions
    from pipelines.corpus.mix import Mix
    from pipelines.corpus.splits import Split
    from pipelines.encode.encoder import EncodedBlock
    from pipelines.encode.manifest import Part
    from pipelines.encode.rows import Documents, RowLayout
    from pipelines.progress import SlotWriter
    from pipelines.settings import RowSettings
    from pipelines.verify.mix import MixTally


class PartRows:
    """The rows of a part, checked as they are read, and taken in any portions.

    Args:
        file: the part.
        path: where it is, for messages.
        part: what the manifest says of it.
        layout: of the rows.
        vocab_size: one more than the greatest id there may be.
        unknown: the id of the unknown token, or None.
        carried: whether the part has what is left of the others: its documents begin in these.

    Attributes:
        taken: rows that were taken so far.
    """

    def __init__(
        self,
        file: pq.ParquetFile,
        *,
        path: str,
        part: Part,
        layout: RowLayout,
        vocab_size: int,
        unknown: int | None,
        carried: bool = False,
    ) -> None:
        self.path = path
        self._layout = layout
        self._part = part
        self._vocab_size = vocab_size
        self._unknown = unknown
        self._joiner = None if carried else joiner(layout, cut=bool(part.dropped.cut))
        remainder = read_contents(file).carried(layout) if layout.settings.carries else None
        self._tables = self._checked(read_rows(file, layout, own_rows_alone=True), remainder)
        self._left: pa.Table | None = None
        self.taken = 0

    @property
    def documents(self) -> int:
        """Documents whose last row was read."""
        return self._joiner.documents if self._joiner is not None else 0

    def take(self, rows: int) -> pa.Table:
        """The next ``rows`` rows, or as many as are left.

        Raises:
            VerificationError, ValueError: the rows of the part cannot be rows.
        """
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

    def _checked(
        self, tables: Iterator[pa.Table], remainder: pa.RecordBatch | None
    ) -> Iterator[pa.Table]:
        row = tokens = unknown = padding = 0
        for table in tables:
            input_ids = table[INPUT_IDS].combine_chunks()
            if (pc.max(input_ids.flatten()).as_py() or 0) >= self._vocab_size:
                raise self._no_such_id(table, row)
            if self._joiner is not None:
                self._joiner.add(table)
            self._check_added(table, row)
            values, _, filling = without_padding(input_ids, table[NUM_TOKENS].combine_chunks())
            row += len(table)
            tokens += len(values)
            unknown += count_id(values, self._unknown)
            padding += len(filling)
            yield table
        if remainder is not None:
            table = pa.Table.from_batches([remainder])
            if self._joiner is not None:
                self._joiner.add(table)
            self._check_added(table, row)
            yield table
        if self._joiner is not None:
            self._joiner.finish()
        part = self._part
        for name, found, stated in (
            ("tokens", tokens, part.tokens),
            ("unknown tokens", unknown, part.unknown),
            ("ids of padding", padding, part.padding),
            ("documents", self.documents, part.documents - part.dropped.documents),
        ):
            if found != stated:
                raise VerificationError(
                    f"{self.path} holds {found} {name}, the manifest says {stated}"
                )

    def _check_added(self, table: pa.Table, row: int) -> None:
        """Columns that follow from others do."""
        if not (names := self._layout.settings.add_column):
            return
        columns = {name: table[name].combine_chunks() for name in (DOCUMENTS, INPUT_IDS, *names)}
        sizes = np.diff(columns[INPUT_IDS].offsets.to_numpy().astype(np.int64))
        for name, expected in columns_of(columns[DOCUMENTS], sizes, names).items():
            if (at := first_difference(columns[name], expected)) is not None:
                raise VerificationError(
                    f"{self.path}, row {row + at}, {self.described(table, at)}: its {name} is not "
                    f"what its {DOCUMENTS} say"
                )

    def _no_such_id(self, table: pa.Table, first: int) -> VerificationError:
        most = self._vocab_size
        row, wrong = next(
            (row, max(ids))
            for row, ids in enumerate(table[INPUT_IDS].to_pylist())
            if ids and max(ids) >= most
        )
        return VerificationError(
            f"{self.path}, row {first + row}, {self.described(table, row)}: id {wrong} does not "
            f"exist, the vocabulary has {most}"
        )

    def described(self, rows: pa.Table | pa.RecordBatch, row: int) -> str:
        """Which documents a row is of, in words."""
        own = self._layout.own
        if DOCUMENTS in own:
            ids = [piece[ID] for piece in rows.column(DOCUMENTS)[row].as_py()]
            if len(ids) > 1:
                return f"documents {ids[0]!r} to {ids[-1]!r}"
            return f"document {ids[0]!r}" if ids else "no document"
        name = f"document {rows.column(ID)[row].as_py()!r}"
        if CHUNK_INDEX in own:
            return f"{name}, chunk {rows.column(CHUNK_INDEX)[row].as_py()}"
        return name


@dataclass(kw_only=True)
class DocumentsAgain:
    """Reads the documents of a part again, and encodes them.

    Attributes:
        split: that the part was made of.
        reading: how its records become documents.
        layout: of the rows.
        tokenizer: that encodes them.
        path: of the part, for messages.
        mix: which documents the corpus takes; None for all.
        failures: bad records so far.
        tally: adds up what the mix takes; None where all is taken, or another part adds it up.
    """

    split: Split
    reading: ReadOptions
    layout: RowLayout
    tokenizer: Tokenizer
    path: str
    mix: Mix | None = None
    failures: int = 0
    tally: MixTally | None = None

    def run(
        self, slot: SlotWriter, *, stopped: Callable[[], bool]
    ) -> Iterator[tuple[Documents, int]]:
        """The documents, with the bytes of their texts.

        Args:
            slot: told how far it is.
            stopped: asked between blocks, whether nobody needs the result any more.

        Raises:
            VerificationError: the ids of a document do not decode to it.
            InputError: an input cannot be read.
            StoppedError: nobody needs the result any more.
        """
        encoder = SplitEncoder(self.tokenizer, self.split, layout=self.layout, mix=self.mix)
        documents = size = 0
        for block in read_split(self.split, self.reading):
            if stopped():
                raise StoppedError
            bad = list(block.bad)
            encoded = encoder.encode(block, bad.append)
            self.failures += len(bad)
            half, texts = encoded.half(held_out=self.split.held_out)
            check_decoded(encoded, self.tokenizer, self.layout.settings, self.path)
            if self.tally is not None:
                self.tally.add(encoded)
            yield half, text_bytes(texts)
            documents += len(texts)
            size += block.input_bytes
            slot.update(documents=documents, bytes=size)


def keeps_texts(tokenizer: Tokenizer, settings: RowSettings) -> bool:
    """Whether all documents decode to their texts: no allowed special token drops whitespace."""
    dropping = {token for token, flags in tokenizer.token_flags.items() if flags.drop_whitespace}
    if "all" not in settings.allow_special:
        dropping.intersection_update(settings.allow_special)
    return tokenizer.lossless and not dropping


def check_decoded(
    encoded: EncodedBlock, tokenizer: Tokenizer, settings: RowSettings, where: str
) -> None:
    """See that the ids of documents decode to their texts, where nothing of these is dropped.

    Args:
        encoded: the documents.
        tokenizer: that encoded them.
        settings: of the rows.
        where: the part or the split that they are of, for the message.

    Raises:
        VerificationError: they do not.
    """
    if not keeps_texts(tokenizer, settings):
        return
    decoded = tokenizer.decode_arrow(encoded.plain)
    at = first_difference(decoded, encoded.texts.cast(pa.large_binary()))
    if at is not None:
        name = encoded.documents.ids[at].as_py()
        raise VerificationError(f"{where}: document {name!r}: its ids do not decode to it")


@dataclass(frozen=True, kw_only=True)
class PartComparison:
    """Compares the rows that documents give with those stored.

    Attributes:
        layout: of the rows.
        tokenizer: that encodes the documents.
    """

    layout: RowLayout
    tokenizer: Tokenizer

    def run(self, rows: PartRows, part: Part, documents: Iterable[tuple[Documents, int]]) -> None:
        """Compare all.

        Args:
            rows: of the part.
            part: what the manifest says of it.
            documents: of the part, in their order, with the bytes of their texts.

        Raises:
            VerificationError: there is a difference; the message names row and document.
        """
        maker = row_maker(self.layout)
        number = text = 0
        for some, size in documents:
            number += len(some.ids)
            text += size
            self._compare(rows, maker.add(some))
        self._compare(rows, maker.finish())
        if maker.remainder is not None:
            self._compare(rows, maker.remainder)
        if (more := rows.rest()) is not None:
            raise VerificationError(
                f"{rows.path}, row {rows.taken - len(more)}: {rows.described(more, 0)} is not in "
                "the input"
            )
        for name, found, stated in (
            ("documents", number, part.documents),
            ("text_bytes", text, part.text_bytes),
            ("dropped", maker.dropped, part.dropped),
            ("cut_documents", maker.cut, part.cut_documents),
        ):
            if found != stated:
                raise VerificationError(
                    f"{rows.path}: its input gives {name} {found}, the manifest says {stated}"
                )

    def run_carried(self, rows: PartRows, remainders: Iterable[pa.RecordBatch]) -> None:
        """Compare the part that has what is left of the others.

        Args:
            rows: of the part.
            remainders: of the others, in their order.

        Raises:
            VerificationError: there is a difference; the message names row and document.
        """
        for expected in carried_rows(self.layout, remainders):
            self._compare(rows, expected)
        if (more := rows.rest()) is not None:
            raise VerificationError(
                f"{rows.path}, row {rows.taken - len(more)}: {rows.described(more, 0)} is not left "
                "of the other parts"
            )

    def _compare(self, rows: PartRows, expected: pa.RecordBatch) -> None:
        if not len(expected):
            return
        first = rows.taken
        found = rows.take(len(expected))
        there = expected.slice(0, len(found))
        differences = [  # the key last, which follows from another
            (at, name == KEY, column, name)
            for column, name in enumerate(expected.schema.names if len(found) else ())
            for at in [first_difference(found[name].combine_chunks(), there.column(name))]
            if at is not None
        ]
        if differences:
            at, _, _, name = min(differences)
            stored, made = found[name][at].as_py(), expected.column(name)[at].as_py()
            raise VerificationError(
                f"{rows.path}, row {first + at}, {rows.described(expected, at)}: "
                f"{self._difference(name, stored, made)}"
            )
        if len(found) < len(expected):
            raise VerificationError(
                f"{rows.path} ends after row {rows.taken}: "
                f"{rows.described(expected, len(found))} of the input has no row"
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
        if same or not keeps_texts(self.tokenizer, self.layout.settings):
            return "encoding its text gives other ids"
        return "its ids do not decode to its text"


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
