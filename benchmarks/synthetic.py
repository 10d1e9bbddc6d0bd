"""Counts of a corpus that does not exist: any number of distinct pre-tokens, cut into bundles.

Pre-tokens are letters drawn by their frequency in English, most with a space before them, eight
bytes on average; the r-th most frequent occurs distinct / r times (Zipf), half of them once. The
same arguments make the same counts.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from bpe.counts.files import counts_from_table

if TYPE_CHECKING:
    import numpy.typing as npt

    from bpe._native import SortedCounts

_LONGEST = 12  # bytes: at five bits each they fit one number
MEAN_BYTES = 8
_SPACE = 1
_ROWS = 1 << 20

_LETTERS = "etaoinshrdlcumwfgypbvkjxqz"
_SHARES = (32, 23, 21, 19, 18, 17, 16, 16, 15, 11, 10, 7, 7, 6, 6, 6, 5, 5, 5, 4, 2, 1, 1, 1, 1, 1)


def words(distinct: int, *, seed: int = 1) -> npt.NDArray[np.uint64]:
    """Distinct pre-tokens in byte order, each as one number: five bits a byte, from the left."""
    random = np.random.default_rng(seed)
    drawn = "".join(letter * share for letter, share in zip(_LETTERS, _SHARES, strict=True))
    letters = np.array([ord(letter) - ord("a") + 2 for letter in drawn], np.uint64)
    found = np.zeros(0, np.uint64)
    while len(found) < distinct:
        more = [found]
        for _ in range((distinct - len(found)) // _ROWS + 1):
            codes = np.zeros(_ROWS, np.uint64)
            length = 4 + random.binomial(8, 0.5, _ROWS)
            for place in range(_LONGEST):
                codes <<= np.uint64(5)
                code = letters[random.integers(0, len(letters), _ROWS, np.uint16)]
                if place == 0:
                    code[random.random(_ROWS) < 0.7] = _SPACE
                codes |= np.where(place < length, code, 0).astype(np.uint64)
            more.append(codes)
        found = np.unique(np.concatenate(more))
    return np.sort(random.choice(found, distinct, replace=False))


def counts(distinct: int, *, seed: int = 1) -> npt.NDArray[np.int64]:
    """The number of occurrences of each."""
    ranks = np.random.default_rng(seed + 1).permutation(distinct) + 1
    return np.asarray(distinct // ranks, np.int64)


def bundle_counts(total: npt.NDArray[np.int64], bundle: int, bundles: int) -> npt.NDArray[np.int64]:
    """The share of one bundle; the shares of all bundles add up to the total."""
    first = np.arange(len(total)) * 7919 % bundles
    extra = (bundle - first) % bundles < total % bundles
    return np.asarray(total // bundles + extra, np.int64)


def partial_rows(distinct: int, bundles: int) -> int:
    """Pre-tokens of each bundle, added up: one that occurs n times is in n bundles, or in all."""
    return sum(distinct // bundle for bundle in range(1, bundles + 1))


def run_of(codes: npt.NDArray[np.uint64], numbers: npt.NDArray[np.int64]) -> SortedCounts:
    """The words that occur, with their counts."""
    there = numbers > 0
    codes, numbers = codes[there], numbers[there]
    shifts = np.arange(5 * (_LONGEST - 1), -1, -5, dtype=np.uint64)
    byte_of = np.zeros(32, np.uint8)
    byte_of[_SPACE] = ord(" ")
    byte_of[2:28] = np.arange(ord("a"), ord("z") + 1)
    data, lengths = [np.zeros(0, np.uint8)], [np.zeros(1, np.int64)]
    for begin in range(0, len(codes), _ROWS):
        letters = byte_of[(codes[begin : begin + _ROWS, None] >> shifts) & np.uint64(31)]
        data.append(letters[letters > 0])
        lengths.append(np.count_nonzero(letters, axis=1))
    offsets = np.cumsum(np.concatenate(lengths), dtype=np.int64)
    keys = pa.LargeBinaryArray.from_buffers(
        pa.large_binary(),
        len(codes),
        [None, pa.py_buffer(offsets), pa.py_buffer(np.concatenate(data))],
    )
    table = pa.table({"pretoken": keys, "count": pa.array(numbers)})
    return counts_from_table(table, where="synthetic counts")
