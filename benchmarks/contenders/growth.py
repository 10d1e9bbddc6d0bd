"""The growth of time with corpus and vocabulary: training, and encoding with a cold cache.

What is trained is counted in the same time: ``train`` is from texts to a tokenizer.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

import bpe
from benchmarks import vocabularies
from benchmarks.contenders.report import Report, ids_digest, strings_digest, timed
from benchmarks.corpora import DATA, column, made, source, text_bytes

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    import pyarrow as pa


def run(name: str, arguments: Sequence[str], *, check: bool) -> Report:
    """Train and encode once.

    Args:
        name: ``corpus`` encodes with the published vocabulary of GPT-2, ``vocabulary`` with one
            that was trained on the same texts.
        arguments: the corpus, bytes that are trained on, bytes that are encoded, vocabulary size.
        check: whether nothing is timed.
    """
    corpus, trained, encoded, vocab_size = arguments
    texts = column(corpus, int(trained))
    training, tokenizer = timed(lambda: train(texts, int(vocab_size)))
    digests = [tokenizer.sha256.encode()]
    if name == "corpus":
        tokenizer = vocabularies.load("r50k_base")
    else:
        tokenizer = bpe.Tokenizer.load(trained_file(arguments))
    texts = column(corpus, int(encoded))
    encoding, rows = timed(lambda: tokenizer.encode_arrow(texts))
    digests.append(ids_digest(rows.values.to_numpy(), np.diff(rows.offsets.to_numpy())).encode())
    return Report(
        digest=strings_digest([tuple(digests)]),
        measures={} if check else {"train": training, "encode": encoding},
        text_bytes=text_bytes(texts),
    )


def prepare(arguments: Sequence[str]) -> None:
    """Make the texts and the vocabularies."""
    corpus, _, encoded, _ = arguments
    column(corpus, int(encoded))
    vocabularies.ranks("r50k_base")
    trained_file(arguments)


def train(texts: pa.Array, vocab_size: int) -> bpe.Tokenizer:
    """From texts to a tokenizer."""
    return bpe.train(bpe.count_pretokens(texts, pretokenizer="gpt2"), vocab_size=vocab_size)


def trained_file(arguments: Sequence[str]) -> Path:
    """The file of the tokenizer that is trained."""
    corpus, trained, _, vocab_size = arguments
    path = DATA / f"{source(corpus)}-{trained}-{vocab_size}.json"
    if not path.is_file():
        with made(path) as partial:
            train(column(corpus, int(trained)), int(vocab_size)).save(partial)
    return path
