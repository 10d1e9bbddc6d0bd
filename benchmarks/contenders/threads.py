"""The native stages in one thread and in several: counting and encoding blocks of texts.

As in a job: the threads take the next block when they are done with one, share the tokenizer, and
have a counter each; caches are cold. Each time is the least of three, because what others do on the
machine only adds to it, and takes more from two cores than from one.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from functools import partial
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
    encoding, counting = [], []
    with ThreadPoolExecutor(threads) as pool:
        for _ in range(1 if check else 3):
            seconds, rows = encode(blocks, pool)
            encoding.append(seconds)
            seconds, counted = timed(partial(count_all, blocks, pool, threads))
            counting.append(seconds)
    ids = ids_digest(
        np.concatenate([block.values.to_numpy() for block in rows]),
        np.concatenate([np.diff(block.offsets.to_numpy()) for block in rows]),
    )
    return Report(
        digest=strings_digest([(ids.encode(), b"%d" % counted)]),
        measures={} if check else {"encode": min(encoding), "count": min(counting)},
        text_bytes=text_bytes(texts),
    )


def prepare(arguments: Sequence[str]) -> None:
    """Make the texts and the vocabulary."""
    column(arguments[0], int(arguments[1]))
    vocabularies.ranks("r50k_base")


def encode(blocks: Sequence[pa.Array], pool: ThreadPoolExecutor) -> tuple[float, list[pa.Array]]:
    """Encode the blocks; seconds without those that loading takes."""
    tokenizer = vocabularies.load("r50k_base")  # its cache is empty
    return timed(lambda: list(pool.map(tokenizer.encode_arrow, blocks)))


def count_all(blocks: Sequence[pa.Array], pool: ThreadPoolExecutor, threads: int) -> int:
    """Count the blocks; how many pre-tokens there were."""
    shared = iter(blocks)
    return sum(pool.map(count, [shared] * threads))


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
