"""The program over its words: what ``bpe words`` does."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bpe.presets.preset import Preset, load
from bpe.presets.trained import PresetTokenizer

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from typing_extensions import Self


class WordsTokenizer(PresetTokenizer):
    """Trains on words given one by one, and shows each merge; the preset ``words``.

    Args:
        preset: other settings.

    Example:
        >>> words = WordsTokenizer().train(["low", "lower", "lowest"])
        >>> [(left + right, count) for left, right, count in words.merges]
        [('lo', 3), ('low', 3), ('lowe', 2)]
        >>> words.split("lowly")
        ['low', 'l', 'y', '</w>']
    """

    def __init__(self, preset: Preset | None = None) -> None:
        super().__init__(preset or load("words"))

    def train(
        self, words: Iterable[str] | Mapping[str, int], max_merges: int | None = None
    ) -> Self:
        """Learn merges from words.

        Args:
            words: any texts, or each with the number of times it counts.
            max_merges: merges at most; where it is not given, 200.

        Raises:
            TrainingError: the number is wrong.
        """
        return self._train(words, self.preset.stopping(max_merges=max_merges))
