"""Normalizers: what a text is changed into before it is cut.

Steps are named and applied in the order given. The normalization forms (Unicode Standard Annex 15)
come from the package ``unicodedata2``, so that every Python has the same version of Unicode.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import unicodedata2

from bpe.errors import PretokenizerError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

NORMALIZERS: tuple[str, ...] = (
    "nfc",
    "nfd",
    "nfkc",
    "nfkd",
    "lowercase",
    "strip-accents",
    "strip-nonspacing",
    "clean-text",
    "space-han",
)
"""The names of the steps.

``lowercase`` maps each character by itself (no rule for a final sigma). ``strip-accents`` drops
all marks (M), as Hugging Face's ``StripAccents`` does, and ``strip-nonspacing`` those that take no
room (Mn), as BERT's tokenizer does, so that ``nfd`` before it takes the accents off letters.
``clean-text`` and ``space-han`` are BERT's too: control characters are dropped and white space
becomes a space; Chinese characters get a space on either side.
"""


def check_normalizer(steps: Iterable[str]) -> tuple[str, ...]:
    """The steps as a tuple.

    Raises:
        PretokenizerError: they are one str, or one is no name of :data:`NORMALIZERS`.
    """
    if isinstance(steps, str):
        raise PretokenizerError(f"the normalizer is one str, {steps!r}: give a list, [{steps!r}]")
    checked = tuple(steps)
    for step in checked:
        if step not in NORMALIZERS:
            raise PretokenizerError(f"unknown normalizer {step!r}; valid: {', '.join(NORMALIZERS)}")
    return checked


def normalize(text: bytes, steps: Sequence[str]) -> bytes:
    """A text after all steps; bytes that are not well-formed UTF-8 stay as they are."""
    if not steps:
        return text
    characters = text.decode("utf-8", "surrogateescape")
    for step in steps:
        characters = _STEPS[step](characters)
    return characters.encode("utf-8", "surrogateescape")


def _lowercase(text: str) -> str:
    return "".join(map(str.lower, text))


class _Each(dict[int, "str | None"]):
    """For str.translate: what becomes of each character, found out when it is first met."""

    def __init__(self, change: Callable[[str], str | None]) -> None:
        self._change = change

    def __missing__(self, point: int) -> str | None:
        changed = self[point] = self._change(chr(point))
        return changed


def _without(*categories: str) -> _Each:
    """Drops the characters whose general category begins so."""
    return _Each(lambda char: None if unicodedata2.category(char).startswith(categories) else char)


def _clean(char: str) -> str | None:
    if char in "\t\n\r" or unicodedata2.category(char).startswith("Z"):
        return " "
    # Unassigned characters stay; a malformed byte, a surrogate here, does too.
    return None if char == "\ufffd" or unicodedata2.category(char) in _CONTROLS else char


def _space_han(char: str) -> str:
    point = ord(char)
    return f" {char} " if any(first <= point <= last for first, last in _HAN) else char


_CONTROLS = frozenset({"Cc", "Cf", "Co"})
# "Chinese characters" of Google's BERT, tokenization.py: blocks of ideographs, as of Unicode 8.
_HAN = (
    (0x3400, 0x4DBF),
    (0x4E00, 0x9FFF),
    (0xF900, 0xFAFF),
    (0x20000, 0x2A6DF),
    (0x2A700, 0x2B81F),
    (0x2B920, 0x2CEAF),
    (0x2F800, 0x2FA1F),
)
_MARKS, _NONSPACING = _without("M"), _without("Mn")
_CLEANED, _SPACED = _Each(_clean), _Each(_space_han)

_STEPS: dict[str, Callable[[str], str]] = {
    "nfc": lambda text: unicodedata2.normalize("NFC", text),
    "nfd": lambda text: unicodedata2.normalize("NFD", text),
    "nfkc": lambda text: unicodedata2.normalize("NFKC", text),
    "nfkd": lambda text: unicodedata2.normalize("NFKD", text),
    "lowercase": _lowercase,
    "strip-accents": lambda text: text.translate(_MARKS),
    "strip-nonspacing": lambda text: text.translate(_NONSPACING),
    "clean-text": lambda text: text.translate(_CLEANED),
    "space-han": lambda text: text.translate(_SPACED),
}
