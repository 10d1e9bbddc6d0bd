"""Bytes: every text has an encoding, and decodes to itself."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from bpe.presets.preset import load
from bpe.presets.trained import PresetTokenizer
from bpe.pretokenize import Pretokenizer
from bpe.tokenizer import Tokenizer

if TYPE_CHECKING:
    import os
    from collections.abc import Iterable, Mapping, Sequence

    from typing_extensions import Self


class ByteLevelTokenizer(PresetTokenizer):
    """Bytes, special tokens first, nothing cut unless it is asked for; the preset ``byte-level``.

    Args:
        pretokenizer: a name of ``bpe.PRETOKENIZERS``; ``none``: a text is one sequence of bytes.

    Example:
        >>> tokenizer = ByteLevelTokenizer().train(["he eats", "she eats"], vocab_size=259)
        >>> [left + right for left, right, _ in tokenizer.merges]
        [' e', ' ea', ' eat']
        >>> tokenizer.decode(tokenizer.encode("he eats 🍎"))
        'he eats 🍎'
    """

    def __init__(self, *, pretokenizer: str = "none") -> None:
        super().__init__(replace(load("byte-level"), pretokenizer=Pretokenizer(pretokenizer)))

    def train(
        self,
        texts: Iterable[str] | Mapping[str, int],
        vocab_size: int | None = None,
        special_tokens: Sequence[str] = (),
        *,
        max_merges: int | None = None,
    ) -> Self:
        """Learn merges from texts.

        Args:
            texts: any texts, or each with the number of times it counts.
            vocab_size: tokens at most: the special tokens, the 256 bytes, and the merges.
            special_tokens: get the ids from 0; texts are cut at them.
            max_merges: merges at most.

        Raises:
            TrainingError: nothing says when to stop, or a number is wrong.
        """
        preset = self.preset.stopping(vocab_size=vocab_size, max_merges=max_merges)
        return self._train(texts, replace(preset, special_tokens=tuple(special_tokens)))

    def encode(self, text: str) -> list[int]:
        """The ids of a text; a special token in it is that token."""
        return self.tokenizer.encode(text, allowed_special="all")

    def decode(self, ids: Iterable[int]) -> str:
        """The text of ids; bytes that are no UTF-8 become U+FFFD."""
        return self.tokenizer.decode(ids)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write ``vocab.json`` and ``merges.txt`` into a directory, which is made if need be.

        They hold all but the pre-tokenizer.
        """
        self.tokenizer.save(Path(path) / "vocab.json", leave_out=["pretokenizer"])

    @classmethod
    def load(
        cls,
        path: str | os.PathLike[str],
        *,
        pretokenizer: str = "none",
        special_tokens: Sequence[str] | None = None,
    ) -> Self:
        """Read what `save` wrote.

        Args:
            path: the directory.
            pretokenizer: as when the tokenizer was trained.
            special_tokens: None: those of the vocabulary that no merge makes.

        Raises:
            TokenizerFileError: a file is broken.
        """
        tokenizer = Tokenizer.load(
            Path(path) / "vocab.json", pretokenizer=pretokenizer, special_tokens=special_tokens
        )
        return cls().adopt(tokenizer)
