"""The errors of this library; each message names the value and the remedy."""

from __future__ import annotations


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


class UnknownCharacterError(EncodingError):
    """Texts with characters that have no token, for a tokenizer without an unknown token.

    Attributes:
        rows: the numbers of all such texts, ascending.
    """

    def __init__(self, message: str, *, rows: tuple[int, ...] = ()) -> None:
        super().__init__(message)
        self.rows = rows
