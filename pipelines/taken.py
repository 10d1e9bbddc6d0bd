"""What an export takes of a source: its manifest and its summary say it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class Limit:
    """The last document of a partial epoch: its hash, the number of its part, its row there."""

    hash: int
    file: int
    row: int


@dataclass(frozen=True, kw_only=True)
class Taken:
    """What is taken of a source for training.

    Attributes:
        name: of the source.
        share: of the budget, as a fraction such as ``7/10``; empty without a budget.
        asked: tokens; all it has, without a budget.
        available_documents: those that are not held out.
        available_tokens: in them.
        epochs: how often all of them are taken.
        documents: that are taken, counted as often as they are.
        tokens: in these.
        limit: where the partial epoch ends; None: there is none.
    """

    name: str
    share: str
    asked: int
    available_documents: int
    available_tokens: int
    epochs: int
    documents: int
    tokens: int
    limit: Limit | None = None

    @property
    def all_epochs(self) -> range:
        """The numbers of its epochs; a partial one is last."""
        return range(self.epochs + (self.limit is not None))

    def is_partial(self, epoch: int) -> bool:
        """Whether only some documents are taken in this epoch."""
        return epoch >= self.epochs
