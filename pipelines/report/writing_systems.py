"""Kinds of tokens: the script of their letters, digits, punctuation, parts of characters."""

from __future__ import annotations

import functools

import regex
import unicodedata2

PARTS = "parts of characters"
DIGITS = "digits"
MARKS = "punctuation and symbols"
WHITE = "white space"
OTHER = "other letters"

# By the letters that are most written; all others are OTHER. Names of the Unicode Standard
# (UAX 24), whose data the package regex has.
_SCRIPTS = (
    *("Latin", "Greek", "Cyrillic", "Armenian", "Hebrew", "Arabic", "Syriac", "Thaana", "Nko"),
    *("Devanagari", "Bengali", "Gurmukhi", "Gujarati", "Oriya", "Tamil", "Telugu", "Kannada"),
    *("Malayalam", "Sinhala", "Thai", "Lao", "Tibetan", "Myanmar", "Georgian", "Hangul"),
    *("Ethiopic", "Cherokee", "Canadian_Aboriginal", "Khmer", "Mongolian", "Hiragana"),
    *("Katakana", "Bopomofo", "Han", "Yi", "Javanese", "Balinese", "Tifinagh", "Vai", "Adlam"),
)
_ANY = regex.compile("|".join(rf"(?P<{name}>\p{{Script={name}}})" for name in _SCRIPTS))


def kind_of(token: bytes) -> str:
    r"""Return the kind of a token: by its first letter, else by its other characters.

    Args:
        token: without what marks the beginning or end of words.

    >>> kind_of(" été".encode()), kind_of(b"12"), kind_of(b"\xe6\xbc")
    ('Latin', 'digits', 'parts of characters')
    """
    try:
        text = token.decode()
    except UnicodeDecodeError:
        return PARTS
    others = set()
    for char in text:
        kind = _kind(char)
        if kind not in (WHITE, MARKS, DIGITS):
            return kind
        others.add(kind)
    return next((kind for kind in (DIGITS, MARKS) if kind in others), WHITE)


@functools.cache
def _kind(char: str) -> str:
    category = unicodedata2.category(char)
    if category[0] in "LM":
        found = _ANY.match(char)
        return OTHER if found is None else str(found.lastgroup).replace("_", " ")
    if category[0] == "N":
        return DIGITS
    return WHITE if category[0] == "Z" or char in "\t\n\v\f\r\x85" else MARKS
