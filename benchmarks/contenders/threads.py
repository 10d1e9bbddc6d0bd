"""The native stages in one thread, in several, and in processes that share nothing.

As in a job: the threads take the next block when they are done with one, share the tokenizer, and
have a counter each; caches are cold. Each time is the least of ten, because what others do on the
machine only adds to it, and two cores are left alone more rarely than one. Processes with a share
of the blocks each tell what the machine's second core gives at that moment.
"""

from __future__ import annotations

import multiprocessing
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow.compute as pc

import bpe
from benchmarks import vocabularies
from benchmarks.contenders.report import Report, ids_digest, strings_digest, timed
from benchmarks.corpora import column, text_bytes
from bpe.counter import PretokenCounter

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    import pyarrow as pa

_BLOCK = 4 << 20  # bytes, about
_SHARDS = 16
_TIMES = 10


def run(name: str, arguments: Sequence[str], *, check: bool) -> Report:
    """Count and encode; the name begins with the number of threads, or of processes.

    The arguments are the corpus and bytes of it.
    """
    number, kind = name.split()
    texts = column(arguments[0], int(arguments[1]))
    blocks = blocks_of(texts, at_least=int(number))
    rounds = 1 if check else _TIMES
    if kind == "processes":
        done = side_by_side([blocks[first :: int(number)] for first in range(int(number))], rounds)
    else:
        done = [work(blocks, int(number), rounds)]
    encoding, counting = (max(times) for times in zip(*(each[:2] for each in done), strict=True))
    return Report(
        digest=strings_digest([one for each in done for one in each[2]]),
        measures={} if check else {"encode": encoding, "count": counting},
        text_bytes=text_bytes(texts),
    )


def work(
    blocks: Sequence[pa.Array], threads: int, rounds: int, ready: Callable[[], object] = int
) -> tuple[float, float, list[tuple[bytes, bytes]]]:
    """Encode and count so often; the least times, and what tells outputs apart.

    Args:
        blocks: of texts.
        threads: that share the work.
        rounds: how often.
        ready: called before each time begins.
    """
    encoding, counting = [], []
    with ThreadPoolExecutor(threads) as pool:
        for _ in range(rounds):
            tokenizer = vocabularies.load("r50k_base")  # its cache is empty
            ready()
            seconds, rows = timed(partial(encode, tokenizer, blocks, pool))
            encoding.append(seconds)
            ready()
            seconds, counted = timed(partial(count_all, blocks, pool, threads))
            counting.append(seconds)
    ids = ids_digest(
        np.concatenate([block.values.to_numpy() for block in rows]),
        np.concatenate([np.diff(block.offsets.to_numpy()) for block in rows]),
    )
    return min(encoding), min(counting), [(ids.encode(), b"%d" % counted)]


def side_by_side(
    shares: Sequence[Sequence[pa.Array]], rounds: int
) -> list[tuple[float, float, list[tuple[bytes, bytes]]]]:
    """Work on each share in a process of its own with one thread, all beginning together."""
    forked = multiprocessing.get_context("fork")
    barrier = forked.Barrier(len(shares))
    results = [forked.SimpleQueue() for _ in shares]
    processes = [
        forked.Process(target=_share, args=(share, rounds, barrier, result))
        for share, result in zip(shares, results, strict=True)
    ]
    for process in processes:
        process.start()
    done = [result.get() for result in results]
    for process in processes:
        process.join()
    if None in done:
        raise RuntimeError("a process failed")
    return done


def _share(share: Sequence[pa.Array], rounds: int, barrier: Any, result: Any) -> None:
    done = None
    try:
        done = work(share, 1, rounds, barrier.wait)
    finally:
        if done is None:
            barrier.abort()  # or the others would wait
        result.put(done)


def prepare(arguments: Sequence[str]) -> None:
    """Make the texts and the vocabulary."""
    column(arguments[0], int(arguments[1]))
    vocabularies.ranks("r50k_base")


def encode(
    tokenizer: bpe.Tokenizer, blocks: Sequence[pa.Array], pool: ThreadPoolExecutor
) -> list[pa.Array]:
    """Encode the blocks."""
    return list(pool.map(tokenizer.encode_arrow, blocks))


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


def blocks_of(texts: pa.Array, *, at_least: int) -> list[pa.Array]:
    """Consecutive documents of about `_BLOCK` bytes together, or less, for so many blocks."""
    ends = np.cumsum(pc.binary_length(texts).to_numpy())
    size = min(_BLOCK, int(ends[-1]) // at_least)
    starts = np.searchsorted(ends, np.arange(0, ends[-1], size))
    cuts = np.unique(np.append(starts, len(texts)))
    return [texts.slice(begin, end - begin) for begin, end in pairwise(cuts.tolist())]
