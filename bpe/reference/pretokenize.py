"""Pre-tokenizing by definition, the matches of a regular expression and nothing else; and counting.

Slow and obvious: what the scanners of the core are compared with. The package ``regex`` may know
a newer Unicode than they do, so newly assigned characters can differ; Python's lowercase letters
may be of an older one.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import pairwise

import regex
import unicodedata2

from bpe.normalizer import HAN, MARK, PREPENDING
from bpe.pretokenizer import LOSSY, NEVER_SPLIT, PATTERNS, PRETOKENIZERS, Pretokenizer


def split(
    pretokenizer: str | Pretokenizer, text: bytes, *, after_special: bool = False
) -> list[bytes]:
    """Return the pieces of a text.

    Args:
        pretokenizer: a pre-tokenizer or the name of one.
        text: any bytes; a byte that is not part of well-formed UTF-8 becomes a lone surrogate,
            which is neither letter, number, mark nor space.
        after_special: whether the text is what follows a special token.
    """
    cut = Pretokenizer(pretokenizer) if isinstance(pretokenizer, str) else pretokenizer
    characters = text.decode("utf-8", "surrogateescape")
    for step in cut.normalizer:
        if not (step == "ensure-first-mark" and after_special):
            characters = normalize(step, characters)
    pieces: list[str] = []
    for part, whole in _parts(characters, cut.never_split):
        pieces += [part] if whole else _cut(cut, part)
    return [piece.encode("utf-8", "surrogateescape") for piece in pieces]


def normalize(step: str, text: str) -> str:
    """Return a text after one step of a normalizer.

    A step may drop the text between malformed bytes, which then form a character. So between
    steps, and before the pre-tokenizer, a text is bytes.
    """
    changed = _changed(step, text).encode("utf-8", "surrogateescape")
    return changed.decode("utf-8", "surrogateescape")


def _changed(step: str, text: str) -> str:
    if step == "lowercase":
        return "".join(char.lower() for char in text)
    if step == "strip-accents":
        return "".join(char for char in text if unicodedata2.category(char)[0] != "M")
    if step == "strip-nonspacing":
        return "".join(char for char in text if unicodedata2.category(char) != "Mn")
    if step == "clean-text":
        text = "".join(" " if char in "\t\n\r" or _is_space(char) else char for char in text)
        return "".join(char for char in text if char != "\ufffd" and not _is_control(char))
    if step == "mark-spaces":
        return text.replace(" ", MARK)
    if step in PREPENDING:
        is_there = step != "prepend-mark" and text.startswith(MARK)
        return text if is_there or not text else MARK + text
    if step == "space-han":
        return "".join(f" {char} " if _is_han(char) else char for char in text)
    return str(unicodedata2.normalize(step.upper(), text))


def _is_space(char: str) -> bool:
    return str(unicodedata2.category(char)).startswith("Z")


def _is_control(char: str) -> bool:
    return unicodedata2.category(char) in ("Cc", "Cf", "Co")


def _is_han(char: str) -> bool:
    return any(first <= ord(char) <= last for first, last in HAN)


def _parts(text: str, never_split: tuple[str, ...]) -> list[tuple[str, bool]]:
    """Pieces between the matches of patterns that are never split, and the matches (True)."""
    parts, begin, position = [], 0, 0
    while position < len(text):
        matches = (
            regex.compile(NEVER_SPLIT.get(pattern, pattern)).match(text, position)
            for pattern in never_split
        )
        match = next((match for match in matches if match and match.group()), None)
        if match is None:
            position += 1
        else:
            parts += [(text[begin:position], False), (match.group(), True)]
            begin = position = match.end()
    return [*parts, (text[begin:], False)]


def _cut(pretokenizer: Pretokenizer, text: str) -> list[str]:
    pieces = [text] if text else []
    if pretokenizer.name is not None:
        return [part for piece in pieces for part in _by_name(pretokenizer.name, piece)]
    is_list = isinstance(pretokenizer.pattern, tuple)
    for step in pretokenizer.patterns:
        by = _by_name if is_list and step in PRETOKENIZERS else _isolated
        pieces = [part for piece in pieces for part in by(step, piece)]
    return pieces


def _by_name(name: str, text: str) -> list[str]:
    if name == "none":
        return [text]
    if name in LOSSY:
        matches: list[str] = regex.findall(PATTERNS[name], text)
        return matches
    return _isolated(PATTERNS[name], text)


def _isolated(pattern: str, text: str) -> list[str]:
    cuts = {0, len(text)}
    for match in regex.finditer(pattern, text):
        if match.group():
            cuts |= set(match.span())
    ordered = sorted(cuts)
    return [text[begin:end] for begin, end in pairwise(ordered)]


def count(
    texts: Iterable[bytes],
    *,
    pretokenizer: str | Pretokenizer,
    special_tokens: Sequence[bytes] = (),
) -> Counter[bytes]:
    """Return how often each pre-token occurs, in the order in which they occur first.

    Args:
        texts: any bytes.
        pretokenizer: a pre-tokenizer or the name of one.
        special_tokens: texts are cut at them (the longest where several begin); not counted.
    """
    longest_first = sorted(special_tokens, key=len, reverse=True)
    special = re.compile(b"|".join(map(re.escape, longest_first)) or b"(?!)")
    counts: Counter[bytes] = Counter()
    for text in texts:
        for number, segment in enumerate(special.split(text)):
            counts.update(split(pretokenizer, segment, after_special=number > 0))
    return counts
