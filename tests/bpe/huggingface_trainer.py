"""The merges of Hugging Face's ``BpeTrainer``, its habits included, in plain Python.

Its queue holds each pair with the words in which it came up. Two habits matter only if a merge
makes a string that another merge made before: a merged pair keeps its count when it comes back,
and it is then merged again, in those words alone, which gives it a later rank.
(``tokenizers`` 0.23, ``models/bpe/trainer.rs``, read for its behaviour.)
"""

from __future__ import annotations

import itertools
from collections import Counter, defaultdict
from typing import TYPE_CHECKING

from bpe.reference.merge import Pair
from bpe.reference.train import Learnt, Whole, admit
from bpe.training_report import TrainedMerge

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from bpe.reference.train import Words

Entry = tuple[int, Pair, set[int]]


def train(
    words: Words,
    *,
    vocab_size: int,
    alphabet: Sequence[bytes],
    min_frequency: int = 1,
    forbidden: Collection[bytes] = (),
    whole: Whole | None = None,
) -> Learnt:
    """As ``bpe.reference.train.train``; a pair that is merged twice is listed twice."""
    ids = {symbol: i for i, symbol in enumerate(alphabet)}
    waiting = list(whole or [])
    texts = [list(symbols) for symbols, _ in words]
    weights = [count for _, count in words]
    counts: Counter[Pair] = Counter()
    places: defaultdict[Pair, set[int]] = defaultdict(set)
    for number, word in enumerate(texts):
        for pair in itertools.pairwise(word):
            counts[pair] += weights[number]
            places[pair].add(number)
    queue: list[Entry] = [(counts[pair], pair, places[pair]) for pair in counts]
    merges: list[TrainedMerge] = []
    while len(ids) < vocab_size and queue:
        i = min(range(len(queue)), key=lambda i: order(queue[i], ids))
        count, (left, right), numbers = queue[i]
        if count != counts[left, right]:  # outdated counts are corrected only here
            queue[i] = (counts[left, right], (left, right), numbers)
            continue
        if count < max(min_frequency, 1):
            break
        if left + right in forbidden:
            del queue[i]
            continue
        admit(waiting, ids, least=count, vocab_size=vocab_size, forbidden=forbidden)
        if len(ids) >= vocab_size:
            break
        del queue[i]
        ids.setdefault(left + right, len(ids))
        places = defaultdict(set)
        for number in numbers:
            merge_in_word(texts[number], (left, right), weights[number], counts, places, number)
        queue += [(counts[pair], pair, places[pair]) for pair in places if counts[pair] > 0]
        left_over = sum(len(word) * weight for word, weight in zip(texts, weights, strict=True))
        merges.append(TrainedMerge(left, right, count, left_over))
    admit(waiting, ids, least=min_frequency, vocab_size=vocab_size, forbidden=forbidden)
    return Learnt(merges, list(ids))


def order(entry: Entry, ids: Mapping[bytes, int]) -> tuple[int, int, int]:
    """The most frequent pair first, then the one of the smallest ids."""
    count, (left, right), _ = entry
    return -count, ids[left], ids[right]


def merge_in_word(
    word: list[bytes],
    pair: Pair,
    weight: int,
    counts: Counter[Pair],
    places: defaultdict[Pair, set[int]],
    number: int,
) -> None:
    """Merge a pair left to right; count what its neighbours lose and gain, but not the pair."""
    left, right = pair
    i = 0
    while i + 1 < len(word):
        if (word[i], word[i + 1]) == pair:
            if i > 0:
                counts[word[i - 1], left] -= weight
                counts[word[i - 1], left + right] += weight
                places[word[i - 1], left + right].add(number)
            if i + 2 < len(word):
                counts[right, word[i + 2]] -= weight
                counts[left + right, word[i + 2]] += weight
                places[left + right, word[i + 2]].add(number)
            word[i : i + 2] = [left + right]
        i += 1
