"""Match paths with glob patterns, and choose the matches that are inputs by convention.

``*`` is any text without ``/``, ``?`` one character but ``/``, ``[abc]``, ``[a-z]`` and ``[!abc]``
one character of a set, ``**`` any text, and ``**/`` any number of folders, none included. Every
other character matches itself, a backslash too.
"""

from __future__ import annotations

import functools
import re
from typing import TYPE_CHECKING

from pipelines.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Callable

GLOB_CHARACTERS = re.compile(r"[*?\[]")
MARKERS = frozenset(
    {
        "_SUCCESS",
        "_metadata",
        "_common_metadata",
        "_temporary",
        "_delta_log",
        "_spark_metadata",
        "__pycache__",
    }
)
# README and README.md in any case, README_fr.md and LICENSE-MIT in capitals alone: license_plates
# is a corpus.
_ABOUT_DATA = re.compile(r"(README|LICEN[CS]E).*|((?i:readme|licen[cs]e))(\..*)?", re.DOTALL)


def is_glob(pattern: str) -> bool:
    """Return whether any character of ``pattern`` is a wildcard."""
    return GLOB_CHARACTERS.search(pattern) is not None


def matcher(pattern: str) -> Callable[[str], bool]:
    """Return a predicate that tests whether ``pattern`` matches a path.

    >>> [matcher("a/**/*.txt")(path) for path in ("a/1.txt", "a/b/c/1.txt", "b/1.txt")]
    [True, True, False]

    Raises:
        InputError: the pattern holds an invalid set, such as ``[z-a]``.
    """
    expression = _compiled(pattern)
    return lambda path: expression.fullmatch(path) is not None


@functools.lru_cache(maxsize=256)
def _compiled(pattern: str) -> re.Pattern[str]:
    pieces = []
    place = 0
    while place < len(pattern):
        if pattern.startswith("**/", place) and (place == 0 or pattern[place - 1] == "/"):
            pieces.append("(?:.*/)?")
            place += 3
        elif pattern.startswith("**", place):
            pieces.append(".*")
            place += 2
        elif pattern[place] == "*":
            pieces.append("[^/]*")
            place += 1
        elif pattern[place] == "?":
            pieces.append("[^/]")
            place += 1
        elif (members := re.compile(r"\[(!?)(\]?[^\]]*)\]").match(pattern, place)) and members[2]:
            pieces.append(f"(?!/)[{'^' if members[1] else ''}{_escaped(members[2])}]")
            place = members.end()
        else:
            pieces.append(re.escape(pattern[place]))
            place += 1
    try:
        return re.compile("".join(pieces), re.DOTALL)
    except re.error as error:
        raise InputError(f"{pattern!r} is not a valid pattern: {error}") from error


def _escaped(members: str) -> str:
    """Escape the members of a set, but for the minus of a range."""
    return re.sub(
        r"(.)-(.)|(.)",
        lambda found: "-".join(re.escape(end) for end in found.groups() if end is not None),
        members,
        flags=re.DOTALL,
    )


def is_visible(relative: str, *, about_data: bool) -> bool:
    """Return whether a match below a folder is an input by convention.

    Args:
        relative: the path below the folder that is walked.
        about_data: whether a README or licence counts as an input.
    """
    names = relative.split("/")
    if any(name.startswith(".") or name in MARKERS for name in names):
        return False
    return about_data or not _ABOUT_DATA.fullmatch(names[-1])
