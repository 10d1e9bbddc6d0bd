"""The numbers that choose and order documents: 64 bits, the same on every runner."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    from fractions import Fraction

Hashes: TypeAlias = npt.NDArray[np.uint64]
_GOLDEN = np.uint64(0x9E3779B97F4A7C15)


def seed64(text: str) -> np.uint64:
    """The first eight bytes, little-endian, of the SHA-256 of a text."""
    seed: np.uint64 = np.uint64(
        int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "little")
    )
    return seed


def mix64(values: Hashes) -> Hashes:
    """A one-to-one function of 64 bits whose results look random.

    Source: Steele, Lea and Flood, "Fast Splittable Pseudorandom Number Generators" (2014), figure
    17: the last steps of SplitMix64.
    """
    values = (values ^ (values >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    values = (values ^ (values >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    mixed: Hashes = values ^ (values >> np.uint64(31))
    return mixed


def held_out(keys: Hashes, share: Fraction) -> npt.NDArray[np.bool_]:
    """For each document, by its ``key``, whether it is held out for validation."""
    mask: npt.NDArray[np.bool_] = keys < np.uint64(int(share * (1 << 64)))
    return mask


def choice_hashes(keys: Hashes, *, source: str, seed: int) -> Hashes:
    """The order in which a source's documents are chosen: those with small hashes come first."""
    return mix64(keys ^ seed64(f"choose {seed} {source}"))


def shuffle_hashes(
    rows: npt.NDArray[np.int64], *, seed: int, source: str, epoch: int, file: str
) -> Hashes:
    """The order of shuffled documents.

    Args:
        rows: of the part ``file``, from 0.
        seed: of the shuffle.
        source: the name of the source.
        epoch: how often its documents were taken before.
        file: the name of the part below the directory of the source.
    """
    start = seed64(f"shuffle {seed} {source} {epoch} {file}")
    return mix64(start + (rows.astype(np.uint64) + np.uint64(1)) * _GOLDEN)


def range_of(hashes: Hashes, ranges: int) -> npt.NDArray[np.int64]:
    """Which of so many equal ranges of 64 bits each hash lies in; at most 2^32 ranges."""
    found: npt.NDArray[np.uint64] = ((hashes >> np.uint64(32)) * np.uint64(ranges)) >> np.uint64(32)
    return found.astype(np.int64)
