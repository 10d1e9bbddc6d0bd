"""The formats of input files, by name.

To add a format, add its name and its line here, its reader in `pipelines.corpus.documents.READERS`,
and a word to the help of `pipelines.settings.InputSettings`.
"""

from __future__ import annotations

from typing import Literal, NamedTuple

FileFormat = Literal["text", "lines", "jsonl", "parquet"]


class Traits(NamedTuple):
    """Traits of a format.

    Attributes:
        suffixes: the suffixes of file names of the format; text has all other names.
        uncut: a phrase for a file that must be read as one; empty if ranges of bytes can be read.
        can_be_compressed: whether files can be compressed as a whole.
        unit: the unit of the place of a record, ``byte`` or ``row``.
        has_columns: whether records have fields that can pass through (``keep``).
    """

    suffixes: tuple[str, ...] = ()
    uncut: str = ""
    can_be_compressed: bool = True
    unit: str = "byte"
    has_columns: bool = False


FILE_FORMATS: dict[FileFormat, Traits] = {
    "text": Traits(uncut="one document"),
    "lines": Traits(),
    "jsonl": Traits((".jsonl", ".ndjson", ".json"), has_columns=True),
    "parquet": Traits(
        (".parquet", ".pq"),
        can_be_compressed=False,
        unit="row",
        has_columns=True,
    ),
}

SUFFIXES: dict[str, FileFormat] = {
    suffix: name for name, traits in FILE_FORMATS.items() for suffix in traits.suffixes
}
"""The format that a suffix says."""

WITH_COLUMNS = tuple(name for name, traits in FILE_FORMATS.items() if traits.has_columns)
"""The formats whose records have fields or columns."""
