"""A corpus whose words occur together again and again, and its tokenizer of words."""

from __future__ import annotations

import gzip
import json
import random
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq

import bpe as library

if TYPE_CHECKING:
    from pathlib import Path

END = "<|end|>"
_PHRASES = ["by the way", "in the end", "on the other hand", "of course", "New York", "日本語 だ"]
_WORDS = ["the", "a", "house", "tree", "low", "lower", "42", "run", ",", ".", "été", END]


def texts(number: int) -> list[str]:
    """So many documents; the first is empty."""
    chance = random.Random(number)
    parts = [*_PHRASES * 2, *_WORDS]
    lengths = [0, *(chance.randrange(1, 30) for _ in range(number - 1))]
    return [" ".join(chance.choice(parts) for _ in range(length)) for length in lengths]


def write_corpus(folder: Path, documents: list[str]) -> None:
    """The documents in files of several formats, in their order."""
    folder.mkdir()
    rows = [{"id": f"d{place}", "text": text} for place, text in enumerate(documents)]
    third = len(rows) // 3
    lines = [json.dumps(row) + "\n" for row in rows]
    (folder / "a.jsonl").write_text("".join(lines[:third]), "utf-8")
    (folder / "b.jsonl.gz").write_bytes(
        gzip.compress("".join(lines[third : 2 * third]).encode(), mtime=0)
    )
    table = pa.Table.from_pylist(rows[2 * third :])
    pq.write_table(table, folder / "c.parquet", row_group_size=20)


def words_of(documents: list[str], merges: int = 60) -> library.Tokenizer:
    """The tokenizer of words that ``bpe train --pair-counts disjoint`` makes of the documents."""
    counts = library.count_pretokens(documents, pretokenizer="o200k", special_tokens=[END])
    return library.train(counts, max_merges=merges, pair_counts="disjoint")
