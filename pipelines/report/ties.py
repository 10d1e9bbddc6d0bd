"""What the tie rule decided: merges that were chosen among equally frequent pairs."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from bpe.training import TrainedMerge, Training


class Tie(NamedTuple):
    """A merge, and a pair that was as good at that moment and had to wait.

    Attributes:
        number: of the merge, from 0.
        chosen: it.
        waited: the pair that was merged next.
    """

    number: int
    chosen: TrainedMerge
    waited: TrainedMerge


def proven_ties(training: Training) -> list[Tie]:
    """The merges of which the next one proves that a tie rule chose them, with what had to wait.

    Where merge k + 1 has the count of merge k, and neither of its symbols is the one that merge k
    made, its pair was there before merge k, and as often: merge k can only take occurrences from
    it, and no pair occurred more often. (A rival that lost some of its occurrences by merge k is
    not found so: ``Training.tied`` has all.) Of WordPiece there are none: its scores are not known.
    """
    if training.score != "count":
        return []
    merges = training.merges
    ties = []
    repeated = set(training.repeated)  # these can bring back pairs of other symbols
    for number in range(len(merges) - 1):
        chosen, after = merges[number], merges[number + 1]
        made = chosen.left + chosen.right
        is_new = number in repeated or made in (after.left, after.right)
        if after.count == chosen.count and not is_new:
            ties.append(Tie(number, chosen, after))
    return ties
