"""Word-level tokenizers with four special tokens: the tutorial's, and the interview's."""

from __future__ import annotations

import warnings
from dataclasses import replace
from typing import TYPE_CHECKING, ClassVar

from bpe.presets.preset import load
from bpe.presets.trained import PresetTokenizer
from bpe.tokenizer import Tokenizer

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Iterable, Mapping

    from typing_extensions import Self


class _SpecialTokens(PresetTokenizer):
    """Ids 0 to 3 are padding, unknown, beginning and end; texts are encoded as words."""

    _PRESET: ClassVar[str]

    pad_token_id = 0
    unk_token_id = 1
    bos_token_id = 2
    eos_token_id = 3

    def __init__(self) -> None:
        super().__init__(load(self._PRESET))

    def encode(
        self,
        text: str,
        add_special_tokens: bool = False,
        *,
        dropout: float = 0.0,
        seed: int = 0,
    ) -> list[int]:
        """The ids of a text; a character without a token becomes the unknown token.

        Args:
            text: any text.
            add_special_tokens: whether the beginning and the end get tokens of their own.
            dropout: how often a merge is left out, as in `bpe.Tokenizer.encode`.
            seed: of the random numbers for that.
        """
        ids = self.tokenizer.encode(text, dropout=dropout, seed=seed)
        return [self.bos_token_id, *ids, self.eos_token_id] if add_special_tokens else ids

    def decode(self, ids: Iterable[int], skip_special: bool = True) -> str:
        """The text of ids: words with single spaces between them.

        Args:
            ids: of any tokens.
            skip_special: leave out special tokens, the unknown token among them.
        """
        return self.tokenizer.decode(ids, skip_special_tokens=skip_special)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """Read what `save` wrote.

        Raises:
            TokenizerFileError: the file is broken.
        """
        return cls().adopt(Tokenizer.load(path))


class WordTutorialTokenizer(_SpecialTokens):
    """Words in lower case, closed by ``</w>``; the preset ``word-tutorial``.

    Args:
        case_sensitive: keep case.

    Example:
        >>> tokenizer = WordTutorialTokenizer().train(["low low low lower lower"], vocab_size=13)
        >>> tokenizer.tokenize("Low slow")
        ['low', '</w>', '<unk>', 'low', '</w>']
        >>> tokenizer.decode(tokenizer.encode("lower", add_special_tokens=True))
        'lower'
    """

    _PRESET = "word-tutorial"

    def __init__(self, *, case_sensitive: bool = False) -> None:
        super().__init__()
        if case_sensitive:
            cut = replace(self.preset.pretokenizer, normalizer=())
            self.preset = replace(self.preset, pretokenizer=cut)

    @property
    def case_sensitive(self) -> bool:
        """Whether case is kept."""
        return "lowercase" not in self.preset.pretokenizer.normalizer

    def train(
        self,
        texts: Iterable[str] | Mapping[str, int],
        vocab_size: int | None = None,
        min_freq: int = 2,
        verbose: bool | Callable[[str], object] = False,
        *,
        max_merges: int | None = None,
    ) -> Self:
        """Learn merges from texts.

        Args:
            texts: any texts, or each with the number of times it counts.
            vocab_size: tokens at most: the special tokens, all characters, and the merges. A size
                that the first two fill trains no merge, and warns.
            min_freq: words that occur fewer times are dropped.
            verbose: print every merge; a function is called with each line instead.
            max_merges: merges at most.

        Raises:
            TrainingError: nothing says when to stop, or a number is wrong.
        """
        preset = self.preset.stopping(vocab_size=vocab_size, max_merges=max_merges)
        self._train(texts, replace(preset, prune_below=min_freq))
        if vocab_size is not None and len(self) > vocab_size:
            warnings.warn(
                f"no merge was trained: the special tokens and the characters are {len(self)} "
                f"tokens, vocab_size is {vocab_size}: use a greater one",
                stacklevel=2,
            )
        if verbose:
            report = verbose if callable(verbose) else print
            for number, (left, right, count) in enumerate(self.merges, 1):
                report(f"merge {number}: {left} + {right} = {left}{right} ({count:,} times)")
            report(f"{len(self):,} tokens: {self.training.stopped}")
        return self

    def __repr__(self) -> str:
        case = "case kept" if self.case_sensitive else "lower case"
        return f"{super().__repr__()[:-1]}, {case}>"


class InterviewTokenizer(_SpecialTokens):
    """Words with their case, closed by ``</w>``; the preset ``interview``.

    Example:
        >>> tokenizer = InterviewTokenizer().train(["low lower lowest"], num_merges=3)
        >>> tokenizer.tokenize("slower")
        ['[UNK]', 'lowe', 'r', '</w>']
        >>> tokenizer.split("slower", clean=True)
        ['s', 'lowe', 'r']
    """

    _PRESET = "interview"

    def train(
        self,
        texts: Iterable[str] | Mapping[str, int],
        num_merges: int | None = None,
        *,
        vocab_size: int | None = None,
    ) -> Self:
        """Learn merges from texts.

        Args:
            texts: any texts, or each with the number of times it counts.
            num_merges: merges at most; 15 where neither number is given.
            vocab_size: tokens at most.

        Raises:
            TrainingError: a number is wrong.
        """
        return self._train(
            texts, self.preset.stopping(vocab_size=vocab_size, max_merges=num_merges)
        )

    def tokenize(self, text: str, *, clean: bool = False) -> list[str]:
        """The tokens of a text; what has none is the unknown token.

        Args:
            text: any text.
            clean: leave out the marks at the ends of words.
        """
        tokens = super().tokenize(text)
        if not clean:
            return tokens
        special = self.tokenizer.special_tokens
        bare = [one if one in special else one.removesuffix("</w>") for one in tokens]
        return [one for one in bare if one]
