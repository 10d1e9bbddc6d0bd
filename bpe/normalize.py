"""Normalizers: what a text is changed into before it is cut.

Steps are named and applied in the order given. The normalization forms (Unicode Standard Annex 15)
come from the package ``unicodedata2``, so that every Python has the same version of Unicode.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import unicodedata2

from bpe.errors import PretokenizerError

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

NORMALIZERS: tuple[str, ...] = ("nfc", "nfd", "nfkc", "nfkd", "lowercase", "strip-accents")
"""The names of the steps.

``lowercase`` maps each character by itself (no rule for a final sigma); ``strip-accents`` drops
nonspacing marks (Mn), so that ``nfd`` before it takes the accents off letters.
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


def _strip_accents(text: str) -> str:
    return "".join(char for char in text if unicodedata2.category(char) != "Mn")


_STEPS = {
    "nfc": lambda text: unicodedata2.normalize("NFC", text),
    "nfd": lambda text: unicodedata2.normalize("NFD", text),
    "nfkc": lambda text: unicodedata2.normalize("NFKC", text),
    "nfkd": lambda text: unicodedata2.normalize("NFKD", text),
    "lowercase": _lowercase,
    "strip-accents": _strip_accents,
}
