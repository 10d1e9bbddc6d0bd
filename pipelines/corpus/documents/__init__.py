"""From ranges of files to blocks of documents: plain functions, no pipeline.

``read_split`` and ``read_blocks`` are what jobs call; there is one module for each format.
"""

from __future__ import annotations

from itertools import groupby
from typing import TYPE_CHECKING

from pipelines.corpus.documents.block import BadRecord, Block, KeptColumn, ReadOptions
from pipelines.corpus.documents.jsonl import read_jsonl
from pipelines.corpus.documents.lines import read_lines
from pipelines.corpus.documents.parquet import read_parquet
from pipelines.corpus.documents.text import read_texts

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from pipelines.corpus.splits import FileRange, Split
    from pipelines.settings import FileFormat

__all__ = ["BadRecord", "Block", "KeptColumn", "ReadOptions", "read_blocks", "read_split"]


READERS: dict[FileFormat, Callable[[FileRange, ReadOptions], Iterator[Block]]] = {
    "text": lambda source, options: read_texts((source,), options),
    "lines": read_lines,
    "jsonl": read_jsonl,
    "parquet": read_parquet,
}
"""What reads a range of a file, by its format (`pipelines.corpus.formats`)."""


def read_split(split: Split, options: ReadOptions) -> Iterator[Block]:
    """The documents of a split, in order; files that are one document each share blocks."""
    for is_text, pieces in groupby(split.pieces, key=lambda piece: piece.format == "text"):
        if is_text:
            yield from read_texts(tuple(pieces), options)
        else:
            for piece in pieces:
                yield from read_blocks(piece, options)


def read_blocks(source: FileRange, options: ReadOptions) -> Iterator[Block]:
    """The documents whose records begin in ``source``, in order.

    Where blocks begin and end depends on the range and the options alone. A block may be empty:
    the last one can be there for its ``bad`` records or ``input_bytes`` only.

    Raises:
        InputError: the file cannot be read, has not the size it was planned with, or (parquet)
            has no column of that name.
    """
    return READERS[source.format](source, options)
