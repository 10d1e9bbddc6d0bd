"""Types of the C++ core."""

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

# The trainer.

class Trainer:
    """The merge loop over words of bytes."""

    def __init__(
        self,
        *,
        alphabet: list[bytes],
        ties: str,
        max_tokens: int,
        min_frequency: int,
        forbidden: list[bytes],
    ) -> None: ...
    def add_words(
        self, *, data: Readable, offsets: Readable, counts: Readable, symbol_of_byte: Readable
    ) -> None: ...
    def step(self, merges: int) -> bool: ...
    @property
    def merge_count(self) -> int: ...
    @property
    def token_count(self) -> int: ...
    @property
    def initial_tokens(self) -> int: ...
    @property
    def vocabulary_full(self) -> bool: ...
    def left(self) -> Buffer: ...
    def right(self) -> Buffer: ...
    def token(self) -> Buffer: ...
    def count(self) -> Buffer: ...
    def tokens_left(self) -> Buffer: ...
    def tokens(self) -> list[bytes]: ...
