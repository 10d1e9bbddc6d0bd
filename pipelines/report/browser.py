"""Tokenizers in a page of the report: ``tokenizer.js``, and its data as JSON values."""

from __future__ import annotations

import base64
import functools
from importlib.resources import files
from itertools import groupby
from typing import TYPE_CHECKING, Any, NamedTuple

import pyarrow as pa
import unicodedata2

from bpe.explain import is_single, merge_counts
from bpe.models import ByteLevel, CharacterLevel
from bpe.normalizer import HAN, PREPENDING, normalize_column
from bpe.pretokenizer import PRETOKENIZERS
from bpe.special_tokens import found_in_normalized
from bpe.vocabulary import unspelled_ids

if TYPE_CHECKING:
    from collections.abc import Iterable

    from bpe.models import Model
    from bpe.tokenizer import Tokenizer

MOST_TOKENS = 500_000
MOST_BYTES = 32_000_000  # of all tokens
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


def script() -> str:
    """The text of ``tokenizer.js``, which defines ``makeTokenizer``."""
    return files(__package__).joinpath("tokenizer.js").read_text("utf-8")


def unsupported(tokenizer: Tokenizer) -> str | None:
    """Why the page cannot run this tokenizer; None where it can."""
    cut = tokenizer.pretokenizer
    if cut.never_split:
        return f"it never splits {', '.join(map(repr, cut.never_split))}"
    for pattern in cut.patterns:
        if pattern not in PRETOKENIZERS:
            return f"it cuts text with a regular expression of its own, {pattern!r:.200}"
    for step in cut.normalizer:
        if step == "mark-spaces" or step in PREPENDING:
            return f"its normalizer has the step {step}"
    if isinstance(tokenizer.model, CharacterLevel) and (
        tokenizer.model.byte_fallback or tokenizer.model.fuse_unknown
    ):
        return "characters without a token become bytes, or one unknown token together"
    if any(flags.change_matches for flags in tokenizer.token_flags.values()):
        return "a token takes the whitespace around it, or is found as a word of its own only"
    if found_in_normalized(tokenizer.token_flags, cut.normalizer):
        return "a token is searched for in normalized text"
    if tokenizer.superwords:
        return "it has superwords, tokens of several words"
    return too_large(tokenizer)


def too_large(tokenizer: Tokenizer) -> str | None:
    """Why the tokens are not in the page; None where they are."""
    size = sum(len(token) for token in tokenizer.tokens if token is not None)
    if len(tokenizer.tokens) > MOST_TOKENS or size > MOST_BYTES:
        return (
            f"its {len(tokenizer):,} tokens of {size:,} bytes are more than the {MOST_TOKENS:,} or "
            f"{MOST_BYTES:,} bytes that fit in a page"
        )
    return None


def tokenizer_data(tokenizer: Tokenizer) -> dict[str, Any]:
    """What ``makeTokenizer`` of ``tokenizer.js`` takes.

    Raises:
        ValueError: the page cannot run this tokenizer (`unsupported`).
    """
    reason = unsupported(tokenizer)
    if reason is not None:
        raise ValueError(f"the tokenizer cannot run in a page: {reason}")
    return {**_tokens(tokenizer), **_settings(tokenizer), "unicode": unicode_tables()}


class Named(NamedTuple):
    """A tokenizer, and how the page calls it."""

    name: str
    tokenizer: Tokenizer


def page_data(first: Named, beside: Named | None) -> dict[str, Any] | None:
    """What ``page.js`` takes; None where the page has nothing to do.

    ``first``, ``beside``: name, tokens and merges of each, with ``model`` and what else is needed
    to encode only where the page can run it; absent where the page does not use it. ``unicode``:
    the tables, once, where one of them runs. ``origins``: what else is needed to search the tokens
    of the first.
    """
    data: dict[str, Any] = {}
    runs = False
    for key, shown in (("first", first), ("beside", beside)):
        if shown is None:
            continue
        named = {"name": shown.name, **_tokens(shown.tokenizer)}
        if unsupported(shown.tokenizer) is None:
            runs = True
            data[key] = {**named, **_settings(shown.tokenizer)}
        elif key == "first" and too_large(shown.tokenizer) is None:
            data[key] = named
    if "first" in data:
        data["origins"] = _origins(first.tokenizer)
    if runs:
        data["unicode"] = unicode_tables()
    return data or None


def _tokens(tokenizer: Tokenizer) -> dict[str, Any]:
    """The tokens, and what they are merged from."""
    merges = (id_ for left, right, _ in tokenizer.merges for id_ in (left, right))
    return {
        "special": dict(tokenizer.special_tokens),
        "added": dict(tokenizer.added_tokens),
        "lengths": _numbers(len(token or b"") for token in tokenizer.tokens),
        "tokens": _base64(b"".join(token or b"" for token in tokenizer.tokens)),
        "merges": _numbers(merges),
    }


def _origins(tokenizer: Tokenizer) -> dict[str, Any]:
    """Which tokens are symbols before any merge, and how often the pair of each merge occurred.

    0 where that is not known; no number at all where it is known of none.
    """
    counts = merge_counts(tokenizer)
    model = tokenizer.model
    return {
        "symbols": [
            id_
            for id_, token in enumerate(tokenizer.tokens)
            if token is not None and is_single(token, model)
        ],
        "counts": _numbers(counts.get(rank, 0) for rank in range(len(tokenizer.merges)))
        if counts
        else "",
    }


def _settings(tokenizer: Tokenizer) -> dict[str, Any]:
    """What is needed to encode, beside the tokens and the tables of Unicode."""
    cut = tokenizer.pretokenizer
    return {
        "model": _model(tokenizer.model, tokenizer),
        "pretokenizers": list(cut.patterns) if cut.name is None else [cut.name],
        "normalizer": list(cut.normalizer),
        "unspelled": unspelled_ids(
            special_tokens=tokenizer.special_tokens,
            added_tokens=tokenizer.added_tokens,
            merging=(id_ for merge in tokenizer.merges for id_ in merge),
            model=tokenizer.model,
            unknown=_unknown(tokenizer.model, tokenizer),
        ),
        "ignoreMerges": tokenizer.ignore_merges,
    }


def _model(model: Model, tokenizer: Tokenizer) -> dict[str, Any]:
    if isinstance(model, ByteLevel):
        return {"type": "bytes"}
    unknown = _unknown(model, tokenizer)
    if isinstance(model, CharacterLevel):
        return {"type": "characters", "endOfWord": model.end_of_word, "unknown": unknown}
    return {
        "type": "wordpiece",
        "prefix": model.prefix,
        "unknown": unknown,
        "maxCharacters": model.max_characters,
    }


def _unknown(model: Model, tokenizer: Tokenizer) -> int | None:
    unknown = None if isinstance(model, ByteLevel) else model.unknown
    return None if unknown is None else tokenizer.token_id(unknown.encode())


def _numbers(numbers: Iterable[int]) -> str:
    """Base64 of numbers in LEB128: seven bits a byte, the lowest first."""
    data = bytearray()
    for number in numbers:
        while number >= 0x80:
            data.append(number & 0x7F | 0x80)
            number >>= 7  # noqa: PLW2901  # what is left of it
        data.append(number)
    return _base64(bytes(data))


def _base64(data: bytes) -> str:
    return base64.b64encode(data).decode("ascii")


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
