"""Train on texts, counting included; Hugging Face's rule breaks ties."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

import bpe
from benchmarks.contenders import merges
from benchmarks.contenders.report import Report, strings_digest, timed
from benchmarks.corpora import column, text_bytes

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    import pyarrow as pa

    from benchmarks.contenders.merges import Merges, Train


def beam_bpe(texts: pa.Array) -> Train:
    """``count_pretokens`` and ``train``."""

    def train(size: int) -> Callable[[], Merges]:
        counts = bpe.count_pretokens(texts, pretokenizer="gpt2")
        tokenizer = bpe.train(counts, vocab_size=size, ties="huggingface")
        return lambda: list(merges.parts_of(tokenizer, joined=False))

    return train


CONTENDERS = {"beam-bpe": beam_bpe, "gigatoken": merges.gigatoken}


def prepare(arguments: Sequence[str]) -> None:
    """Make the texts."""
    column(arguments[0], int(arguments[1]))


def run(name: str, arguments: Sequence[str], *, check: bool) -> Report:
    """Train once.

    Args:
        name: of `CONTENDERS`.
        arguments: the corpus, bytes of it, the size of the vocabulary, and the size up to which the
            merges are compared.
        check: whether nothing is timed.
    """
    corpus, size, vocab_size, compared = arguments
    texts = column(corpus, int(size))
    train = CONTENDERS[name](texts)
    seconds, merged = timed(lambda: train(int(vocab_size)))
    return Report(
        digest=strings_digest(itertools.islice(merged(), int(compared) - 256)),
        measures={} if check else {"train": seconds},
        text_bytes=text_bytes(texts),
    )
