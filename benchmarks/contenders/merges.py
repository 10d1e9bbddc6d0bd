"""The merge loop alone: the time to train on texts less the time to train a single merge.

Each is the least of three where training does not take minutes, because other processes only add
to it: with rustbpe, what is taken off is most of the whole, and differences of single runs lay
between -0.8 and 4.9 s. The others offer no training from counts; so what is taken off is all but
the loop: counting, the words, the counts of their first pairs. Among equally frequent pairs
Hugging Face's rule decides, which is gigatoken's default too; rustbpe's is the one that is called
``id-min`` here.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import bpe
from benchmarks.contenders.report import SEPARATOR, Report, strings_digest, timed
from benchmarks.corpora import column
from bpe.byte_alphabet import from_text
from bpe.formats.huggingface_cuts import NAMED

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    import pyarrow as pa

    Merges = Sequence[tuple[bytes, ...]]  # the parts of each, or only what they are joined
    Train = Callable[[int], Callable[[], Merges]]  # of a size; what it made is read later

FEW = 257


def beam_bpe(ties: str, texts: pa.Array) -> Train:
    """``bpe.train`` over counts that are there."""
    counts = bpe.count_pretokens(texts, pretokenizer="gpt2")

    def train(size: int) -> Callable[[], Merges]:
        tokenizer = bpe.train(counts, vocab_size=size, ties=ties)
        return lambda: list(parts_of(tokenizer, joined=ties == "id-min"))

    return train


def parts_of(tokenizer: bpe.Tokenizer, *, joined: bool) -> Iterator[tuple[bytes, ...]]:
    """The merges in their order; joined as rustbpe has them, which tells no parts."""
    for merge in tokenizer.training.merges if tokenizer.training else ():
        yield (merge.left + merge.right,) if joined else (merge.left, merge.right)


def gigatoken(texts: pa.Array) -> Train:
    """``train_bpe`` over one buffer."""
    import gigatoken

    joined = SEPARATOR.join(texts.to_pylist()).encode()

    def train(size: int) -> Callable[[], Merges]:
        _, merges = gigatoken.train_bpe(joined, size, [], separator=SEPARATOR.encode())
        return lambda: [(bytes(left), bytes(right)) for left, right in merges]

    return train


def tokenizers(texts: pa.Array) -> Train:
    """``BpeTrainer`` over a list of texts."""
    from tokenizers import Tokenizer, models, pre_tokenizers, trainers

    rows = texts.to_pylist()

    def train(size: int) -> Callable[[], Merges]:
        tokenizer = Tokenizer(models.BPE())
        tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
        alphabet = pre_tokenizers.ByteLevel.alphabet()
        trainer = trainers.BpeTrainer(
            vocab_size=size, initial_alphabet=alphabet, show_progress=False
        )
        tokenizer.train_from_iterator(rows, trainer)
        return lambda: [
            (from_text(left), from_text(right))
            for left, right in json.loads(tokenizer.to_str())["model"]["merges"]
        ]

    return train


def rustbpe(texts: pa.Array) -> Train:
    """``train_from_iterator`` over a list of texts."""
    import rustbpe

    rows = texts.to_pylist()

    def train(size: int) -> Callable[[], Merges]:
        tokenizer = rustbpe.Tokenizer()
        tokenizer.train_from_iterator(iter(rows), size, pattern=NAMED["gpt2"])
        return lambda: [(bytes(token),) for token, _ in tokenizer.get_mergeable_ranks()][256:]

    return train


CONTENDERS: dict[str, Callable[[pa.Array], Train]] = {
    "beam-bpe": lambda texts: beam_bpe("huggingface", texts),
    "beam-bpe, id-min": lambda texts: beam_bpe("id-min", texts),
    "gigatoken": gigatoken,
    "rustbpe": rustbpe,
    "tokenizers": tokenizers,
}


def prepare(arguments: Sequence[str]) -> None:
    """Make the texts."""
    column(arguments[0], int(arguments[1]))


def run(name: str, arguments: Sequence[str], *, check: bool) -> Report:
    """Train twice; the arguments are the corpus, bytes of it, and the size of the vocabulary."""
    corpus, size, vocab_size = arguments
    train = CONTENDERS[name](column(corpus, int(size)))
    few, whole = [], []
    for _ in range(1 if check or name == "tokenizers" else 3):
        if not check:
            few.append(timed(lambda: train(FEW))[0])
        seconds, merges = timed(lambda: train(int(vocab_size)))
        whole.append(seconds)
    return Report(
        digest=strings_digest(merges()),
        measures={} if check else {"merges": min(whole) - min(few)},
    )
