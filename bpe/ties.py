"""Tie rules: which of several equally good pairs is merged (``native/train/tie_breaker.h``)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bpe._native import TIES as WORD_ORDERS
from bpe.errors import TrainingError
from bpe.names import TIES as TIES  # noqa: PLC0414 - callers name it

if TYPE_CHECKING:
    from bpe._native import WordOrder


def needs_order(ties: str) -> bool:
    """Return whether a rule needs the order of the corpus: counts made with ``track_order``.

    Raises:
        TrainingError: there is no such rule.
    """
    return _word_order(ties) == "first-seen"


def sort_never_split(words: list[tuple[bytes, int]], *, ties: str) -> None:
    """Sort words that are never split: the most frequent first, then by a tie rule.

    Args:
        words: tokens and their counts; in the order of the corpus if the rule needs it.
        ties: the rule.

    Raises:
        TrainingError: there is no such rule.
    """
    order = _word_order(ties)
    if order != "first-seen":
        words.sort(reverse=order == "bytes-descending")
    words.sort(key=lambda item: item[1], reverse=True)


def check_ties(ties: str) -> None:
    """Refuse unknown tie rules.

    Raises:
        TrainingError: there is no such rule.
    """
    if ties not in TIES:
        raise TrainingError(f"unknown tie rule {ties!r}: use one of {', '.join(TIES)}")


def _word_order(ties: str) -> WordOrder:
    check_ties(ties)
    return WORD_ORDERS[ties]
