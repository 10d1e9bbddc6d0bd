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
