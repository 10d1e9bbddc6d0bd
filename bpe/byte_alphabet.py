"""GPT-2's printable alphabet: one visible character for each byte, so tokens fit into JSON."""

from __future__ import annotations


def _alphabet() -> tuple[str, ...]:
    printable = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    hidden = (byte for byte in range(256) if byte not in printable)
    moved = {byte: chr(256 + i) for i, byte in enumerate(hidden)}
    return tuple(moved.get(byte, chr(byte)) for byte in range(256))


CHAR_OF_BYTE: tuple[str, ...] = _alphabet()
"""The character of each byte: itself where it is printable, else one from U+0100 on."""

BYTE_OF_CHAR: dict[str, int] = {char: byte for byte, char in enumerate(CHAR_OF_BYTE)}

# For str.translate, which is fast; what is not of the alphabet becomes what is not of Latin-1.
_LATIN1 = dict.fromkeys(range(256), "�")
_LATIN1 |= {ord(char): chr(byte) for char, byte in BYTE_OF_CHAR.items()}

HUGGINGFACE_ORDER: tuple[int, ...] = tuple(sorted(range(256), key=CHAR_OF_BYTE.__getitem__))
"""The bytes in the order of their characters: the order in which ``BpeTrainer`` gives ids."""


def to_text(token: bytes) -> str:
    """Return a token in the printable alphabet.

    >>> to_text(b" the")
    'Ġthe'
    """
    return token.decode("latin-1").translate(CHAR_OF_BYTE)


def from_text(text: str) -> bytes:
    """Return the bytes of a token in the printable alphabet.

    Raises:
        KeyError: with the first character that is not of the alphabet.
    """
    try:
        return text.translate(_LATIN1).encode("latin-1")
    except UnicodeEncodeError as error:
        raise KeyError(text[error.start]) from None


def is_utf8(data: bytes) -> bool:
    """Return whether bytes are well-formed UTF-8."""
    try:
        data.decode()
    except UnicodeDecodeError:
        return False
    return True
