"""Which documents a mix takes: of each source the first ones, in the order of a hash.

The hash of a document depends on its id and the seed alone, or on its text where the record has no
id of its own. Other programs find the same with ``hashlib.blake2b(id, digest_size=8, person=b"bpe
mix", salt=seed.to_bytes(16, "big"))``, a number of 64 bits, big-endian. Of equal hashes, the first
in the corpus comes first.

So a source has one order, whatever the splits, workers, shares and budget; a larger budget keeps
all documents of a smaller one.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import groupby
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from pipelines.corpus.hashes import hashes

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    import numpy.typing as npt

    from pipelines.corpus.documents import Block
    from pipelines.corpus.inputs import InputFile
    from pipelines.corpus.splits import FileRange

_PERSON = b"bpe mix"


@dataclass(frozen=True, kw_only=True)
class MixSource:
    """A source of a mix.

    Attributes:
        name: as it was given.
        inputs: the numbers of its files, as ranges: first, and one more than the last.
    """

    name: str
    inputs: tuple[tuple[int, ...], ...]


@dataclass(frozen=True, kw_only=True)
class ChosenSource(MixSource):
    """What a mix takes of a source.

    Attributes:
        share: of all tokens that was asked for, from 0 to 1, as a fraction: ``7/10``.
        asked: tokens that this is.
        tokens: of the documents that are taken: as many as asked for, or a part of the last
            document more.
        documents: that are taken.
        available_tokens: of all its documents.
        available_documents: all of them.
        last_hash: of the last document that is taken: 16 hexadecimal digits.
        last_file: the number of its file.
        last_place: its place there. Of documents with its hash, those up to it are taken.
    """

    share: str
    asked: int
    tokens: int
    documents: int
    available_tokens: int
    available_documents: int
    last_hash: str
    last_file: int
    last_place: int

    @property
    def asked_share(self) -> float:
        """The share that was asked for, from 0 to 1."""
        return float(Fraction(self.share))


@dataclass(frozen=True, kw_only=True)
class Mix:
    """What a mix takes.

    Attributes:
        budget: tokens that the shares are of.
        sources: in the order of the option.
    """

    budget: int
    sources: tuple[ChosenSource, ...]

    @property
    def tokens(self) -> int:
        """Of all documents that are taken."""
        return sum(source.tokens for source in self.sources)

    @property
    def documents(self) -> int:
        """All that are taken."""
        return sum(source.documents for source in self.sources)

    @property
    def files(self) -> tuple[MixSource, ...]:
        """The sources alone."""
        return tuple(MixSource(name=one.name, inputs=one.inputs) for one in self.sources)

    @property
    def lasts(self) -> list[list[str | int]]:
        """What decides which documents are taken, as JSON values."""
        return [[one.last_hash, one.last_file, one.last_place] for one in self.sources]

    def takes(self, block: Block, seed: int) -> pa.BooleanArray:
        """For each document of a block, whether it is taken."""
        keys = mix_hashes(block, seed)
        files = block.file_indexes.to_numpy()
        places = block.places.to_numpy()
        of = self.sources_of(files)
        last_hash, last_file, last_place = self._last
        equal = (keys == last_hash[of]) & (
            (files < last_file[of]) | ((files == last_file[of]) & (places <= last_place[of]))
        )
        return pa.array((keys < last_hash[of]) | equal)

    def sources_of(self, files: npt.NDArray[np.int32]) -> npt.NDArray[np.int64]:
        """The number of the source of each file."""
        return self._owners.of(files)

    def is_last(
        self, files: npt.NDArray[np.int32], places: npt.NDArray[np.int64]
    ) -> npt.NDArray[np.bool_]:
        """Whether the document at each place of a file is the last one taken of its source."""
        _, last_file, last_place = self._last
        of = self.sources_of(files)
        found: npt.NDArray[np.bool_] = (files == last_file[of]) & (places == last_place[of])
        return found

    @cached_property
    def _owners(self) -> Owners:
        return Owners(self.sources)

    @cached_property
    def _last(self) -> tuple[npt.NDArray[np.uint64], npt.NDArray[np.int64], npt.NDArray[np.int64]]:
        return (
            np.array([int(one.last_hash, 16) for one in self.sources], np.uint64),
            np.array([one.last_file for one in self.sources], np.int64),
            np.array([one.last_place for one in self.sources], np.int64),
        )


class Owners:
    """Of which source each file is.

    Args:
        sources: of the mix; every file is of one.
    """

    def __init__(self, sources: Sequence[MixSource]) -> None:
        ranges = sorted((first, of) for of, one in enumerate(sources) for first, _ in one.inputs)
        self._firsts = np.array([first for first, _ in ranges], np.int64)
        self._of = np.array([of for _, of in ranges], np.int64)

    def of(self, files: npt.NDArray[np.int32]) -> npt.NDArray[np.int64]:
        """The number of the source of each of these files."""
        found: npt.NDArray[np.int64] = self._of[np.searchsorted(self._firsts, files, "right") - 1]
        return found


def asked_of(budget: int, share: Fraction) -> int:
    """The tokens of a source that are its share of the budget, rounded up."""
    return -(-share.numerator * budget // share.denominator)


def mix_hashes(block: Block, seed: int) -> npt.NDArray[np.uint64]:
    """The hash of each document of a block, which orders those of its source."""
    return hashes(block, person=_PERSON, salt=seed.to_bytes(16, "big"))


def sources_of(
    files: Sequence[InputFile | FileRange], names: Iterable[str]
) -> tuple[MixSource, ...]:
    """The sources of a mix, in the order of ``names``, over these files, one piece of each."""
    ranges: dict[str, list[tuple[int, ...]]] = {name: [] for name in names}
    for name, group in groupby(enumerate(files), lambda one: one[1].source):
        numbers = [number for number, _ in group]
        ranges[name].append((numbers[0], numbers[-1] + 1))
    return tuple(MixSource(name=name, inputs=tuple(found)) for name, found in ranges.items())
