"""Read ranges of files into blocks of documents: plain functions, no pipeline.

Jobs call ``read_split``. Each format has a module and an entry in `READERS`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from pipelines.corpus.documents.block import BadRecord, Block, PassthroughColumn, ReadOptions
from pipelines.corpus.documents.jsonl import first_records, read_jsonl
from pipelines.corpus.documents.lines import read_lines
from pipelines.corpus.documents.parquet import column_types, read_parquet
from pipelines.corpus.documents.text import read_texts

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    import pyarrow as pa

    from pipelines.corpus.splits import FileRange, Split
    from pipelines.formats import FileFormat

__all__ = ["BadRecord", "Block", "PassthroughColumn", "ReadOptions", "read_split"]


class Reader(NamedTuple):
    """The reader of a format.

    If records have fields (``has_columns``), one of the last two gives the types of the fields.

    Attributes:
        blocks: reads the documents of consecutive ranges, in order.
        column_types: returns the types of named columns from the schema of a file; raises
            `InputError` if the file has no column of a name.
        records: reads the first records of a file, as values of JSON.
    """

    blocks: Callable[[Sequence[FileRange], ReadOptions], Iterator[Block]]
    column_types: Callable[[FileRange, Iterable[str]], dict[str, pa.DataType]] | None = None
    records: Callable[[FileRange], Iterator[dict[str, Any]]] | None = None


def _each(
    read: Callable[[FileRange, ReadOptions], Iterator[Block]],
) -> Callable[[Sequence[FileRange], ReadOptions], Iterator[Block]]:
    """Return a reader of ranges in turn: no block has documents of two ranges."""

    def blocks(sources: Sequence[FileRange], options: ReadOptions) -> Iterator[Block]:
        for source in sources:
            yield from read(source, options)

    return blocks


READERS: dict[FileFormat, Reader] = {
    "text": Reader(read_texts),
    "lines": Reader(_each(read_lines)),
    "jsonl": Reader(_each(read_jsonl), records=first_records),
    "parquet": Reader(_each(read_parquet), column_types=column_types),
}
"""By the format's name (`pipelines.formats`)."""


def read_split(split: Split, options: ReadOptions) -> Iterator[Block]:
    """Read the documents whose records begin in the pieces of a split, in order.

    Where blocks begin and end depends on the pieces and the options alone; files that are one
    document each share blocks. A block may be empty: the last one can be there for its ``bad``
    records or ``input_bytes`` only.

    Raises:
        InputError: a file cannot be read, has not the size it was planned with, or (parquet) has
            no column of a name in the options.
    """
    if split.pieces:
        first = split.pieces[0]  # the others have its format and source
        yield from READERS[first.format].blocks(split.pieces, options.of_source(first.source))
