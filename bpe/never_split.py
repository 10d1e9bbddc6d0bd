"""Patterns never split: what matches one is a pre-token by itself, and no merge cuts it."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING

import regex

from bpe.errors import PretokenizerError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

NEVER_SPLIT: dict[str, str] = {
    # Up to white space, a quote or an angle bracket; the punctuation of the sentence stays outside.
    "url": r"""(?i:(?:https?|ftp)://|www\.)[^\s<>"]*[^\s<>"'.,;:!?()\[\]{}]""",
    # ASCII addresses with a dot in the domain. It begins where such a run begins: linear time.
    "email": r"(?<![A-Za-z0-9._%+-])[A-Za-z0-9._%+-]++@[A-Za-z0-9-]++(?:\.[A-Za-z0-9-]++)+",
}
"""Patterns with a name."""


@functools.lru_cache(maxsize=64)
def compiled(pattern: str) -> regex.Pattern[str]:
    """A regular expression of the package ``regex``.

    Raises:
        PretokenizerError: it does not compile.
    """
    try:
        return regex.compile(pattern)
    except regex.error as error:
        raise PretokenizerError(f"the pattern {pattern!r} does not compile: {error}") from error


def check_never_split(patterns: Iterable[str]) -> tuple[str, ...]:
    """The patterns as a tuple.

    Raises:
        PretokenizerError: they are one str, or one does not compile or matches the empty text.
    """
    if isinstance(patterns, str):
        raise PretokenizerError(
            f"never_split is one str, {patterns!r}: give a list, [{patterns!r}]"
        )
    checked = tuple(patterns)
    for pattern in checked:
        if not isinstance(pattern, str) or not pattern:
            raise PretokenizerError(
                f"never_split holds {pattern!r}: give {', '.join(NEVER_SPLIT)} or a regular "
                "expression"
            )
        if _compiled(pattern).fullmatch(""):
            raise PretokenizerError(
                f"never_split {pattern!r} matches nothing at all: make it longer"
            )
    return checked


def is_whole(text: str, patterns: Sequence[str]) -> bool:
    """Whether a pattern matches all of a pre-token."""
    return any(_compiled(pattern).fullmatch(text) for pattern in patterns)


def wholes(text: str, patterns: Sequence[str]) -> Iterator[tuple[int, int]]:
    """The matches in a text: the leftmost, and of those that begin there that of the first pattern.

    Matches of length zero are ignored.

    Yields:
        (begin, end), in characters.

    Raises:
        PretokenizerError: what a pattern matches is not matched by it when it stands alone: it
            looks at what is around it.
    """
    position = 0
    found = {pattern: _next(pattern, text, 0) for pattern in patterns}
    while True:
        for pattern, match in found.items():
            if match is not None and match.start() < position:
                found[pattern] = _next(pattern, text, position)
        best = min(
            ((match.start(), i, match) for i, match in enumerate(found.values()) if match),
            default=None,
        )
        if best is None:
            return
        match = best[2]
        if match.re.fullmatch(match.group()) is None:
            raise PretokenizerError(
                f"never_split {match.re.pattern!r} matches {match.group()!r:.60} only for what "
                "stands around it: a pattern must match what is never split by itself"
            )
        yield match.span()
        position = match.end()


def _next(pattern: str, text: str, position: int) -> regex.Match[str] | None:
    matches = _compiled(pattern).finditer(text, position)
    return next((match for match in matches if match.end() > match.start()), None)


def _compiled(pattern: str) -> regex.Pattern[str]:
    return compiled(NEVER_SPLIT.get(pattern, pattern))
