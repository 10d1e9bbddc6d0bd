"""Special tokens: strings that are cut out of a text before it is pre-tokenized."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import astuple, dataclass

from bpe._native import SpecialMatcher
from bpe.errors import SpecialTokenError, listed
from bpe.normalizer import before_marks, keeps_occurrences, normalize


@dataclass(frozen=True, kw_only=True)
class TokenFlags:
    r"""Flags of a special or added token, as of Hugging Face's ``AddedToken``: where it is found.

    Whitespace that a token takes is not in its id, so decoding does not give it back.

    Attributes:
        lstrip: takes the whitespace before it.
        rstrip: takes the whitespace after it; a token in there is found too.
        single_word: is plain text next to a character of a word (``\w``).
        normalized: is searched for in what the tokens without this flag leave, in normalized text,
            and is normalized itself.

    Example:
        >>> import pyarrow as pa
        >>> from bpe.segments import Segments
        >>> matcher = special_matcher([b"<mask>"], {"<mask>": TokenFlags(lstrip=True)})
        >>> segments = Segments.of(pa.array(["a  <mask> b"])).cut_at(matcher, [7])
        >>> segments.data.to_pylist(), segments.what.tolist()
        ([b'a', b'  <mask>', b' b'], [-1, 7, -1])
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
        """True if they say where the token is found, or what it takes."""
        return self.lstrip or self.rstrip or self.single_word


def check_special_tokens(tokens: Iterable[str]) -> tuple[str, ...]:
    """Return the special tokens as a tuple, in the order given.

    Raises:
        SpecialTokenError: one is not a str, is empty, has a lone surrogate, or is a duplicate.
    """
    checked: dict[str, None] = {}
    for token in listed(tokens, "special tokens are", error=SpecialTokenError):
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
    found = normalized_tokens(flags, steps)
    is_in_text = all(
        keeps_occurrences(token, steps) and not flags[token].change_matches for token in found
    )
    return {} if not steps or is_in_text else found


def normalized_tokens(flags: Mapping[str, TokenFlags], steps: Sequence[str]) -> dict[str, str]:
    """Return the tokens with the flag ``normalized`` as they are in normalized text.

    Raises:
        SpecialTokenError: one is empty there, or another one as well.
    """
    found: dict[str, str] = {}
    for token in (token for token, flag in flags.items() if flag.normalized):
        normalized = normalize(token.encode(), steps).decode()
        if not normalized or normalized in found.values():
            raise SpecialTokenError(
                f"the token {token!r} is {normalized!r} in normalized text"
                + (", as another one is" if normalized else "")
            )
        found[token] = normalized
    return found


def special_matcher(tokens: Collection[bytes], flags: Mapping[str, TokenFlags]) -> SpecialMatcher:
    """Return the core's matcher of special tokens: leftmost first, then longest.

    Args:
        tokens: in UTF-8.
        flags: of those that have any, by name.
    """
    bits = {name.encode(): flag.bits for name, flag in flags.items()}
    return SpecialMatcher(list(tokens), [bits.get(token, 0) for token in tokens])
