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
_WILDCARDS = {"**/": "(?:.*/)?", "**": ".*", "*": "[^/]*", "?": "[^/]"}
# Two stars and a slash are a token of their own where a name begins.
_TOKEN = re.compile(r"(?<![^/])\*\*/|\*\*|\[(?P<not>!?)(?P<members>\]?[^\]]*)\]|.", re.DOTALL)
# README and README.md in any case, README_fr.md and LICENSE-MIT in capitals alone: license_plates
# is a corpus.
_ABOUT_DATA = re.compile(r"(README|LICEN[CS]E).*|((?i:readme|licen[cs]e))(\..*)?", re.DOTALL)


@functools.lru_cache(maxsize=256)
def matcher(pattern: str) -> Callable[[str], object]:
    """Return a predicate that tests whether ``pattern`` matches a path.

    >>> [bool(matcher("a/**/*.txt")(path)) for path in ("a/1.txt", "a/b/c/1.txt", "b/1.txt")]
    [True, True, False]

    Raises:
        InputError: the pattern holds an invalid set, such as ``[z-a]``.
    """
    try:
        return re.compile(_TOKEN.sub(_translated, pattern), re.DOTALL).fullmatch
    except re.error as error:
        raise InputError(f"{pattern!r} is not a valid pattern: {error}") from error


def _translated(token: re.Match[str]) -> str:
    """Return a token of a pattern as a regular expression."""
    if token["members"]:
        # The minus of a range is not escaped.
        ranges = re.findall(r"(.)-(.)|(.)", token["members"], re.DOTALL)
        members = "".join("-".join(map(re.escape, filter(None, ends))) for ends in ranges)
        return f"(?!/)[{'^' if token['not'] else ''}{members}]"
    return _WILDCARDS.get(token[0]) or re.escape(token[0])


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
