"""Texts as bytes."""

from __future__ import annotations

from bpe.errors import EncodingError


def utf8(text: str | bytes, *, what: str = "the text") -> bytes:
    """A str as UTF-8, bytes as they are.

    Raises:
        EncodingError: a str has a lone surrogate; the message begins with ``what``.
        TypeError: it is neither.
    """
    if isinstance(text, bytes):
        return text
    if not isinstance(text, str):
        raise TypeError(f"{what} is {text!r:.60}, not a str or bytes")
    try:
        return text.encode()
    except UnicodeEncodeError as error:
        raise EncodingError(
            f"{what} has a lone surrogate at character {error.start}: {text[error.start]!r} has no "
            "UTF-8; give bytes, or replace it first"
        ) from None
