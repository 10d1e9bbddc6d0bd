"""Texts that are hard to cut, for tests under hypothesis and on real files."""

from __future__ import annotations

import functools
import sysconfig
from pathlib import Path

import regex
import unicodedata2
from hypothesis import strategies as st

from tests.shared_data import LONG

# Every alternative of every pattern, each class in one to four bytes, and what looks like it.
CHARACTERS = [
    *("'", "'s", "'S", "'ſ", "'t", "'RE", "'ve", "'vE", "'m", "'ll", "'lL", "'D", "’s"),
    *("s", "ſ", "K", "\N{KELVIN SIGN}", "a", "bc", "B", "CD", "é", "É", "ß", "ı", "İ"),
    *("ǅ", "ᾈ", "ʰ", "ˮ", "ª", "漢", "語", "ا", "ก", "𐐀", "𐐨", "𝒜", "𠀀"),
    *("\u0301", "\u0903", "\u20dd", "\U0001e130", "\ufe0f", "\u200d"),
    *("0", "12", "٣", "०", "Ⅷ", "½", "²", "〇", "𝟘"),
    *(" ", "  ", "\t", "\n", "\r", "\r\n", "\v", "\f", "\x1c", "\x1f", "\x85", "\xa0"),
    *("\u1680", "\u180e", "\u2003", "\u2028", "\u2029", "\u202f", "\u200b", "\u3000", "\ufeff"),
    *("!", "/", "//", "_", "-", "\x00", "\x7f", "…", "「", "🙂", "👩‍🚀", "\ue000", "\uffff"),
]

# Lone, cut off, overlong, surrogate and too large.
MALFORMED = [
    *(b"\x80", b"\xbf\xbf", b"\xc0\xaf", b"\xc1", b"\xc3", b"\xe2\x82", b"\xe0\x80\xaf"),
    *(b"\xed\xa0\x80", b"\xed\xb0\x80", b"\xf0\x9f\x99", b"\xf0\x82\x82\xac", b"\xf4\x90\x80\x80"),
    *(b"\xf5\x80\x80\x80", b"\xfe", b"\xff", b"'\xc5", b"\xc5\xbf"[1:]),
]


# The pattern of each class, and its categories.
CLASSES = {
    "".join(rf"\p{{{category}}}" for category in categories): categories
    for categories in map(str.split, ("Lu Lt", "Ll", "Lm Lo", "Mn Mc Me", "Nd Nl No", "Zs Zl Zp"))
}


@functools.cache
def is_doubtful(char: str) -> bool:
    """Return whether the installed ``regex`` has a character in another class than Unicode 16.0."""
    category = unicodedata2.category(char)
    return any(
        bool(regex.match(f"[{pattern}]", char)) != (category in categories)
        for pattern, categories in CLASSES.items()
    )


@functools.cache
def code_points() -> tuple[str, ...]:
    """All characters but surrogates: those below U+1000, and each 31st of the others.

    ``make test-long`` takes every one.
    """
    first, step = 0x1000, 1 if LONG else 31
    points = (*range(first), *range(first, 0x110000, step))
    return tuple(chr(c) for c in points if not 0xD800 <= c < 0xE000)


def every_code_point(*, without: str = "") -> tuple[str, str]:
    """The `code_points`, where the cuts around each tell its class.

    Returns:
        The assigned ones, each in many contexts, and all others (private ones too) in a few.
    """
    points = sorted(set(code_points()) - set(without))
    assigned, others = [], []
    for c in points:
        if unicodedata2.category(c)[0] == "C":
            others.append(f" {c}a")
        else:
            assigned.append(f"a{c}1 {c}Bb!!{c}Bb{c}{c}\n")
    return "".join(assigned), "".join(others)


def strings() -> st.SearchStrategy[str]:
    """Well-formed text: hard characters, and any others whose class is beyond doubt."""
    anything = st.characters(exclude_categories=["Cs"], codec="utf-8")
    anything = anything.filter(lambda char: not is_doubtful(char))
    return st.lists(st.sampled_from(CHARACTERS) | anything, max_size=24).map("".join)


def byte_strings() -> st.SearchStrategy[bytes]:
    """Any bytes: hard characters and malformed sequences, or pure noise."""
    encoded = [character.encode() for character in CHARACTERS]
    hard = st.lists(st.sampled_from([*encoded, *MALFORMED]), max_size=24).map(b"".join)
    return hard | st.binary(max_size=64)


def library_sources(size: int) -> list[bytes]:
    """Files of Python's standard library, evenly chosen until they make ``size`` bytes."""
    paths = sorted(Path(sysconfig.get_path("stdlib")).glob("*/*.py"))
    step = max(1, sum(path.stat().st_size for path in paths) // size)
    return [path.read_bytes() for path in paths[::step]]
