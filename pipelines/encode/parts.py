"""One Parquet file of token ids for each split: written, and read back.

The bytes of a part depend on its split, the options and the tokenizer alone. A record
(`pipelines.stage.record`) proves that it is finished, not the file.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow.parquet as pq

from pipelines.encode.rows import OWN
from pipelines.parquet_writer import RowWriter

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pyarrow as pa
    from typing_extensions import Self

    from pipelines.encode.rows import RowLayout
    from pipelines.storage import HashingFile


class PartWriter(RowWriter):
    """Writes the rows of a part to a file; a context manager that ends with `close`.

    Args:
        sink: the file; not closed.
        layout: of the rows.
    """

    def __init__(self, sink: HashingFile, layout: RowLayout) -> None:
        super().__init__(sink, layout.schema, encoding=layout.settings.parquet_encoding)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.discard()


def read_rows(file: pq.ParquetFile, layout: RowLayout) -> Iterator[pa.Table]:
    """The rows of a part, one row group at a time.

    Args:
        file: opened with ``page_checksum_verification=True``.
        layout: that the rows must have.

    Raises:
        ValueError: columns that are missing or of another type, or nulls in those of our own.
        pyarrow.ArrowException, OSError: the file is damaged.
    """
    found, schema = file.schema_arrow, layout.schema
    if not found.equals(schema):
        raise ValueError(
            f"its columns are {', '.join(map(str, found))}, where the manifest says "
            f"{', '.join(map(str, schema))}"
        )
    for group in range(file.metadata.num_row_groups):
        table = file.read_row_group(group)
        if any(table[name].null_count for name in OWN):
            raise ValueError(f"row group {group} holds nulls")
        yield table


def open_part(source: Any) -> pq.ParquetFile:
    """Open a part so that every page that is read is checked against its checksum."""
    return pq.ParquetFile(source, page_checksum_verification=True)
