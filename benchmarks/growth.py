"""The cost of a corpus as it grows: the constants of docs/scale.md, measured on real text.

    python -m benchmarks.growth

On the shared corpora: distinct pre-tokens after each power of two of bytes, Heaps' law fitted to
them (distinct = k * bytes ** beta, least squares of the logarithms), bytes of a distinct pre-token
as it travels and in the files of counts, and processor seconds a GB of text for each stage.
"""

from __future__ import annotations

import json
import time
from typing import TYPE_CHECKING, Any

import click
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

import bpe
from benchmarks.corpora import ROOT, SHARED
from benchmarks.results import provenance
from bpe.counting import PretokenCounter
from bpe.counts.files import counts_to_ipc, shard_bytes
from bpe.pretokenizer import Pretokenizer

if TYPE_CHECKING:
    from bpe.run_counting import RunCounter

RESULTS = ROOT / "benchmarks" / "results" / "growth.json"
FIRST = 1 << 20  # bytes, of the first point


def grown(counter: PretokenCounter | RunCounter, texts: pa.Array) -> dict[str, Any]:
    """Distinct keys after each power of two of bytes, with Heaps' law fitted; CPU seconds."""
    sizes = np.cumsum(pc.binary_length(texts).to_numpy())
    points, row, limit, seconds = [], 0, FIRST, 0.0
    while row < len(texts):
        end = min(int(np.searchsorted(sizes, limit)) + 1, len(texts))
        began = time.process_time()
        counter.add(texts.slice(row, end - row))
        seconds += time.process_time() - began
        row = end
        points.append((int(sizes[row - 1]), len(counter)))
        limit *= 2
    logs = np.log(np.array(points, float))
    beta, k = np.polyfit(logs[:, 0], logs[:, 1], 1)
    heaps = {"k": float(np.exp(k)), "beta": float(beta)}
    return {"points": points, "heaps": heaps, "seconds": seconds}


def measured(corpus: str) -> dict[str, Any]:
    """The points and the fit of one corpus."""
    column = pq.read_table(SHARED / "corpora" / f"{corpus}.parquet", columns=["text"])["text"]
    order = np.random.default_rng(1).permutation(len(column))  # languages and sources mixed
    texts = column.take(pa.array(order)).combine_chunks()
    texts = texts.chunk(0) if isinstance(texts, pa.ChunkedArray) else texts
    sizes = np.cumsum(pc.binary_length(texts).to_numpy())
    counter = PretokenCounter(Pretokenizer("gpt2"))
    found = grown(counter, texts)
    total, distinct = found["points"][-1]
    (run,) = counter.drain(1)
    began = time.process_time()
    tokenizer = bpe.train(bpe.count_pretokens(texts), vocab_size=32_000)
    trained = time.process_time() - began
    sample = texts.slice(0, int(np.searchsorted(sizes, 20e6)))
    began = time.process_time()
    tokenizer.encode_arrow(sample)
    encoded = time.process_time() - began
    return {
        "bytes": total,
        "points": found["points"],
        "heaps": found["heaps"],
        "word_bytes": memoryview(run.data).nbytes / distinct,
        "travelling_bytes": len(counts_to_ipc(run)) / distinct,
        "file_bytes": len(shard_bytes(run)) / distinct,
        "count_seconds_per_gb": found["seconds"] / total * 1e9,
        "train_seconds": trained,
        "encode_seconds_per_gb": encoded / float(sizes[len(sample) - 1]) * 1e9,
    }


def main() -> None:
    """Measure both corpora and write the results."""
    results: dict[str, Any] = {
        **provenance(),
        "corpora": {corpus: measured(corpus) for corpus in ("en", "multi")},
    }
    RESULTS.write_text(json.dumps(results, indent=2) + "\n", "utf-8")
    for name, found in results["corpora"].items():
        click.echo(f"{name}: {found['bytes']:,} bytes, {found['heaps']}")


if __name__ == "__main__":
    main()
