"""Numbers that manifests and summaries share."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class SetAside:
    """A file that could not be read when files were appended, and why."""

    name: str
    reason: str

    def __str__(self) -> str:
        return f"{self.name}: {self.reason}"


@dataclass(frozen=True, kw_only=True)
class Limit:
    """The last document of a partial epoch: its hash, the number of its part, its row there."""

    hash: int
    file: int
    row: int


@dataclass(frozen=True, kw_only=True)
class Taken:
    """The part of a source that is taken for training.

    Attributes:
        name: the name of the source.
        share: the share of the budget, as a fraction such as ``7/10``; empty without a budget.
        asked: the number of tokens that the budget asks for; without a budget, all tokens.
        available_documents: the number of documents that are not held out.
        available_tokens: the number of tokens in the available documents.
        epochs: how many times all available documents are taken.
        documents: the number of documents taken; a document taken twice counts twice.
        tokens: the number of tokens in the documents taken.
        limit: the end of the partial epoch; None without a partial epoch.
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
    def all_epochs(self) -> list[int | None]:
        """Return the numbers of the epochs, a partial one last; then None, for validation."""
        return [*range(self.epochs + (self.limit is not None)), None]

    def is_partial(self, epoch: int) -> bool:
        """Return whether only some documents are taken in this epoch."""
        return epoch >= self.epochs


@dataclass(frozen=True)
class SourceTotals:
    """Sums over the parts of one source."""

    documents: int = 0
    tokens: int = 0
    text_bytes: int = 0


@dataclass(frozen=True, kw_only=True)
class DuplicateIds:
    """Documents whose id another document before them has; ``example`` is one such id."""

    documents: int = 0
    example: str = ""
