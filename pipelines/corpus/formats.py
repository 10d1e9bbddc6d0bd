"""The formats of input files, by name.

To add one: its name in `pipelines.settings.FileFormat`, a line here, and a reader in
`pipelines.corpus.documents`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from pipelines.settings import FileFormat


class Traits(NamedTuple):
    """What the rest of the program must know of a format.

    Attributes:
        suffixes: of file names that say it; text is what no other suffix says.
        can_be_cut: whether a range of bytes can be read by itself.
        can_be_compressed: whether files are read through a compression around them.
        unit: in which the place of a record is counted, ``byte`` or ``row``.
        has_columns: whether records have fields that can pass through (``keep``).
        has_types: whether files state the types of their columns.
    """

    suffixes: tuple[str, ...] = ()
    can_be_cut: bool = True
    can_be_compressed: bool = True
    unit: str = "byte"
    has_columns: bool = False
    has_types: bool = False


FILE_FORMATS: dict[FileFormat, Traits] = {
    "text": Traits(can_be_cut=False),
    "lines": Traits(),
    "jsonl": Traits((".jsonl", ".ndjson", ".json"), has_columns=True),
    "parquet": Traits(
        (".parquet", ".pq"),
        can_be_compressed=False,
        unit="row",
        has_columns=True,
        has_types=True,
    ),
}

SUFFIXES: dict[str, FileFormat] = {
    suffix: name for name, traits in FILE_FORMATS.items() for suffix in traits.suffixes
}
"""The format that a suffix says."""
