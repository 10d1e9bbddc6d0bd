"""Read the readable files of a split, and set the other files aside."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, TypeVar

from bpe.errors import BpeError
from pipelines import storage
from pipelines.errors import ConfigError, InputError
from pipelines.storage import join
from pipelines.totals import SetAside

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from pipelines.corpus.splits import FileRange, Split

_Made = TypeVar("_Made")


def readable(
    split: Split,
    make: Callable[[Split], _Made],
    *,
    directory: str,
    stopped: Callable[[], bool],
) -> tuple[_Made, tuple[SetAside, ...]]:
    """Make a result from the pieces of a split that can be read.

    Args:
        split: the split.
        make: makes a result from a split; after an error, called with each piece alone.
        directory: the output directory, from which dead letters of failed calls are removed.
        stopped: returns whether the job has stopped.

    Returns:
        The result, and the files set aside.

    Raises:
        JobError: ``make`` fails for the pieces together, but for no piece alone.
    """

    def make_of(pieces: Iterable[FileRange]) -> _Made:
        storage.remove(join(directory, split.dead_letters_file))
        return make(replace(split, pieces=tuple(pieces)))

    try:
        return make_of(split.pieces), ()
    except (InputError, ConfigError, BpeError) as error:
        if stopped():
            raise
        first = error
    good, aside = [], []
    for piece in split.pieces:
        try:
            make_of([piece])
        except (InputError, ConfigError, BpeError) as error:  # noqa: PERF203 - few ever fail
            aside.append(SetAside(name=piece.name, reason=str(error)))
        else:
            good.append(piece)
    if not aside:
        raise first  # together they hold one bad record more than there may be
    return make_of(good), tuple(aside)
