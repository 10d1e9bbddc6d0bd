"""Reading what can be read of a split; the files that cannot are set aside."""

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
    """Make something of those pieces that can be read.

    Args:
        pieces: of a split.
        make: makes it of some of them; where one cannot be read, again of each by itself.
        stopped: whether nobody needs the result any more.

    Returns:
        What was made, and the files set aside.

    Raises:
        JobError: as ``make``, where each piece by itself can be read.
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
