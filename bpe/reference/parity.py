"""Parity-aware BPE in plain Python: one group of words after the other chooses the next merge.

Foroutan et al., "Parity-Aware Byte-Pair Encoding" (2025), arXiv 2508.04796, sections 3 and 4.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

from bpe.pair_counts import count_pairs
from bpe.reference.merge import Pair, apply_merges, join
from bpe.reference.train import best, choose, tokens

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from bpe.reference.train import Words


@dataclass(frozen=True)
class Chosen:
    """One step.

    Attributes:
        left: the left token.
        right: the right token.
        group: the number of the group that chose; None for all groups together.
        count: of the pair in all groups before the merge.
        tokens: of each group's words after the merge.
        held_out: of each group's held-out words after the merge.
    """

    left: bytes
    right: bytes
    group: int | None
    count: int
    tokens: list[int]
    held_out: list[int]


def train_parity(
    groups: Sequence[Words],
    held_out: Sequence[Words] = (),
    *,
    ties: str,
    pair_counts: str = "overlapping",
    alphabet: Sequence[bytes],
    max_merges: int,
    vocab_size: int | None = None,
    min_frequency: int = 2,
    global_merges: int = 0,
    window: int | None = None,
    alpha: float = 2,
    ratios: Sequence[float] | None = None,
    forbidden: Collection[bytes] = (),
) -> list[Chosen]:
    """The merges that groups choose in turn; arguments as those of ``bpe.train_parity``."""
    groups, held_out = list(groups), list(held_out)
    begin = [tokens(words) for words in held_out or groups]
    ids = {symbol: i for i, symbol in enumerate(alphabet)}
    ranks: dict[Pair, int] = {}
    steps: list[Chosen] = []
    while len(steps) < max_merges and (vocab_size is None or len(ids) < vocab_size):
        chooser = None
        if len(steps) >= global_merges:
            now = [tokens(words) for words in held_out or groups]
            turns = [step.group for step in steps if step.group is not None]
            chooser = worst(
                scores(begin, now, ratios, relative=ratios is not None or not held_out),
                turns=turns[-window:] if window else [],
                most=alpha / len(groups) * (1 if window else float("inf")),
                window=window or 1,
            )
        words = groups[chooser] if chooser is not None else [w for group in groups for w in group]
        counts = Counter(
            {
                pair: count
                for pair, count in count_pairs(words, pair_counts).items()
                if join(pair) not in forbidden and count >= max(min_frequency, 1)
            }
        )
        if not counts:
            break
        pair = choose(best(list(counts), counts), ties, ids)
        count = sum(count_pairs(group, pair_counts)[pair] for group in groups)
        ids.setdefault(join(pair), len(ids))
        ranks[pair] = len(ranks)
        groups = [[(apply_merges(word, ranks), n) for word, n in group] for group in groups]
        held_out = [[(apply_merges(word, ranks), n) for word, n in group] for group in held_out]
        steps.append(
            Chosen(*pair, chooser, count, [*map(tokens, groups)], [*map(tokens, held_out)])
        )
    return steps


def scores(
    begin: Sequence[int], now: Sequence[int], ratios: Sequence[float] | None, *, relative: bool
) -> list[float]:
    """How badly each group is compressed: its tokens, or (negative) symbols per token by ratio."""
    if not relative:
        return [float(tokens) for tokens in now]
    ratios = ratios or [1.0] * len(now)
    return [-(float(b) / float(n)) / r for b, n, r in zip(begin, now, ratios, strict=True)]


def worst(scores: Sequence[float], *, turns: Sequence[int], most: float, window: int) -> int:
    """The group of the greatest score, the first of equals, that has not had too many turns."""
    allowed = [i for i in range(len(scores)) if turns.count(i) / window <= most]
    return max(allowed, key=lambda i: scores[i])
