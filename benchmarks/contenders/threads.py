"""The native stages in one thread, in two, and in two processes that share nothing.

As in a job: the threads take the next block when they are done with one, share the tokenizer, and
have a counter each; caches are cold. The speed of a core changes from second to second where others
use the machine, and a core alone may run at a higher clock than two: so all take turns within one
process, and each time is a median of those turns. Processes with half of the blocks each tell what
the machine's second core gives at that moment.
"""

from __future__ import annotations

import multiprocessing
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from contextlib import ExitStack
from functools import partial
from itertools import pairwise
from statistics import median
from typing import TYPE_CHECKING

import numpy as np
import pyarrow.compute as pc

import bpe
from benchmarks import vocabularies
from benchmarks.contenders.report import Report, ids_digest, strings_digest, timed
from benchmarks.corpora import column, text_bytes
from bpe.counting import PretokenCounter

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from multiprocessing.synchronize import Barrier

    import pyarrow as pa

_BLOCK = 1 << 20  # bytes, about; a job has larger ones, and more of them to share out evenly
_SHARDS = 16
_TURNS = 9
_LITTLE = 10_000_000  # bytes: outputs are compared, and times say nothing
_THREADS = (1, 2)
_PROCESSES = 2
_FORKED = multiprocessing.get_context("fork")  # a process has the texts without being sent them


def run(name: str, arguments: Sequence[str], *, check: bool) -> Report:
    """Count and encode.

    The arguments are the corpus and bytes of it.

    Raises:
        ValueError: two ways made different outputs.
    """
    del name
    texts = column(arguments[0], int(arguments[1]))
    blocks = blocks_of(texts, at_least=max(*_THREADS, _PROCESSES))
    digests = set()
    seconds: dict[str, list[float]] = {}
    with ExitStack() as stack:
        ready = _FORKED.Barrier(_PROCESSES)
        processes = [
            stack.enter_context(process_of(blocks[first::_PROCESSES], ready))
            for first in range(_PROCESSES)
        ]
        pools = {number: stack.enter_context(ThreadPoolExecutor(number)) for number in _THREADS}
        for _ in range(1 if check or text_bytes(texts) < _LITTLE else _TURNS):
            for number, pool in pools.items():
                way = f"{number} thread{'s' if number > 1 else ''}"
                tokenizer = vocabularies.load("r50k_base")  # its cache is empty
                took, rows = timed(partial(encode, tokenizer, blocks, pool))
                seconds.setdefault(f"encode, {way}", []).append(took)
                took, counted = timed(partial(count_all, blocks, pool, number))
                seconds.setdefault(f"count, {way}", []).append(took)
                digests.add((digest_of(rows), counted))
            for work in (encode_share, count_share):
                took = max(together(processes, work))
                name = work.__name__.partition("_")[0]
                seconds.setdefault(f"{name}, {_PROCESSES} processes", []).append(took)
    if len(digests) != 1:
        raise ValueError(f"the outputs of threads differ: {sorted(digests)}")
    return Report(
        digest=strings_digest((digest.encode(), b"%d" % counted) for digest, counted in digests),
        measures={} if check else {name: median(found) for name, found in seconds.items()},
        text_bytes=text_bytes(texts),
    )


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
    """Count the blocks that a worker gets, and sort the counts; returns their number."""
    counter = PretokenCounter(bpe.Pretokenizer("gpt2"))
    counted = sum(counter.add(block) for block in blocks)
    counter.drain(_SHARDS)
    return counted


def digest_of(rows: Sequence[pa.Array]) -> str:
    """A digest of ids that does not depend on the blocks of their documents."""
    return ids_digest(
        np.concatenate([block.values.to_numpy() for block in rows]),
        np.concatenate([np.diff(block.offsets.to_numpy()) for block in rows]),
    )


def process_of(share: Sequence[pa.Array], ready: Barrier) -> ProcessPoolExecutor:
    """A process that has a share of the blocks; it begins now, before there are threads."""
    process = ProcessPoolExecutor(1, mp_context=_FORKED, initializer=_take, initargs=(share, ready))
    process.submit(int).result()
    return process


def together(
    processes: Sequence[ProcessPoolExecutor], work: Callable[[], float]
) -> Iterator[float]:
    """The seconds that work takes in each process; they wait for each other to begin."""
    for running in [process.submit(work) for process in processes]:
        yield running.result()


_taken: tuple[Sequence[pa.Array], Barrier]  # what a process has


def _take(share: Sequence[pa.Array], ready: Barrier) -> None:
    global _taken  # noqa: PLW0603 - what a process of a pool has, it has from its beginning
    _taken = share, ready


def encode_share() -> float:
    """Encode the share of this process; the seconds of it."""
    share, ready = _taken
    tokenizer = vocabularies.load("r50k_base")
    ready.wait()
    took, _ = timed(lambda: [tokenizer.encode_arrow(block) for block in share])
    return took


def count_share() -> float:
    """Count the share of this process; the seconds of it."""
    share, ready = _taken
    ready.wait()
    took, _ = timed(lambda: count(iter(share)))
    return took


def blocks_of(texts: pa.Array, *, at_least: int) -> list[pa.Array]:
    """Consecutive documents of about `_BLOCK` bytes together, or less, for so many blocks."""
    ends = np.cumsum(pc.binary_length(texts).to_numpy())
    size = min(_BLOCK, int(ends[-1]) // at_least)
    starts = np.searchsorted(ends, np.arange(0, ends[-1], size))
    cuts = np.unique(np.append(starts, len(texts)))
    return [texts.slice(begin, end - begin) for begin, end in pairwise(cuts.tolist())]
