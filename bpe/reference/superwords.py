"""Superwords by definition: runs of tokens, counted; and merges across pre-tokens.

Liu et al., "SuperBPE: Space Travel for Language Models" (arXiv 2503.13423); runs as in "Faster
Superword Tokenization" (arXiv 2604.05192).
"""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from typing import Any, NamedTuple

from bpe.reference.encode import WordEncoder, merge_with_dropout, row_random, runs
from bpe.reference.merge import Pair, apply_merges
from bpe.reference.train import Words
from bpe.reference.train import train as train_words
from bpe.training_report import TrainedMerge


def encode(
    segments: Sequence[Sequence[bytes]],
    *,
    ids: Mapping[bytes, int],
    superwords: Mapping[Pair, int],
    alone: Container[bytes],
    whole: Container[bytes] = (),
    dropout: float = 0.0,
    seed: int = 0,
    **settings: Any,
) -> list[list[int]]:
    """Return the ids of each segment of a text.

    Args:
        segments: pre-tokens that follow each other; those between tokens that are cut out.
        ids: of each token that text can produce.
        superwords: the ranks of the merges across pre-tokens.
        alone: the tokens that superwords alone make; no pre-token is looked up as one.
        whole: pre-tokens in which nothing merges, and which no superword takes.
        dropout: how often a merge is dropped; first those of all pre-tokens, then those of runs.
        seed: of the random numbers.
        **settings: of `WordEncoder`.

    >>> ids = {b"a": 0, b"b": 1, b"ab": 2}
    >>> encode([[b"a", b"b"]], ids=ids, ranks={}, superwords={(b"a", b"b"): 0}, alone={b"ab"})
    [[2]]
    """
    random = row_random(seed)
    known = {token: id_ for token, id_ in ids.items() if token not in alone}
    tokens = {id_: token for token, id_ in ids.items()}
    parts = {ids[token] for pair in superwords for token in pair}
    word = WordEncoder(tokens=known, is_never_split=whole.__contains__, dropout=dropout, **settings)
    encoded = [
        [[known[token] for token in word.symbols(pretoken, random)] for pretoken in segment]
        for segment in segments
    ]
    for segment, words in zip(segments, encoded, strict=True):
        never_split = [pretoken in whole and pretoken in known for pretoken in segment]
        for run in runs(words, of=parts, never_split=never_split):
            symbols = tuple(tokens[words[number][0]] for number in run)
            if dropout > 0:
                merged = merge_with_dropout(symbols, superwords, dropout=dropout, random=random)
            else:
                merged = apply_merges(symbols, superwords)
            words[run.start] = [ids[symbol] for symbol in merged]
            for number in run[1:]:
                words[number] = []
    return [[id_ for word in words for id_ in word] for words in encoded]


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
