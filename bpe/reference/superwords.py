"""Training of superwords by definition: merges across pre-tokens, learnt from runs.

Liu et al., "SuperBPE: Space Travel for Language Models" (arXiv 2503.13423); runs as in "Faster
Superword Tokenization" (arXiv 2604.05192).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from bpe.reference.train import Words
from bpe.reference.train import train as train_words
from bpe.training_report import TrainedMerge


class LearntSuperwords(NamedTuple):
    """The result of the second phase of training.

    Attributes:
        merges: of superwords, in order.
        tokens: those of the result, in the order of their ids.
        steps: how many steps of words were made.
        before: for each superword merge, how many steps of words came before the merge.
        tied: the numbers of the superword merges that the tie rule decided.
    """

    merges: list[TrainedMerge]
    tokens: list[bytes]
    steps: int
    before: list[int]
    tied: tuple[int, ...]


def train(
    runs: Words,
    *,
    words: Sequence[bytes],
    start: Sequence[bytes],
    steps: Sequence[tuple[bytes, int]] = (),
    most: int,
    **settings: Any,
) -> LearntSuperwords:
    """Learn superwords from runs and their counts.

    Superword merges are those of ordinary training on runs, whatever happens to words. They are
    taken in order; each comes before the next step of words if its pair is more frequent, and both
    of its parts are tokens by then.

    Args:
        runs: runs of tokens of words, with their counts.
        words: the tokens of the word tokenizer, by id.
        start: the tokens that stay: all of them (SuperBPE), or those before the first merge
            (BoundlessBPE).
        steps: the tokens that word training made, with their counts; none (SuperBPE), or those
            that compete (BoundlessBPE).
        most: tokens of the result.
        **settings: of ``bpe.reference.train.train``.
    """
    superwords = train_words(runs, alphabet=words, **settings)
    tokens = dict.fromkeys(start)
    merges: list[TrainedMerge] = []
    before: list[int] = []
    made = 0
    while len(tokens) < most:
        following = superwords.merges[len(merges) : len(merges) + 1]
        is_next = following and {following[0].left, following[0].right} <= tokens.keys()
        if is_next and (made == len(steps) or following[0].count > steps[made][1]):
            merges += following
            before.append(made)
            tokens[following[0].left + following[0].right] = None
        elif made < len(steps):
            tokens[steps[made][0]] = None
            made += 1
        else:
            break
    tied = tuple(number for number in superwords.tied if number < len(merges))
    return LearntSuperwords(merges, list(tokens), made, before, tied)
