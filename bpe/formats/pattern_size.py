"""How large a regular expression gets when it is compiled: that of a stranger must stay small.

The package ``regex`` writes repetitions out, so that ``(?:a{9999}){9999}`` takes gigabytes.
"""

from __future__ import annotations

import re

_MAX_SIZE = 4096
_MAX_DEPTH = 50

_TOKEN = re.compile(
    r"""
      \\[pPNxuU]\{[^}]*\} | \\.           # an escape
    | \[\^?\]?(?:\\.|[^\]\\])*\]          # a set
    | \{(?P<least>\d*)(?P<comma>,)?(?P<most>\d*)\}  # a repetition
    | .
    """,
    re.VERBOSE | re.DOTALL,
)


def check_size(pattern: str) -> None:
    """Refuse patterns that nest deeply, or are long once their repetitions are written out.

    Raises:
        ValueError: the pattern is one of them.
    """
    groups = [0]  # the size of each open group
    last = 0  # that of the last element
    for token in _TOKEN.finditer(pattern):
        text = token[0]
        if text == "(":
            groups.append(0)
            last = 0
        elif text == ")" and len(groups) > 1:
            last = groups.pop()
            groups[-1] += last
        elif text[0] == "{" and len(text) > 1 and (token["least"] or token["most"]):
            times = max(_count(token["least"]), _count(token["most"]))
            groups[-1] += last * (times - 1)
            last *= times
        else:
            last = 1
            groups[-1] += 1
        if len(groups) > _MAX_DEPTH or groups[-1] > _MAX_SIZE:
            raise ValueError(
                f"the pattern {pattern[:60]!r} nests more than {_MAX_DEPTH} deep, or has more than "
                f"{_MAX_SIZE} elements with its repetitions written out"
            )


def _count(digits: str) -> int:
    return min(int(digits[:7] or 1), _MAX_SIZE + 1) if len(digits) < 8 else _MAX_SIZE + 1
