"""Reading a directory in which files are taken meanwhile."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

from bpe.errors import BpeError
from pipelines.errors import JobError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

_TRIES = 20
_State = TypeVar("_State")
_Read = TypeVar("_Read")


def read_steadily(
    state: Callable[[], _State],
    names: Callable[[_State], Iterable[str]],
    read: Callable[[_State], _Read],
) -> _Read:
    """What is read of a directory; read again where something was taken away meanwhile.

    What was made of a file that changed is taken away, and so are sets of counts that were added
    up. Where nothing was, an error is one.

    Args:
        state: reads what is there.
        names: of what is read, in a state: what is missing in a later one was taken away.
        read: reads it.
    """
    later = state()
    for left in reversed(range(_TRIES)):
        now = later
        try:
            return read(now)
        except (JobError, BpeError):
            later = state()
            if not left or set(names(now)) <= set(names(later)):
                raise
    raise AssertionError("the last try returns or raises")
