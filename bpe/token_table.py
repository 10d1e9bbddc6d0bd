"""The tokens of a vocabulary as one column of bytes."""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate, islice, pairwise
from typing import TYPE_CHECKING

from bpe._native import tokens_in_rank_order
from bpe.errors import TokenizerError

if TYPE_CHECKING:
    from typing_extensions import Buffer, Self


@dataclass(frozen=True, repr=False)
class TokenTable:
    """The bytes of each id, where ids without a token have none; the last id has one. Immutable.

    Attributes:
        data: the bytes of all tokens, by id.
        offsets: int64; token ``i`` is ``data[offsets[i]:offsets[i + 1]]``.
    """

    data: bytes
    offsets: array[int]

    @classmethod
    def of(cls, tokens: TokenTable | Sequence[bytes | None]) -> TokenTable:
        """Return the table of these tokens, without ids at the end that have none.

        Raises:
            TokenizerError: one is neither None nor at least one byte.
        """
        if isinstance(tokens, TokenTable):
            return tokens
        for id_, token in enumerate(tokens):
            if token is not None and (not isinstance(token, bytes) or not token):
                raise TokenizerError(
                    f"token {id_} is {token!r}: a token is at least one byte, or None for no token"
                )
        size = len(tokens)
        while size > 0 and tokens[size - 1] is None:
            size -= 1
        filled = [token or b"" for token in islice(tokens, size)]
        return cls(b"".join(filled), array("q", accumulate(map(len, filled), initial=0)))

    @classmethod
    def of_ranks(cls, data: Buffer) -> Self | None:
        """Return the table of a well-formed .tiktoken file whose ranks count from 0, as most do.

        None for any other file, and for an empty one. A token may be there twice.
        """
        columns = tokens_in_rank_order(data)
        if columns is None or memoryview(columns[0]).nbytes == 0:
            return None
        return cls.of_columns(*columns)

    @classmethod
    def of_columns(cls, data: Buffer, offsets: Buffer) -> Self:
        """Return the table of what the core has read: the bytes of tokens, and int64 offsets."""
        ends = array("q")
        ends.frombytes(memoryview(offsets).cast("B"))
        return cls(bytes(data), ends)

    def extended(self, tokens: Mapping[int, bytes]) -> TokenTable:
        """Return the table with more tokens, by ids that have none."""
        size = max(tokens, default=-1) + 1
        if any(id_ < len(self) for id_ in tokens):
            return TokenTable.of(
                [tokens.get(id_, token) for id_, token in enumerate(self)]
                + [tokens.get(id_) for id_ in range(len(self), size)]
            )
        added = [tokens.get(id_, b"") for id_ in range(len(self), size)]
        ends = accumulate(map(len, added), initial=len(self.data))
        more = array("q", islice(ends, 1, None))
        return TokenTable(b"".join([self.data, *added]), self.offsets + more)

    def bytes_of(self, id_: int) -> bytes:
        """Return the token of an id that has one."""
        return self.data[self.offsets[id_] : self.offsets[id_ + 1]]

    def __len__(self) -> int:
        """One more than the greatest id."""
        return len(self.offsets) - 1

    def __getitem__(self, id_: int) -> bytes | None:
        """Return the token of an id, 0 to ``len() - 1``."""
        return self.data[self.offsets[id_] : self.offsets[id_ + 1]] or None

    def __iter__(self) -> Iterator[bytes | None]:
        """Return the token of each id."""
        return (self.data[begin:end] or None for begin, end in pairwise(self.offsets))

    def __hash__(self) -> int:
        return hash((self.data, self.offsets.tobytes()))
