"""Training, as in the textbook: count all pairs, merge the best one, begin again."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Container, Mapping, Sequence
from fractions import Fraction
from typing import Any, NamedTuple

from bpe.byte_alphabet import to_text
from bpe.pair_counts import count_pairs
from bpe.reference.merge import Pair, Symbols, apply_merges, join
from bpe.training_report import TrainedMerge

Words = list[tuple[Symbols, int]]
"""Each distinct word as its symbols, with its count."""

Whole = list[tuple[bytes, int]]
"""The tokens of words that are never split, with their counts, the most frequent first."""


class Learnt(NamedTuple):
    """The result of training.

    Attributes:
        merges: in their order.
        tokens: the vocabulary without special tokens, in the order of the ids.
        first_affected: the number of the first merge, made or missing, that could differ if each
            pair had occurred up to ``pruned`` times more; None if there is none.
        tied: the numbers of the merges that the tie rule decided.
    """

    merges: list[TrainedMerge]
    tokens: list[bytes]
    first_affected: int | None = None
    tied: tuple[int, ...] = ()


def train(
    words: Words,
    *,
    ties: str,
    alphabet: Sequence[bytes],
    pair_counts: str = "overlapping",
    vocab_size: int | None = None,
    max_merges: int | None = None,
    min_frequency: int = 1,
    forbidden: Collection[bytes] = (),
    whole: Whole | None = None,
    prefix: bytes | None = None,
    pruned: int = 0,
    known: Sequence[Pair] = (),
    look_up: bool = False,
    apart: Container[bytes] = (),
) -> Learnt:
    """Learn merges from words and their counts.

    Args:
        words: their order matters only to ``first-seen``.
        ties: the tie rule; ``huggingface`` is ``id-min`` with another alphabet.
        alphabet: the single symbols, in the order of their ids.
        pair_counts: how a pair of equal symbols is counted in a row of them.
        vocab_size: strings in the vocabulary at most, the alphabet included, special tokens not.
        max_merges: merges at most.
        min_frequency: a pair that occurs fewer times is never merged.
        forbidden: strings that are no tokens.
        whole: words that are never split; each comes before the first merge that is not more
            frequent.
        prefix: of WordPiece, which merges the pair with the greatest score.
        pruned: the greatest count that any pair can have lost to pruning.
        known: the merges of a tokenizer that is extended, by rank; its tokens are the alphabet.
        look_up: whether a word that is a token is encoded as it, whatever the merges.
        apart: symbols with which nothing merges: the symbols of characters without a token.
    """

    def encoded(symbols: Symbols) -> Symbols:
        if look_up and (word := b"".join(symbols)) in ids and word not in forbidden:
            return (word,)
        return apply_merges(symbols, ranks, prefix=prefix or b"")

    ids = {symbol: i for i, symbol in enumerate(alphabet)}
    waiting = list(whole or [])
    ranks: dict[Pair, int] = {}
    for pair in known:
        ranks.setdefault(pair, len(ranks))
    words = [(encoded(symbols), count) for symbols, count in words] if known or look_up else words
    merges: list[TrainedMerge] = []
    tied_merges: list[int] = []
    first_affected = None
    while not is_full(ids, vocab_size) and len(merges) != max_merges:
        counts = Counter(
            {
                pair: count
                for pair, count in count_pairs(words, pair_counts).items()
                if join(pair, prefix=prefix or b"") not in forbidden
                and pair[0] not in apart
                and pair[1] not in apart
            }
        )
        frequent = [pair for pair, count in counts.items() if count >= max(min_frequency, 1)]
        chosen = None
        if frequent:
            tied = (
                best(frequent, counts) if prefix is None else best_scored(frequent, counts, words)
            )
            chosen = choose(tied, ties, ids)
            admit(waiting, ids, least=counts[chosen], vocab_size=vocab_size, forbidden=forbidden)
            if is_full(ids, vocab_size):
                break
        if pruned and first_affected is None:
            rival = max((counts[pair] for pair in counts if pair != chosen), default=0)
            if rival + pruned >= (counts[chosen] if chosen else min_frequency):
                first_affected = len(merges)
        if chosen is None:
            break
        if len(tied) > 1:
            tied_merges.append(len(merges))
        ids.setdefault(join(chosen, prefix=prefix or b""), len(ids))
        ranks[chosen] = len(ranks)
        # A merge that makes an existing string may bring an older pair back. Applying all ranks,
        # not the new pair alone, keeps training equal to encoding.
        words = [(encoded(symbols), count) for symbols, count in words]
        merges.append(TrainedMerge(*chosen, counts[chosen], tokens(words)))
    admit(waiting, ids, least=min_frequency, vocab_size=vocab_size, forbidden=forbidden)
    return Learnt(merges, list(ids), first_affected, tuple(tied_merges))


def is_full(ids: Mapping[bytes, int], vocab_size: int | None) -> bool:
    """Return whether there is no room for another token."""
    return vocab_size is not None and len(ids) >= vocab_size


def admit(
    waiting: Whole,
    ids: dict[bytes, int],
    *,
    least: int,
    vocab_size: int | None,
    forbidden: Collection[bytes],
) -> None:
    """Give ids to waiting whole words of at least this frequency, while there is room."""
    while waiting and waiting[0][1] >= least and not is_full(ids, vocab_size):
        token, _ = waiting.pop(0)
        if token not in forbidden:
            ids.setdefault(token, len(ids))


def tokens(words: Words) -> int:
    """Return the length of the corpus in tokens."""
    return sum(len(symbols) * count for symbols, count in words)


def best(pairs: Sequence[Pair], counts: Mapping[Pair, int]) -> list[Pair]:
    """Return the most frequent pairs, in the order in which they were given."""
    most = max(counts[pair] for pair in pairs)
    return [pair for pair in pairs if counts[pair] == most]


def best_scored(pairs: Sequence[Pair], counts: Mapping[Pair, int], words: Words) -> list[Pair]:
    """Return the pairs of the greatest count(ab) / (count(a) * count(b)), as ``best``."""
    singles: Counter[bytes] = Counter()
    for symbols, count in words:
        for symbol in symbols:
            singles[symbol] += count
    scores = {
        (left, right): Fraction(counts[left, right], singles[left] * singles[right])
        for left, right in pairs
    }
    most = max(scores.values())
    return [pair for pair in pairs if scores[pair] == most]


def choose(tied: list[Pair], ties: str, ids: Mapping[bytes, int]) -> Pair:
    """Return the pair that a tie rule chooses; ``tied`` is in the order of first occurrence.

    A new tie rule is one line here, and perhaps one in ``sort_whole``.
    """
    rules: dict[str, Callable[[], Any]] = {
        "bytes-min": lambda: min(tied),
        "bytes-max": lambda: max(tied),
        "gpt2-max": lambda: max(tied, key=lambda pair: [*map(to_text, pair)]),
        "id-min": lambda: min(tied, key=lambda pair: (ids[pair[0]], ids[pair[1]])),
        "first-seen": lambda: tied[0],
    }
    pair: Pair = rules[ties]()
    return pair


def sort_whole(whole: Whole, ties: str) -> Whole:
    """Sort whole words by descending frequency, and equally frequent ones by a tie rule.

    Args:
        whole: in the order of first occurrence.
        ties: the rule.
    """
    if ties != "first-seen":
        whole = sorted(whole, reverse=ties in ("bytes-max", "gpt2-max"))
    return sorted(whole, key=lambda item: -item[1])
