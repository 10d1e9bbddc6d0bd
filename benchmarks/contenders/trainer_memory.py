"""Memory of the trainer for each distinct pre-token, on words that are made for it.

Ten million distinct words of six to ten letters, eight on average, each counted once. They are
counted before, by another process, and loaded; what is measured is the most that training takes
beyond what the process has then, once it has given back what it does not use; and beyond what it
had before loading, which includes the counts themselves.
"""

from __future__ import annotations

import ctypes
import gc
import sys
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

import bpe
from benchmarks.contenders.memory import forget_peak, memory, peak_memory
from benchmarks.contenders.report import Report, timed
from benchmarks.corpora import DATA

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

LENGTHS = (6, 7, 8, 9, 10)
LETTERS = 26
_STRIDE = 2_654_435_761  # odd and not a multiple of 13, so that no word comes twice


def run(name: str, arguments: Sequence[str], *, check: bool) -> Report:  # noqa: ARG001 - one name
    """Load and train; the arguments are the number of words and the vocabulary size."""
    words, vocab_size = map(int, arguments)
    gc.collect()
    before = memory()
    counts = bpe.PretokenCounts.load(counts_directory(words))
    give_back()
    loaded = memory()
    if sys.platform == "linux":
        forget_peak()
    seconds, tokenizer = timed(lambda: bpe.train(counts, vocab_size=vocab_size))
    peak = peak_memory()
    sizes = {"trainer": (peak - loaded) / words, "with the counts": (peak - before) / words}
    return Report(digest=tokenizer.sha256, measures=sizes | ({} if check else {"train": seconds}))


def prepare(arguments: Sequence[str]) -> None:
    """Make and count the words."""
    counts_directory(int(arguments[0]))


def counts_directory(words: int) -> Path:
    """Counts of so many distinct words."""
    path = DATA / f"counts-{words}"
    if not path.is_dir():
        counts = bpe.count_pretokens(distinct_words(words), pretokenizer="none")
        counts.save(path)
    return path


def distinct_words(number: int) -> pa.LargeStringArray:
    """Words of lower-case letters, as many of each length.

    Raises:
        ValueError: there are not so many of six letters.
    """
    each = number // len(LENGTHS)
    if each > LETTERS ** min(LENGTHS):
        raise ValueError(f"{number:,} are more words than {min(LENGTHS)} letters can make")
    parts = []
    for length in LENGTHS:
        values = np.arange(each, dtype=np.uint64) * _STRIDE % LETTERS**length
        digits = [values // LETTERS**place % LETTERS for place in range(length)]
        data = (np.stack(digits, axis=1) + ord("a")).astype(np.uint8)
        offsets = np.arange(each + 1, dtype=np.int64) * length
        ends = pa.py_buffer(offsets)
        parts.append(pa.LargeStringArray.from_buffers(each, ends, pa.py_buffer(data)))
    return pa.concat_arrays(parts)


def give_back() -> None:
    """Let the allocators return to the system what is free."""
    gc.collect()
    pa.default_memory_pool().release_unused()
    if sys.platform == "linux":
        ctypes.CDLL(None).malloc_trim(0)
