"""SplitMix64 over arrays (Steele, Lea and Flood 2014, figure 17), the same on every machine.

`bpe.reference.encode.SplitMix64` is its readable twin, a number at a time.
"""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

Hashes: TypeAlias = npt.NDArray[np.uint64]
_GOLDEN = np.uint64(0x9E3779B97F4A7C15)


def mix64(values: Hashes) -> Hashes:
    """Mix 64-bit values by a one-to-one function whose results look random.

    These are the last steps of SplitMix64.
    """
    values = (values ^ (values >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    values = (values ^ (values >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    mixed: Hashes = values ^ (values >> np.uint64(31))
    return mixed


def numbers_at(positions: npt.NDArray[Any], *, start: np.uint64 | Hashes) -> Hashes:
    """Return the numbers of a SplitMix64 sequence at some positions (integers, from 0)."""
    return mix64(start + (positions.astype(np.uint64) + np.uint64(1)) * _GOLDEN)
