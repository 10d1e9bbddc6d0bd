"""Parity-aware BPE in plain Python: one group of words after the other chooses the next merge.

Foroutan et al., "Parity-Aware Byte-Pair Encoding" (2025), arXiv 2508.04796, sections 3 and 4.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from bpe.pair_counts import count_pairs
from bpe.reference.merge import Pair, apply_merges, join
from bpe.reference.train import Words, tokens, train


@dataclass(frozen=True)
class Chosen:
    """A merge with the group that chose it.

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
    pair_counts: str = "overlapping",
    alphabet: Sequence[bytes],
    max_merges: int,
    vocab_size: int | None = None,
    global_merges: int = 0,
    window: int | None = None,
    alpha: float = 2,
    **settings: Any,
) -> list[Chosen]:
    """Return the merges that groups choose in turn; arguments as in ``bpe.train_parity``.

    Each is the first merge of an ordinary training on the words of the group that chooses
    (``bpe.reference.train.train``, which takes the settings).
    """

    def score(group: int) -> float:
        """Return a group's held-out tokens, or else its (negative) symbols per token."""
        now = float(tokens((held_out or groups)[group]))
        return now if held_out else -(float(begin[group]) / now)

    groups, held_out = list(groups), list(held_out)
    begin = [tokens(words) for words in held_out or groups]
    ids = {symbol: i for i, symbol in enumerate(alphabet)}
    ranks: dict[Pair, int] = {}
    steps: list[Chosen] = []
    while len(steps) < max_merges and (vocab_size is None or len(ids) < vocab_size):
        chooser, words = None, [word for group in groups for word in group]
        if len(steps) >= global_merges:
            turns = [step.group for step in steps[-window:]] if window else []
            most = alpha / len(groups)
            allowed = [i for i in range(len(groups)) if turns.count(i) / (window or 1) <= most]
            chooser = max(allowed, key=score)  # the first of equals
            words = groups[chooser]
        learnt = train(words, alphabet=[*ids], pair_counts=pair_counts, max_merges=1, **settings)
        if not learnt.merges:
            break
        pair = (learnt.merges[0].left, learnt.merges[0].right)
        count = sum(count_pairs(group, pair_counts)[pair] for group in groups)
        ids.setdefault(join(pair), len(ids))
        ranks[pair] = len(ranks)
        groups = [[(apply_merges(word, ranks), n) for word, n in group] for group in groups]
        held_out = [[(apply_merges(word, ranks), n) for word, n in group] for group in held_out]
        steps.append(
            Chosen(*pair, chooser, count, [*map(tokens, groups)], [*map(tokens, held_out)])
        )
    return steps
