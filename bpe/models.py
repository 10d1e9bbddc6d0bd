"""Models: what a pre-token consists of before and after it is merged."""

from __future__ import annotations

from collections.abc import Container, Mapping
from dataclasses import asdict, dataclass
from typing import Any, get_args

from bpe._codec import from_jsonable
from bpe.errors import TokenizerError

BYTE_TOKENS: tuple[bytes, ...] = tuple(f"<0x{byte:02X}>".encode() for byte in range(256))
"""The tokens of byte fallback."""


class _Plain:
    """The interface of all models, for settings that one lacks."""

    end_of_word = ""
    prefix = ""
    unknown: str | None = None
    max_characters = 0
    byte_fallback = False
    fuse_unknown = False

    def known(self, symbols: tuple[bytes, ...], _: Container[bytes]) -> tuple[bytes, ...]:
        """Return the symbols, with a substitute for those that are not among the tokens."""
        return symbols

    def as_token(self, pretoken: bytes) -> bytes:
        """Return the bytes of the token of an unsplit pre-token, its end included."""
        return pretoken + self.end_of_word.encode()


@dataclass(frozen=True)
class ByteLevel(_Plain):
    """Byte-pair encoding of bytes: every text can be encoded, and decodes to itself.

    Radford et al., "Language Models are Unsupervised Multitask Learners" (2019), section 2.2.
    """

    def symbols(self, pretoken: bytes) -> tuple[bytes, ...]:
        """Return the symbols of an unmerged pre-token: its bytes."""
        return tuple(bytes([byte]) for byte in pretoken)

    def is_symbol(self, token: bytes) -> bool:
        """Return whether an unmerged pre-token may hold this token: a byte."""
        return len(token) == 1


@dataclass(frozen=True)
class CharacterLevel(_Plain):
    """Byte-pair encoding of characters, with an end-of-word symbol.

    Sennrich, Haddow and Birch, "Neural Machine Translation of Rare Words with Subword Units"
    (2016), section 3.2. A token is the UTF-8 of its string: ``low</w>``. Without an end of word,
    and with byte fallback, it is that of SentencePiece (Kudo and Richardson 2018).

    Attributes:
        end_of_word: follows the characters of each pre-token; "" for none. Decoding turns it
            into a space.
        unknown: the token for characters that have none (malformed bytes too); None makes such a
            character an error.
        byte_fallback: characters that have no token become one for each byte instead, ``<0x0A>``
            for a line feed: a vocabulary then has all 256 of these.
        fuse_unknown: unknown characters next to each other become one unknown token.

    Raises:
        TokenizerError: an attribute is of another type, or the unknown token is empty.
    """

    end_of_word: str = "</w>"
    unknown: str | None = None
    byte_fallback: bool = False
    fuse_unknown: bool = False

    def __post_init__(self) -> None:
        _check_string("end_of_word", self.end_of_word)
        if self.unknown is not None:
            _check_string("unknown", self.unknown, least=1)
        for name in ("byte_fallback", "fuse_unknown"):
            if not isinstance(getattr(self, name), bool):
                raise TokenizerError(f"{name} {getattr(self, name)!r:.60} is not True or False")

    def known(self, symbols: tuple[bytes, ...], tokens: Container[bytes]) -> tuple[bytes, ...]:
        """Return the symbols, with a substitute for those that are not among the tokens."""
        known: list[bytes] = []
        after_unknown = False
        for symbol in symbols:
            is_unknown = symbol not in tokens
            if is_unknown and self.byte_fallback:
                known += [BYTE_TOKENS[byte] for byte in symbol]
            elif not is_unknown or self.unknown is None:
                known.append(symbol)
            elif not (self.fuse_unknown and after_unknown):
                known.append(self.unknown.encode())
            after_unknown = is_unknown
        return tuple(known)

    def symbols(self, pretoken: bytes) -> tuple[bytes, ...]:
        """Return the symbols of an unmerged pre-token: its characters, then the end of the word."""
        end = (self.end_of_word.encode(),) if self.end_of_word else ()
        return (*_characters(pretoken), *end)

    def is_symbol(self, token: bytes) -> bool:
        """Return whether an unmerged pre-token may hold this token: a character or the end."""
        content = token.decode()
        is_byte = self.byte_fallback and token in BYTE_TOKENS
        return len(content) == 1 or content == self.end_of_word or is_byte


@dataclass(frozen=True)
class WordPiece(_Plain):
    """WordPiece: the longest token at the front of a word, again and again.

    Wu et al., "Google's Neural Machine Translation System" (2016), section 4.1; the prefix is of
    Devlin et al., "BERT" (2019). A token is the UTF-8 of its string: ``##ing``.

    Attributes:
        prefix: marks tokens that continue a word.
        unknown: the token for words that are not a sequence of tokens.
        max_characters: longer words are unknown.

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
        """Return the characters, all but the first with the prefix."""
        prefix = self.prefix.encode()
        return tuple(
            prefix + character if i else character
            for i, character in enumerate(_characters(pretoken))
        )

    def is_symbol(self, token: bytes) -> bool:
        """Return whether this token is one character, with or without the prefix."""
        return len(_characters(token.removeprefix(self.prefix.encode()))) == 1


Model = ByteLevel | CharacterLevel | WordPiece
"""Any model of a tokenizer."""

MODELS: Mapping[str, type[Model]] = {model.__name__: model for model in get_args(Model)}
"""The classes of models, by the names that files give them."""


def model_settings(model: Model) -> dict[str, Any]:
    """Return a model as JSON values."""
    return {"type": type(model).__name__, **asdict(model)}


def read_model(settings: Any) -> Model:
    """Return the model of JSON values, as :func:`model_settings` gives them.

    Raises:
        ValueError: there is no such model, or a setting is unknown or does not fit.
    """
    values = from_jsonable(dict[str, Any], settings)
    kind = values.pop("type", None)
    if not isinstance(kind, str) or kind not in MODELS:
        raise ValueError(f"unknown model {kind!r:.60}: use {', '.join(MODELS)}")
    return from_jsonable(MODELS[kind], values, exact=True)


def _check_string(name: str, value: object, *, least: int = 0) -> None:
    if not isinstance(value, str) or len(value) < least:
        kind = "a string of at least one character" if least else "a string"
        raise TokenizerError(f"{name} {value!r:.60} is not {kind}")
    try:
        value.encode()
    except UnicodeEncodeError:
        raise TokenizerError(f"{name} {value!r:.60} holds a lone surrogate") from None


SENTENCEPIECE_BPE = CharacterLevel(
    end_of_word="", unknown="<unk>", byte_fallback=True, fuse_unknown=True
)
"""BPE as SentencePiece trains it; spaces are marks, which the normalizer makes of them."""


def _characters(pretoken: bytes) -> list[bytes]:
    """Return the UTF-8 of each character; a byte that is not part of well-formed UTF-8 is one."""
    text = pretoken.decode("utf-8", "surrogateescape")
    return [character.encode("utf-8", "surrogateescape") for character in text]
