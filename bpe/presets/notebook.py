"""The notebook's tokenizer: words between single spaces, and a number of merges."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bpe.presets.preset import load
from bpe.presets.trained import PresetTokenizer

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from typing_extensions import Self


class NotebookTokenizer(PresetTokenizer):
    """Words between single spaces, case kept, closed by ``</w>``; the preset ``notebook``.

    Example:
        >>> notebook = NotebookTokenizer().train(["the cat", "the hat"], num_merges=2)
        >>> notebook.merges
        [LearnedMerge(left='t', right='h', count=2), LearnedMerge(left='th', right='e', count=2)]
        >>> notebook.splits["the"]
        ['the', '</w>']
    """

    def __init__(self) -> None:
        super().__init__(load("notebook"))

    def train(
        self, texts: Iterable[str] | Mapping[str, int], num_merges: int | None = None
    ) -> Self:
        """Learn merges from texts.

        Args:
            texts: any texts, or each with the number of times it counts.
            num_merges: merges at most; 15 where no number is given.

        Raises:
            TrainingError: the number is wrong.
        """
        return self._train(texts, self.preset.stopping(max_merges=num_merges))
