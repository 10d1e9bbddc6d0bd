"""Read the readable files of a split, and set the other files aside."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

from bpe.errors import BpeError
from pipelines.errors import ConfigError, InputError
from pipelines.totals import SetAside

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from pipelines.corpus.splits import FileRange

_Made = TypeVar("_Made")


def readable(
    pieces: Sequence[FileRange],
    make: Callable[[Sequence[FileRange]], _Made],
    *,
    stopped: Callable[[], bool],
) -> tuple[_Made, tuple[SetAside, ...]]:
    """Make a result from the pieces of a split that can be read.

    Args:
        pieces: the pieces of a split.
        make: makes a result from pieces; after an error, called with each piece alone.
        stopped: returns whether the job has stopped.

    Returns:
        The result, and the files set aside.

    Raises:
        JobError: ``make`` fails for the pieces together, but for no piece alone.
    """
    try:
        return make(pieces), ()
    except (InputError, ConfigError, BpeError) as error:
        if stopped():
            raise
        first = error
    good, aside = [], []
    for piece in pieces:
        try:
            make([piece])
        except (InputError, ConfigError, BpeError) as error:  # noqa: PERF203 - few ever fail
            aside.append(SetAside(name=piece.name, reason=str(error)))
        else:
            good.append(piece)
    if not aside:
        raise first  # together they hold one bad record more than there may be
    return make(good), tuple(aside)
