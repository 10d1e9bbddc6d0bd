"""How well the encoder's cache of words did."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(kw_only=True)
class CacheUse:
    """How many pre-tokens the encoder found in its cache of words; calls add to it.

    The cache begins with the tokens of the vocabulary, and what it holds hangs on what was encoded
    before, so neither number is the same from run to run: only their sum is.

    Attributes:
        hits: pre-tokens that it knew.
        misses: pre-tokens that were merged; with dropout all.
    """

    hits: int = 0
    misses: int = 0

    @property
    def pretokens(self) -> int:
        """All of them, but for those that nothing splits and that are tokens."""
        return self.hits + self.misses

    def add(self, *, hits: int, misses: int) -> None:
        """Add what another call found."""
        self.hits += hits
        self.misses += misses
