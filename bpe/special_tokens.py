"""Special tokens: strings that are cut out of a text before it is pre-tokenized."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import astuple, dataclass

import pyarrow as pa

from bpe._arrow import binary_rows, int64_array, text_column
from bpe._native import SpecialMatcher
from bpe.errors import SpecialTokenError
from bpe.normalizer import before_marks, keeps_occurrences, normalize


@dataclass(frozen=True, kw_only=True)
class TokenFlags:
    r"""Flags of a special or added token, as of Hugging Face's ``AddedToken``: where it is found.

    Whitespace that a token takes is not in its id, so decoding does not give it back.

    Attributes:
        lstrip: takes the whitespace before it.
        rstrip: takes the whitespace after it; a token in there is found too.
        single_word: is plain text next to a character of a word (``\w``).
        normalized: is searched for in what the tokens without this flag leave: in normalized text,
            and normalized itself, if it could be elsewhere there (`found_in_normalized`).

    Example:
        >>> mask = {"<mask>": TokenFlags(lstrip=True)}
        >>> list(SpecialCutter([b"<mask>"], flags=mask).cut(b"a  <mask> b"))
        [(0, 1, None), (1, 9, 0), (9, 11, None)]
    """

    lstrip: bool = False
    rstrip: bool = False
    single_word: bool = False
    normalized: bool = False

    @property
    def bits(self) -> int:
        """As the core takes them."""
        return sum(flag << bit for bit, flag in enumerate(astuple(self)))

    @property
    def drop_whitespace(self) -> bool:
        """True if whitespace next to the token is lost."""
        return self.lstrip or self.rstrip

    @property
    def change_matches(self) -> bool:
        """True if more than the order of searching depends on them."""
        return self.lstrip or self.rstrip or self.single_word


def check_special_tokens(tokens: Iterable[str]) -> tuple[str, ...]:
    """Return the special tokens as a tuple, in the order given.

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


def found_in_normalized(flags: Mapping[str, TokenFlags], steps: Sequence[str]) -> dict[str, str]:
    """Return the tokens that are searched for in normalized text, and what is searched for there.

    None are where normalizing moves, makes and removes none of those with the flag ``normalized``:
    then they are found in the text itself.

    Args:
        flags: of special and added tokens, by name.
        steps: of the normalizer.

    Raises:
        SpecialTokenError: a normalized token is empty, or another one as well.

    Example:
        >>> flag = TokenFlags(normalized=True)
        >>> found_in_normalized({"<Tool>": flag}, ["lowercase"])
        {'<Tool>': '<tool>'}
        >>> found_in_normalized({"||": flag}, ["nfc"])
        {}
    """
    steps = before_marks(steps)
    tokens = {token: flag for token, flag in flags.items() if flag.normalized}
    if not steps or all(
        keeps_occurrences(token, steps) and not flag.change_matches
        for token, flag in tokens.items()
    ):
        return {}
    found: dict[str, str] = {}
    for token in tokens:
        normalized = normalize(token.encode(), steps).decode()
        if not normalized or normalized in found.values():
            raise SpecialTokenError(
                f"the token {token!r} is {normalized!r} in normalized text"
                + (", as another one is" if normalized else "")
            )
        found[token] = normalized
    return found


class SpecialCutter:
    """Cuts texts at special tokens: leftmost first, then longest.

    Args:
        tokens: in UTF-8.
        flags: of those that have any, by name.

    Attributes:
        matcher: finds them in the core.

    Example:
        >>> cutter = SpecialCutter([b"<s>", b"<sep>"])
        >>> list(cutter.cut(b"ab<sep>cd"))
        [(0, 2, None), (2, 7, 1), (7, 9, None)]
    """

    def __init__(
        self, tokens: Sequence[bytes], *, flags: Mapping[str, TokenFlags] | None = None
    ) -> None:
        bits = {name.encode(): flag.bits for name, flag in (flags or {}).items()}
        self._has_tokens = bool(tokens)
        self.matcher = SpecialMatcher(list(tokens), [bits.get(token, 0) for token in tokens])

    def cut(self, text: bytes) -> Iterator[tuple[int, int, int | None]]:
        """Yield the parts of a text in order, none of them empty.

        Yields:
            Byte offsets (begin, end), and the number of the special token, or None for text. Parts
            overlap where a token begins in whitespace that the one before has taken.
        """
        numbers = iter(memoryview(self.matcher.cut(text)).cast("q"))
        for begin, end, token in zip(numbers, numbers, numbers, strict=True):
            yield begin, end, None if token < 0 else token

    def split_column(self, texts: pa.Array) -> tuple[pa.Array, pa.Int64Array]:
        """Return the text between the special tokens of each row.

        Args:
            texts: string, large_string, binary or large_binary without nulls.

        Returns:
            The parts, none of them empty if there are special tokens, and the row of each.
        """
        if not self._has_tokens:
            return texts, pa.array(range(len(texts)), pa.int64())
        parts, rows = self.matcher.split(text_column(texts))
        return binary_rows(*parts), int64_array(rows)
