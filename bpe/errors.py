"""The errors of this library; each message names the value and the remedy."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from typing_extensions import Self


class BpeError(Exception):
    """Base of the errors of ``bpe``."""


class PretokenizerError(BpeError, ValueError):
    """An unknown pre-tokenizer name, or a pattern that does not compile."""


class SpecialTokenError(BpeError, ValueError):
    """A special token that is empty, a duplicate, or has no UTF-8."""


class CountsError(BpeError, ValueError):
    """Pre-token counts that cannot be read, saved or added to each other."""


class TrainingError(BpeError, ValueError):
    """A vocabulary that cannot be trained as asked."""


class TokenizerError(BpeError, ValueError):
    """Tokens, merges and special tokens that contradict each other."""


class InexpressibleError(TokenizerError):
    """A tokenizer that Hugging Face's tokenizer.json cannot express."""


class TokenizerFileError(TokenizerError):
    """A tokenizer file that is broken, or asks for something that is not supported."""


class EncodingError(BpeError, ValueError):
    """Text that cannot be encoded (lone surrogates), or an id that does not exist."""


class BadTextsError(EncodingError):
    """Some texts of several cannot be encoded or counted; the others can.

    Attributes:
        reasons: why, by the number of the text, ascending. Texts may be bad that are not named.
    """

    def __init__(self, message: str, *, reasons: Mapping[int, str] | None = None) -> None:
        super().__init__(message)
        self.reasons = dict(reasons or {})

    @property
    def rows(self) -> tuple[int, ...]:
        """Return the numbers of the texts that are named."""
        return tuple(self.reasons)

    def shifted(self, first: int) -> Self:
        """Return the error for rows that are numbered from ``first``; the message names the row."""
        reasons = {first + row: reason for row, reason in self.reasons.items()}
        row, reason = next(iter(reasons.items()))
        return type(self)(f"row {row}: {reason}", reasons=reasons)


class UnknownCharacterError(BadTextsError):
    """Texts with characters that have no token, for a tokenizer without an unknown token.

    It names all such texts.
    """


class PatternTimeoutError(BadTextsError):
    """A regular expression that backtracks too long on a text.

    It names one text: to look for others takes as long again.
    """


def listed(values: Iterable[str], what: str, *, error: type[BpeError]) -> tuple[str, ...]:
    """Return values as a tuple; raise an error that says ``what`` they are if they are one str."""
    if isinstance(values, str):
        raise error(f"{what} given as one str, {values!r}: give a list, [{values!r}]")
    return tuple(values)
