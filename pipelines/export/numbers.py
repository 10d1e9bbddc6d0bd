"""The numbers that choose and order documents: 64 bits, the same on every runner."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from bpe.splitmix import mix64, numbers_at
from pipelines.corpus.keys import seed64

if TYPE_CHECKING:
    import numpy.typing as npt

    from bpe.splitmix import Hashes


def choice_hashes(keys: Hashes, *, source: str, seed: int) -> Hashes:
    """Return the hashes by which a source's documents are chosen, smallest first."""
    return mix64(keys ^ seed64(f"choose {seed} {source}"))


def shuffle_hashes(
    rows: npt.NDArray[np.int64], *, seed: int, source: str, epoch: int, file: str
) -> Hashes:
    """Return the hashes by which documents are shuffled, smallest first.

    Args:
        rows: the rows of the documents in the part ``file``, from 0.
        seed: the seed of the shuffle.
        source: the name of the source.
        epoch: how often the documents of the source were taken before.
        file: the name of the part below the directory of the source.
    """
    return numbers_at(rows, start=seed64(f"shuffle {seed} {source} {epoch} {file}"))


def range_of(hashes: Hashes, ranges: int) -> npt.NDArray[np.int64]:
    """Return the number of each hash's range, of at most 2^32 equal ranges of 64 bits."""
    found: npt.NDArray[np.uint64] = ((hashes >> np.uint64(32)) * np.uint64(ranges)) >> np.uint64(32)
    return found.astype(np.int64)
