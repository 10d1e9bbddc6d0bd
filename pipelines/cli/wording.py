"""Messages of the library, in the words of the command line.

The library names what is to be given as an argument, ``vocab_size 10`` or ``leave_out=['a', 'b']``;
who typed a command is told the option.
"""

from __future__ import annotations

import re

_ARGUMENTS = {
    "leave_out": "--leave-out",
    "max_merges": "--max-merges",
    "min_frequency": "--min-frequency",
    "pretokenizer": "--pretokenizer",
    "prune_below": "--prune-below",
    "track_order": "--track-order",
    "vocab_size": "--vocab-size",
}
_NAMED = re.compile(
    rf"(?<![\w./-])({'|'.join(_ARGUMENTS)})(?:=(True|'[^']*'|\[[^\[\]]*\])|(?= -?[0-9]))"
)


def as_options(message: str) -> str:
    """``message`` with options in the place of arguments.

    >>> as_options("vocab_size 10 is too small; give leave_out=['normalizer', 'never-split']")
    '--vocab-size 10 is too small; give --leave-out normalizer --leave-out never-split'
    """
    return _NAMED.sub(_as_option, message)


def _as_option(match: re.Match[str]) -> str:
    option = _ARGUMENTS[match[1]]
    values = re.findall(r"'([^']*)'", match[2] or "")
    return " ".join(f"{option} {value}" for value in values) or option
