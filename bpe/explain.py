"""How a pre-token merges, for people to look at."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping


class MergeStep(NamedTuple):
    """A pre-token on its way from single bytes to tokens.

    Attributes:
        symbols: what it consists of now.
        merge: the two symbols that were merged to get here; None at the start, and where the
            whole pre-token was looked up (``ignore_merges``).
    """

    symbols: tuple[bytes, ...]
    merge: tuple[bytes, bytes] | None


def merge_steps(
    pretoken: bytes, ranks: Mapping[tuple[bytes, bytes], int], *, at_once: bool
) -> list[MergeStep]:
    """All steps from single bytes to tokens, the lowest rank first, leftmost first.

    Args:
        pretoken: a piece of text that is not cut any more.
        ranks: the rank of each merge.
        at_once: whether the whole pre-token is looked up instead of being merged.
    """
    symbols = [bytes([byte]) for byte in pretoken]
    steps = [MergeStep(tuple(symbols), None)]
    if at_once and len(symbols) > 1:
        return [*steps, MergeStep((pretoken,), None)]
    while True:
        known = [(ranks[pair], i) for i, pair in enumerate(pairwise(symbols)) if pair in ranks]
        if not known:
            return steps
        _, i = min(known)
        merge = (symbols[i], symbols[i + 1])
        symbols[i : i + 2] = [merge[0] + merge[1]]
        steps.append(MergeStep(tuple(symbols), merge))
