"""Messages of the library, in the words of the command line.

The library names what is to be given as an argument: ``vocab_size 10``, ``leave_out=['a', 'b']``,
or, in errors of ``pipelines``, a name between backticks. Who typed a command is told the option.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Container

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
_QUOTED = re.compile(r"`([a-z]+(?:_[a-z]+)*)`")
# Arguments whose option has another name.
_OTHERWISE = {"beam_args": "--", "every": "--drift-every", "shared_paths": "--shared-path"}


def as_options(message: str, options: Container[str]) -> str:
    """``message`` with options in the place of arguments.

    Args:
        message: of an error.
        options: the names of all options, as arguments.

    >>> as_options("vocab_size 10 is too small; give leave_out=['normalizer', 'never-split']", ())
    '--vocab-size 10 is too small; give --leave-out normalizer --leave-out never-split'
    >>> as_options("replace it with `overwrite`, or name `another_one`", {"overwrite"})
    'replace it with --overwrite, or name `another_one`'
    """

    def named(match: re.Match[str]) -> str:
        option = f"--{match[1]}".replace("_", "-")
        return option if match[1] in options else _OTHERWISE.get(match[1], match[0])

    return _NAMED.sub(_as_option, _QUOTED.sub(named, message))


def _as_option(match: re.Match[str]) -> str:
    option = _ARGUMENTS[match[1]]
    values = re.findall(r"'([^']*)'", match[2] or "")
    return " ".join(f"{option} {value}" for value in values) or option
