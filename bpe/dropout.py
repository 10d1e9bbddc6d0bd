"""BPE-dropout: seeds for its random numbers."""

from __future__ import annotations

import pyarrow as pa

from bpe._native import random_words
from bpe.errors import EncodingError

__all__ = ["row_seeds"]

_MAX = 2**64


def row_seeds(seed: int, rows: int, *, first: int = 0) -> pa.UInt64Array:
    """The seeds of the rows of a column that ``encode_arrow(…, seed=seed)`` draws from.

    Whoever cuts a column into parts and encodes each with ``seeds=`` gets the same ids: the seeds
    of a part begin at the number of its first row.

    Args:
        seed: from 0 to 2^64 - 1.
        rows: how many.
        first: the number of the first of them.

    Returns:
        The numbers ``first`` to ``first + rows - 1`` of SplitMix64 started with ``seed``.

    Raises:
        EncodingError: an argument is no such number.

    Example:
        >>> row_seeds(0, 2).to_pylist()
        [16294208416658607535, 7960286522194355700]
        >>> row_seeds(0, 1, first=1).to_pylist()
        [7960286522194355700]
    """
    for name, value in (("seed", seed), ("rows", rows), ("first", first)):
        if type(value) is not int or not 0 <= value < _MAX:
            raise EncodingError(f"{name} {value!r:.60} is not a number from 0 to 2^64 - 1")
    numbers = pa.py_buffer(random_words(seed, first, rows))
    return pa.Array.from_buffers(pa.uint64(), rows, [None, numbers])
