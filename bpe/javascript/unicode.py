"""The tables of Unicode that the JavaScript needs, in few characters."""

from __future__ import annotations

import functools
from itertools import groupby
from typing import Any

import pyarrow as pa
import unicodedata2

from bpe.normalize import HAN, normalize_column

_DIGITS = "0123456789abcdefghijklmnopqrstuvwxyz"
_CODE_POINTS = 0x110000
_LETTERS_END = 0x20000  # beyond are ideographs, and no capital letters
# A letter for the general categories that are never told apart; an unassigned one is X.
_CATEGORIES = {
    "U": "Lu Lt",
    "L": "Ll",
    "O": "Lm Lo",
    "N": "Mn",
    "M": "Mc Me",
    "D": "Nd Nl No",
    "C": "Cc Cf Co",
    "X": "Cn Cs",
}
_LETTERS = {one: letter for letter, several in _CATEGORIES.items() for one in several.split()}


@functools.cache
def unicode_tables() -> dict[str, Any]:
    """What ``makeUnicode`` of ``tokenizer.js`` takes, as JSON values.

    ``categories``: for each run of code points its length in base 36 (none for 1) and a capital
    letter; ``lower``: small letters of capital ones, as runs [first, count, step, distance];
    ``han``: [first, last] of Chinese characters; ``version`` of Unicode.
    """
    letters = (_letter(unicodedata2.category(chr(point))) for point in range(_CODE_POINTS))
    runs = ((sum(1 for _ in run), letter) for letter, run in groupby(letters))
    return {
        "version": unicodedata2.unidata_version,
        "categories": "".join(
            (_base36(size) if size > 1 else "") + letter for size, letter in runs
        ),
        "lower": _lower(),
        "han": [list(block) for block in HAN],
    }


def _letter(category: str) -> str:
    return _LETTERS.get(category, category[0])


def _base36(number: int) -> str:
    digits = ""
    while number:
        number, digit = divmod(number, 36)
        digits = _DIGITS[digit] + digits
    return digits


def _lower() -> list[list[int]]:
    """As the core maps them, but for U+0130, which becomes two characters."""
    points = [point for point in range(_LETTERS_END) if not 0xD800 <= point < 0xE000]
    column = pa.array([chr(point) for point in points], pa.large_string())
    small = normalize_column(column, ("lowercase",)).cast(pa.large_string()).to_pylist()
    distances = {
        point: ord(lower) - point
        for point, lower in zip(points, small, strict=True)
        if point != 0x130 and ord(lower) != point
    }
    runs: list[list[int]] = []
    for point, distance in distances.items():
        if runs and runs[-1][3] == distance:
            first, count, step, _ = runs[-1]
            if count == 1 or point == first + count * step:
                runs[-1] = [first, count + 1, point - first if count == 1 else step, distance]
                continue
        runs.append([point, 1, 1, distance])
    return runs
