"""Types of the C++ core."""

from __future__ import annotations

from typing_extensions import Buffer as Readable

class Buffer:
    """Memory of the core, read in place through the buffer protocol."""

    def __len__(self) -> int: ...
    def __buffer__(self, flags: int, /) -> memoryview: ...

class TextColumn:
    """Rows of an Arrow string or binary array without nulls."""

    def __init__(
        self, data: Readable, offsets: Readable, offset_width: int, first: int, rows: int
    ) -> None: ...
    def __len__(self) -> int: ...

# The scanner.

UNICODE_VERSION: str
SCHEMES: tuple[str, ...]

def scan(scheme: str, data: Readable) -> Buffer:
    """The pre-tokens of ``data`` as int64 pairs (begin, end), byte offsets."""

def malformed_rows(column: TextColumn) -> Buffer:
    """The numbers (int64, ascending) of the rows that are not well-formed UTF-8."""
