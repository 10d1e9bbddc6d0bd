"""``parquet``: the rows as they are, laid out as ``datasets.load_dataset`` takes them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from pipelines import storage
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
            self._parquet = pq.ParquetFile(source, page_checksum_verification=True)
        except (InputError, pa.ArrowException, OSError) as error:
            raise VerificationError(f"{self._path}: {' '.join(str(error).split())}") from error
        if not self._parquet.schema_arrow.equals(self.layout.schema):
            raise VerificationError(
                f"{self._path}: its columns are {', '.join(map(str, self._parquet.schema_arrow))}, "
                f"not {', '.join(map(str, self.layout.schema))}"
            )
        self._batches = self._read()
        self._left: pa.RecordBatch | None = None
        self._rows = 0

    def _read(self) -> Iterator[pa.RecordBatch]:
        try:
            for group in range(self._parquet.metadata.num_row_groups):
                table = self._parquet.read_row_group(group, use_threads=False)
                yield from table.combine_chunks().to_batches()
        except (pa.ArrowException, OSError) as error:
            said = " ".join(str(error).split())
            raise VerificationError(f"{self._path}: damaged: {said}") from error

    def add(self, batch: pa.RecordBatch) -> None:
        """Compare the next rows.

        Raises:
            VerificationError: one differs; the message names it, and its documents.
        """
        while len(batch):
            if self._left is None or not len(self._left):
                self._left = next(self._batches, None)
            if self._left is None:
                raise self._differs(batch, 0, "is missing")
            size = min(len(batch), len(self._left))
            there, here = self._left.slice(0, size), batch.slice(0, size)
            if not there.equals(here):
                same = next(at for at in range(size) if there.slice(at, 1) != here.slice(at, 1))
                raise self._differs(here, same, "differs")
            self._rows += size
            self._left, batch = self._left.slice(size), batch.slice(size)

    def finish(self) -> None:
        """See that there are no more rows."""
        if (self._left is not None and len(self._left)) or next(self._batches, None) is not None:
            raise VerificationError(
                f"{self._path}: it has more rows than its sources give, from row {self._rows} on"
            )
        self._stack.close()

    def _differs(self, batch: pa.RecordBatch, at: int, how: str) -> VerificationError:
        row = batch.slice(at, 1)
        names = row.schema.names
        ids = []
        if ID in names:
            ids = row.column(ID).to_pylist()
        elif DOCUMENTS in names:
            ids = row.column(DOCUMENTS).flatten().field(ID).to_pylist()
        documents = ", ".join(map(repr, ids[:3])) + (f" and {len(ids) - 3} more" if ids[3:] else "")
        return VerificationError(
            f"{self._path}: row {self._rows + at}, of the documents {documents}, {how}: export "
            "again with `overwrite`"
        )
