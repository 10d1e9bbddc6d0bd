"""The native stages in one thread and in several: counting and encoding blocks of texts.

As in a job: the threads take the next block when they are done with one, share the tokenizer, and
have a counter each; caches are cold.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np
import pyarrow.compute as pc

import bpe
from benchmarks import vocabularies
from benchmarks.contenders.report import Report, ids_digest, strings_digest, timed
from benchmarks.corpora import column, text_bytes
from bpe.counter import PretokenCounter

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import pyarrow as pa

_BLOCK = 4 << 20  # bytes, about
_SHARDS = 16


def run(name: str, arguments: Sequence[str], *, check: bool) -> Report:
    """Count and encode; the name begins with the number of threads.

    The arguments are the corpus and bytes of it.
    """
    threads = int(name.split(maxsplit=1)[0])
    texts = column(arguments[0], int(arguments[1]))
    blocks = blocks_of(texts)
    tokenizer = vocabularies.load("r50k_base")
    with ThreadPoolExecutor(threads) as pool:
        encoding, rows = timed(lambda: list(pool.map(tokenizer.encode_arrow, blocks)))
        shared = iter(blocks)
        counting, counted = timed(lambda: sum(pool.map(count, [shared] * threads)))
    ids = ids_digest(
        np.concatenate([block.values.to_numpy() for block in rows]),
        np.concatenate([np.diff(block.offsets.to_numpy()) for block in rows]),
    )
    return Report(
        digest=strings_digest([(ids.encode(), b"%d" % counted)]),
        measures={} if check else {"encode": encoding, "count": counting},
        text_bytes=text_bytes(texts),
    )


def prepare(arguments: Sequence[str]) -> None:
    """Make the texts and the vocabulary."""
    column(arguments[0], int(arguments[1]))
    vocabularies.ranks("r50k_base")


def count(blocks: Iterator[pa.Array]) -> int:
    """What a worker does: count the blocks it gets, and sort the counts; how many there were."""
    counter = PretokenCounter(bpe.Pretokenizer("gpt2"))
    counted = sum(counter.add(block) for block in blocks)
    counter.drain(_SHARDS)
    return counted


def blocks_of(texts: pa.Array) -> list[pa.Array]:
    """Consecutive documents of about `_BLOCK` bytes together."""
    ends = np.cumsum(pc.binary_length(texts).to_numpy())
    cuts = np.unique(np.searchsorted(ends, np.arange(0, ends[-1] + _BLOCK, _BLOCK)))
    return [texts.slice(begin, end - begin) for begin, end in pairwise(cuts.tolist())]
