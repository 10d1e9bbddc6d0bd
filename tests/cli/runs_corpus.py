"""A corpus whose words occur together again and again, and its tokenizer of words."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

import bpe as library
from tests.pipelines.corpus_files import pack, stored

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
    third = len(documents) // 3
    (folder / "a.jsonl").write_bytes(stored("jsonl", documents[:third]))
    lines = stored("jsonl", documents[third : 2 * third])
    (folder / "b.jsonl.gz").write_bytes(pack(lines, "gz"))
    rows = stored("parquet", documents[2 * third :], row_group_size=20)
    (folder / "c.parquet").write_bytes(rows)


def words_of(documents: list[str], merges: int = 60) -> library.Tokenizer:
    """The tokenizer of words that ``bpe train --pair-counts disjoint`` makes of the documents."""
    counts = library.count_pretokens(documents, pretokenizer="o200k", special_tokens=[END])
    return library.train(counts, max_merges=merges, pair_counts="disjoint")
