"""The sources of a mix, and the files of each source."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import groupby
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from pipelines.corpus.files import InputFile
    from pipelines.corpus.splits import FileRange


@dataclass(frozen=True, kw_only=True)
class MixSource:
    """A source of a mix.

    Attributes:
        name: the name of the source.
        inputs: the numbers of its files, as ranges: the first, and one more than the last.
    """

    name: str
    inputs: tuple[tuple[int, ...], ...]


def sources_of(
    files: Sequence[InputFile | FileRange], names: Iterable[str]
) -> tuple[MixSource, ...]:
    """Return the sources of a mix, in the order of ``names``, with the numbers of their files."""
    ranges: dict[str, list[tuple[int, ...]]] = {name: [] for name in names}
    for name, group in groupby(enumerate(files), lambda one: one[1].source):
        numbers = [number for number, _ in group]
        ranges[name].append((numbers[0], numbers[-1] + 1))
    return tuple(MixSource(name=name, inputs=tuple(found)) for name, found in ranges.items())
