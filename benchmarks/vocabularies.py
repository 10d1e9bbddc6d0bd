"""The vocabularies that texts are encoded with: the published ones, or our own of their size."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import bpe
from benchmarks.corpora import DATA, ENGLISH, SHARED, column, made, source

if TYPE_CHECKING:
    from pathlib import Path


class _Vocabulary(NamedTuple):
    """A published file of ranks: the pre-tokenizer, and how many ranks it has."""

    pretokenizer: str
    size: int


PUBLISHED = {
    "r50k_base": _Vocabulary("gpt2", 50_256),
    "cl100k_base": _Vocabulary("cl100k", 100_256),
    "o200k_base": _Vocabulary("o200k", 199_998),
}
_TRAINED_ON = 20_000_000


def ranks(name: str) -> Path:
    """The ``.tiktoken`` file of a vocabulary.

    Where the shared data has none, one is trained on the corpus: with the same pre-tokenizer, and
    of the same size if there are so many merges.
    """
    published = SHARED / "vocabs" / f"{name}.tiktoken"
    if published.is_file():
        return published
    path = DATA / f"{source(ENGLISH)}-{name}.tiktoken"
    if not path.is_file():
        vocabulary = PUBLISHED[name]
        counts = bpe.count_pretokens(
            column(ENGLISH, _TRAINED_ON), pretokenizer=vocabulary.pretokenizer
        )
        with made(path) as partial:
            bpe.train(counts, vocab_size=vocabulary.size).save(partial)
    return path


def load(name: str) -> bpe.Tokenizer:
    """The same as a tokenizer, without special tokens."""
    return bpe.Tokenizer.load(
        ranks(name), pretokenizer=PUBLISHED[name].pretokenizer, special_tokens=()
    )


def tokenizer_json(name: str) -> Path:
    """The same as a tokenizer.json, written once."""
    path = DATA / f"{ranks(name).stem}.json"
    if not path.is_file():
        with made(path) as partial:
            load(name).save(partial)
    return path
