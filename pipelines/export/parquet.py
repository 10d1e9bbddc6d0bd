"""``parquet``: the rows as they are, laid out as ``datasets.load_dataset`` takes them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from pipelines import storage
from pipelines.encode.parts import StoredBatches, first_difference, open_part
from pipelines.encode.rows import ID, NUM_TOKENS
from pipelines.errors import InputError, VerificationError
from pipelines.export.format import PartWriter
from pipelines.export.rows import DOCUMENTS
from pipelines.parquet_writer import RowWriter
from pipelines.storage import join

if TYPE_CHECKING:
    from collections.abc import Iterator

_PAGE_BYTES = 2 << 20


class ParquetPart(PartWriter):
    """A file a part."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._sink = self.one_file("parquet")
        encoding = self.layout.settings.parquet_encoding
        self._writer = RowWriter(
            self._sink, self.layout.schema, encoding=encoding, page_bytes=_PAGE_BYTES
        )
        self._stack.callback(self._writer.discard)

    def add(self, batch: pa.RecordBatch) -> None:
        """Append rows."""
        self.rows += len(batch)
        self.tokens += int(batch.column(NUM_TOKENS).to_numpy().sum(dtype=np.int64))
        self._writer.add(batch)

    def finish(self) -> None:
        """Write the footer."""
        self._writer.close()
        self.close(self._sink)


class ParquetComparison(PartWriter):
    """Compares rows with those in the file: its content, whichever release of Arrow wrote it."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._path = join(self.outputs.directory, f"{self.name}.parquet")
        try:
            source = self._stack.enter_context(storage.open_binary(self._path))
            self._parquet = open_part(source)
        except (InputError, pa.ArrowException, OSError) as error:
            raise VerificationError(f"{self._path}: {' '.join(str(error).split())}") from error
        if not self._parquet.schema_arrow.equals(self.layout.schema):
            raise VerificationError(
                f"{self._path}: its columns are {', '.join(map(str, self._parquet.schema_arrow))}, "
                f"not {', '.join(map(str, self.layout.schema))}"
            )
        self._rows = StoredBatches(self._read())

    def _read(self) -> Iterator[pa.Table]:
        try:
            for group in range(self._parquet.metadata.num_row_groups):
                yield self._parquet.read_row_group(group, use_threads=False)
        except (pa.ArrowException, OSError) as error:
            said = " ".join(str(error).split())
            raise VerificationError(f"{self._path}: damaged: {said}") from error

    def add(self, batch: pa.RecordBatch) -> None:
        """Compare the next rows.

        Raises:
            VerificationError: one differs; the message names it, and its documents.
        """
        for there, here in self._rows.beside(batch):
            if there is None:
                raise self._differs(here, self._rows.taken, "is missing")
            first = self._rows.taken - len(there)
            places = (
                first_difference(column.combine_chunks(), made)
                for column, made in zip(there.columns, here.columns, strict=True)
            )
            if different := [at for at in places if at is not None]:
                at = min(different)
                raise self._differs(here.slice(at), first + at, "differs")

    def finish(self) -> None:
        """See that there are no more rows."""
        row = self._rows.taken
        if self._rows.take() is not None:
            raise VerificationError(
                f"{self._path}: it has more rows than its sources give, from row {row} on"
            )
        self._stack.close()

    def _differs(self, batch: pa.RecordBatch, number: int, how: str) -> VerificationError:
        row = batch.slice(0, 1)
        names = row.schema.names
        ids = []
        if ID in names:
            ids = row.column(ID).to_pylist()
        elif DOCUMENTS in names:
            ids = row.column(DOCUMENTS).flatten().field(ID).to_pylist()
        documents = ", ".join(map(repr, ids[:3])) + (f" and {len(ids) - 3} more" if ids[3:] else "")
        return VerificationError(
            f"{self._path}: row {number}, of the documents {documents}, {how}: export "
            "again with `overwrite`"
        )
