"""``parquet``: the rows as they are, laid out as ``datasets.load_dataset`` takes them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from pipelines.encode.rows import NUM_TOKENS
from pipelines.export.format import PartWriter
from pipelines.parquet_writer import RowWriter

if TYPE_CHECKING:
    import pyarrow as pa

_PAGE_BYTES = 2 << 20


class ParquetPart(PartWriter):
    """The writer of ``parquet``: a file a part."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._sink = self.one_file("parquet")
        encoding = self.layout.settings.parquet_encoding
        self._writer = self._stack.enter_context(
            RowWriter(self._sink, self.layout.schema, encoding=encoding, page_bytes=_PAGE_BYTES)
        )

    def add(self, batch: pa.RecordBatch) -> None:
        """Append rows."""
        self.rows += len(batch)
        self.tokens += int(batch.column(NUM_TOKENS).to_numpy().sum(dtype=np.int64))
        self._writer.add(batch)

    def finish(self) -> None:
        """Write the footer."""
        self._writer.close()
        self.close("parquet", self._sink)
