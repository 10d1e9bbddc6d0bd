"""Models: what a pre-token consists of before and after it is merged."""

from __future__ import annotations

from dataclasses import dataclass

from bpe.errors import TokenizerError

__all__ = ["ByteLevel", "CharacterLevel", "Model", "WordPiece"]


@dataclass(frozen=True)
class ByteLevel:
    """Byte-pair encoding of bytes: every text has an encoding, and decodes to itself.

    Radford et al., "Language Models are Unsupervised Multitask Learners" (2019), section 2.2.
    """

    def symbols(self, pretoken: bytes) -> tuple[bytes, ...]:
        """What a pre-token is before anything is merged: its bytes."""
        return tuple(bytes([byte]) for byte in pretoken)

    def whole(self, pretoken: bytes) -> bytes:
        """The bytes of the token that is this whole pre-token."""
        return pretoken


@dataclass(frozen=True)
class CharacterLevel:
    """Byte-pair encoding of characters, with a symbol of its own at the end of each word.

    Sennrich, Haddow and Birch, "Neural Machine Translation of Rare Words with Subword Units"
    (2016), section 3.2. A token is the UTF-8 of its string: ``low</w>``.

    Attributes:
        end_of_word: the symbol behind the characters of each pre-token; "" for none. Decoding
            makes it a space.
        unknown: the token of a character that has none (a malformed byte is one); None makes
            such a character an error.

    Raises:
        TokenizerError: an attribute is of another type, or the unknown token is empty.
    """

    end_of_word: str = "</w>"
    unknown: str | None = None

    def __post_init__(self) -> None:
        _check_string("end_of_word", self.end_of_word)
        if self.unknown is not None:
            _check_string("unknown", self.unknown, least=1)

    def symbols(self, pretoken: bytes) -> tuple[bytes, ...]:
        """What a pre-token is before anything is merged: its characters, then the end."""
        end = (self.end_of_word.encode(),) if self.end_of_word else ()
        return (*_characters(pretoken), *end)

    def whole(self, pretoken: bytes) -> bytes:
        """The bytes of the token that is this whole pre-token, its end included."""
        return pretoken + self.end_of_word.encode()


@dataclass(frozen=True)
class WordPiece:
    """WordPiece: the longest token that a word begins with, then the longest of the rest, ...

    Wu et al., "Google's Neural Machine Translation System" (2016), section 4.1; the prefix is of
    Devlin et al., "BERT" (2019). A token is the UTF-8 of its string: ``##ing``.

    Attributes:
        prefix: what the string of a token begins with that continues a word.
        unknown: the token of a word that cannot be put together from tokens.
        max_characters: a word of more characters is unknown.

    Raises:
        TokenizerError: an attribute is of another type, the unknown token is empty, or
            max_characters is less than 1.
    """

    prefix: str = "##"
    unknown: str = "[UNK]"
    max_characters: int = 100

    def __post_init__(self) -> None:
        _check_string("prefix", self.prefix)
        _check_string("unknown", self.unknown, least=1)
        if type(self.max_characters) is not int or not 1 <= self.max_characters < 2**32:
            raise TokenizerError(
                f"max_characters {self.max_characters!r} is not a number from 1 to 2^32 - 1"
            )

    def symbols(self, pretoken: bytes) -> tuple[bytes, ...]:
        """Its characters as training sees them: all but the first behind the prefix."""
        prefix = self.prefix.encode()
        return tuple(
            prefix + character if i else character
            for i, character in enumerate(_characters(pretoken))
        )

    def whole(self, pretoken: bytes) -> bytes:
        """The bytes of the token that is this whole pre-token."""
        return pretoken


Model = ByteLevel | CharacterLevel | WordPiece
"""One of the three."""


def _check_string(name: str, value: object, *, least: int = 0) -> None:
    if not isinstance(value, str) or len(value) < least:
        kind = "a string of at least one character" if least else "a string"
        raise TokenizerError(f"{name} {value!r:.60} is not {kind}")
    try:
        value.encode()
    except UnicodeEncodeError:
        raise TokenizerError(f"{name} {value!r:.60} holds a lone surrogate") from None


def _characters(pretoken: bytes) -> list[bytes]:
    """The UTF-8 of each character; a byte that is not part of well-formed UTF-8 is one."""
    text = pretoken.decode("utf-8", "surrogateescape")
    return [character.encode("utf-8", "surrogateescape") for character in text]
