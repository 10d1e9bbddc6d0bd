"""BPE-dropout (Provilkov, Emelianenko and Voita 2020): its probability, a seed for each text."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import pyarrow as pa

from bpe.errors import EncodingError
from bpe.splitmix import numbers_at

_MAX = 2**64


def check_dropout(dropout: float) -> float:
    """Return the probability of skipping a merge.

    Raises:
        EncodingError: it is not a number from 0 to 1.
    """
    if not isinstance(dropout, int | float) or not 0 <= dropout <= 1:
        raise EncodingError(f"dropout {dropout!r:.60} is not a number from 0 to 1")
    return float(dropout)


def seed_array(seeds: Iterable[int] | pa.Array, *, rows: int) -> pa.UInt64Array:
    """Return the seeds given to ``encode_arrow``, one for each row.

    Raises:
        EncodingError: they are not one number from 0 to 2^64 - 1 for each row.
    """
    try:
        if isinstance(seeds, pa.ChunkedArray):
            seeds = seeds.combine_chunks()
        numbers = (
            seeds.cast(pa.uint64()) if isinstance(seeds, pa.Array) else pa.array(seeds, pa.uint64())
        )
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError, OverflowError, TypeError) as error:
        raise EncodingError(f"seeds are not numbers from 0 to 2^64 - 1: {error}") from None
    if len(numbers) != rows or numbers.null_count:
        raise EncodingError(
            f"{len(numbers)} seeds, {numbers.null_count} of them null, for {rows} texts: give one "
            "each"
        )
    return numbers


def row_seeds(seed: int, rows: int, *, first: int = 0) -> pa.UInt64Array:
    """Return the seeds that ``encode_arrow(…, seed=seed)`` gives the rows of a column.

    To encode a column part by part with the same ids, pass ``seeds=row_seeds(seed, rows,
    first=…)`` for each part, where ``first`` is the number of its first row.

    Args:
        seed: from 0 to 2^64 - 1.
        rows: how many.
        first: the number of the first of them.

    Returns:
        The numbers ``first`` to ``first + rows - 1`` of SplitMix64 started with ``seed``.

    Raises:
        EncodingError: an argument is not an int from 0 to 2^64 - 1.

    Example:
        >>> row_seeds(0, 2).to_pylist()
        [16294208416658607535, 7960286522194355700]
        >>> row_seeds(0, 1, first=1).to_pylist()
        [7960286522194355700]
    """
    for name, value in (("seed", seed), ("rows", rows), ("first", first)):
        if type(value) is not int or not 0 <= value < _MAX:
            raise EncodingError(f"{name} {value!r:.60} is not a number from 0 to 2^64 - 1")
    positions = np.arange(rows, dtype=np.uint64) + np.uint64(first)
    return pa.array(numbers_at(positions, start=np.uint64(seed)))
