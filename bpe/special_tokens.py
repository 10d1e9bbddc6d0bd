"""Special tokens: strings that are cut out of a text before it is pre-tokenized."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa

from bpe._arrow import text_column
from bpe._native import SpecialMatcher
from bpe.errors import SpecialTokenError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence


def check_special_tokens(tokens: Iterable[str]) -> tuple[str, ...]:
    """The special tokens as a tuple, in the order given.

    Raises:
        SpecialTokenError: one is not a str, is empty, has a lone surrogate, or is a duplicate.
    """
    if isinstance(tokens, str):
        raise SpecialTokenError(
            f"special tokens are given as one str, {tokens!r}: give a list, [{tokens!r}]"
        )
    checked: dict[str, None] = {}
    for token in tokens:
        if not isinstance(token, str):
            raise SpecialTokenError(f"special token {token!r} is not a str: decode it first")
        if not token:
            raise SpecialTokenError("a special token is empty: leave it out")
        try:
            token.encode("utf-8")
        except UnicodeEncodeError as error:
            raise SpecialTokenError(
                f"special token {token!r} has a lone surrogate at character {error.start}: "
                "it has no UTF-8, so no text can hold it"
            ) from error
        if token in checked:
            raise SpecialTokenError(f"special token {token!r} is given twice: leave one out")
        checked[token] = None
    return tuple(checked)


class SpecialCutter:
    """Cuts texts at special tokens: leftmost first, then longest.

    Example:
        >>> cutter = SpecialCutter([b"<s>", b"<sep>"])
        >>> list(cutter.cut(b"ab<sep>cd"))
        [(0, 2, None), (2, 7, 1), (7, 9, None)]
    """

    def __init__(self, tokens: Sequence[bytes]) -> None:
        self._matcher = SpecialMatcher(list(tokens)) if tokens else None

    def cut(self, text: bytes) -> Iterator[tuple[int, int, int | None]]:
        """The parts of a text in order, none of them empty.

        Yields:
            Byte offsets (begin, end), and the number of the special token, or None for text.
        """
        position = 0
        if self._matcher:
            numbers = iter(memoryview(self._matcher.find_all(text)).cast("q"))
            for begin, end, token in zip(numbers, numbers, numbers, strict=True):
                if begin > position:
                    yield position, begin, None
                yield begin, end, token
                position = end
        if position < len(text):
            yield position, len(text), None

    def split_column(self, texts: pa.Array) -> tuple[pa.Array, pa.Int64Array]:
        """The text between the special tokens of each row.

        Args:
            texts: string, large_string, binary or large_binary without nulls.

        Returns:
            The parts, none of them empty if there are special tokens, and the row of each.
        """
        if self._matcher is None:
            return texts, pa.array(range(len(texts)), pa.int64())
        data, offsets, rows = self._matcher.split(text_column(texts))
        count = len(rows) // 8
        return (
            pa.Array.from_buffers(
                pa.large_binary(), count, [None, pa.py_buffer(offsets), pa.py_buffer(data)]
            ),
            pa.Array.from_buffers(pa.int64(), count, [None, pa.py_buffer(rows)]),
        )
