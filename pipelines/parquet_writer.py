"""Write ids to Parquet; all writers of ids use this module."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

if TYPE_CHECKING:
    from collections.abc import Iterator

    from typing_extensions import Self

    from pipelines.settings import ParquetEncoding

# A row group ends with the first block of rows that takes it past one of these, so it depends on
# the blocks alone.
ROW_GROUP_TOKENS = 2 << 20
ROW_GROUP_ROWS = 1 << 17
ROW_GROUP_BYTES = 64 << 20  # in memory, of all columns: those that pass through may be large
_WITH_STATISTICS = ("id", "chunk_index", "num_tokens")
# Measured against other levels, page sizes and encodings: benchmarks/LOG.md, "Parquet of ids".
_ENCODINGS = {
    "id": "DELTA_BYTE_ARRAY",
    "input_ids": "BYTE_STREAM_SPLIT",
    "num_tokens": "BYTE_STREAM_SPLIT",
}


class RowWriter:
    """Writer of rows with the column ``input_ids`` to a file; a context manager.

    Args:
        sink: the file; not closed.
        schema: the schema of the rows.
        encoding: the encoding of the ids.
        page_bytes: bytes of ids in a page; with 2 MiB, files are 0.6 % larger than with 4 MiB, and
            a writer takes some 15 MB less memory.
    """

    def __init__(
        self,
        sink: Any,
        schema: pa.Schema,
        *,
        encoding: ParquetEncoding,
        page_bytes: int = 4 << 20,
    ) -> None:
        options: dict[str, Any] = {"compression_level": 1}
        if encoding == "byte-stream-split":
            names = {"input_ids": f"input_ids.list.{schema.field('input_ids').type.field(0).name}"}
            options = {
                "compression_level": 2,
                "data_page_size": page_bytes,
                "column_encoding": {
                    names.get(name, name): kind
                    for name, kind in _ENCODINGS.items()
                    if name in schema.names
                },
            }
        self._schema = schema
        self._writer = pq.ParquetWriter(
            sink,
            schema,
            compression="zstd",
            use_dictionary=False,  # ids hardly repeat within a page's worth of a vocabulary
            write_page_checksum=True,
            write_batch_size=1 << 20,  # with 1,024 ids, their nesting costs a tenth of all
            write_statistics=[name for name in _WITH_STATISTICS if name in schema.names],
            **options,
        )
        self._clear()

    def _clear(self) -> None:
        self._pending: list[pa.RecordBatch] = []
        self._sizes = np.zeros(3, np.int64)  # rows, tokens, bytes

    def add(self, rows: pa.RecordBatch) -> None:
        """Append rows."""
        if not len(rows):
            return
        self._pending.append(rows)
        self._sizes += (len(rows), len(rows.column("input_ids").flatten()), rows.nbytes)
        if (self._sizes >= (ROW_GROUP_ROWS, ROW_GROUP_TOKENS, ROW_GROUP_BYTES)).any():
            self.flush()

    def flush(self) -> None:
        """End the row group."""
        if self._pending:
            table = pa.Table.from_batches(self._pending, self._schema)
            self._writer.write_table(table, row_group_size=len(table))
        self._clear()

    def close(self) -> None:
        """Write the remaining rows and the footer."""
        self.flush()
        self._writer.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        if self._writer.is_open:
            with contextlib.suppress(Exception):
                self._writer.close()


def batches_of(
    file: pq.ParquetFile, rows: int, *, columns: list[str] | None = None
) -> Iterator[pa.RecordBatch]:
    """Yield the rows of a file in batches of ``rows``; no batch if the file has no row groups."""
    if file.num_row_groups:
        yield from file.iter_batches(rows, columns=columns, use_threads=False)
