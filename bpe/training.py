"""What training tells beside the tokenizer: ``training.json``, each merge with its count."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from bpe.errors import TokenizerFileError
from bpe.files import write_atomically
from bpe.formats.byte_alphabet import from_text, to_text

if TYPE_CHECKING:
    from collections.abc import Mapping

VERSION = 1
Stopped = Literal["vocabulary full", "no pair left"]


@dataclass(frozen=True, slots=True)
class TrainedMerge:
    """One step of training.

    Attributes:
        left: the left token, as bytes.
        right: the right token, as bytes.
        count: how often the pair occurred when it was merged, overlapping occurrences included.
        tokens_left: the length of the corpus in tokens after the merge.
    """

    left: bytes
    right: bytes
    count: int
    tokens_left: int


@dataclass(frozen=True, kw_only=True)
class Training:
    """How a tokenizer came to be.

    Attributes:
        merges: the merges in the order of their ranks.
        initial_tokens: the length of the corpus in single bytes, before the first merge.
        ties: the rule that chose among equally frequent pairs.
        vocab_size: the size that was asked for.
        min_frequency: a pair that occurred fewer times was not merged.
        stopped: why training ended.
        counts: where the counts come from: pre-tokenizer, special tokens, totals.
    """

    merges: tuple[TrainedMerge, ...]
    initial_tokens: int
    ties: str
    vocab_size: int
    min_frequency: int
    stopped: Stopped
    counts: Mapping[str, Any]

    @property
    def tokens(self) -> int:
        """The length of the corpus in tokens of the whole vocabulary."""
        return self.merges[-1].tokens_left if self.merges else self.initial_tokens

    def to_json(self) -> str:
        """The text of ``training.json``; the same training gives the same text."""
        head = {
            "version": VERSION,
            "ties": self.ties,
            "vocab_size": self.vocab_size,
            "min_frequency": self.min_frequency,
            "stopped": self.stopped,
            "initial_tokens": self.initial_tokens,
            "counts": dict(self.counts),
        }
        rows = [
            json.dumps(
                {
                    "left": to_text(merge.left),
                    "right": to_text(merge.right),
                    "count": merge.count,
                    "tokens_left": merge.tokens_left,
                },
                ensure_ascii=False,
            )
            for merge in self.merges
        ]
        opening = json.dumps(head, ensure_ascii=False, indent=2).removesuffix("\n}")
        return opening + ',\n  "merges": [\n    ' + ",\n    ".join(rows) + "\n  ]\n}\n"

    def save(self, path: str | Path) -> None:
        """Write ``training.json``; the file appears when it is complete."""
        write_atomically(path, self.to_json().encode())

    @classmethod
    def load(cls, path: str | Path) -> Training:
        """Read ``training.json``.

        Raises:
            TokenizerFileError: the file is not what :meth:`save` writes; names file and entry.
        """
        try:
            fields = json.loads(Path(path).read_bytes())
            version = fields.pop("version")
            if version != VERSION:
                raise TokenizerFileError(
                    f"{path}: training.json of version {version!r}, this reads version {VERSION}"
                )
            merges = tuple(
                TrainedMerge(
                    from_text(row["left"]),
                    from_text(row["right"]),
                    int(row["count"]),
                    int(row["tokens_left"]),
                )
                for row in fields.pop("merges")
            )
            return cls(merges=merges, **fields)
        except (KeyError, TypeError, ValueError, AttributeError, RecursionError) as error:
            if isinstance(error, TokenizerFileError):
                raise
            raise TokenizerFileError(
                f"{path}: not a training.json of beam-bpe ({type(error).__name__}: {error})"
            ) from error
