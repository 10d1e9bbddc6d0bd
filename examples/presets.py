"""Tokenizers with the methods that five published descriptions of BPE ask for.

Each class trains with a preset (``bpe.presets.Preset``), and adds what its description names. See
``docs/systems.md``.
"""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, NamedTuple

from bpe import Pretokenizer, Tokenizer
from bpe.errors import TokenizerError
from bpe.explain import Explainer
from bpe.pair_counts import count_pairs
from bpe.presets import Preset

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Iterable, Sequence

    from typing_extensions import Self

    from bpe import PretokenCounts, Training


class LearnedMerge(NamedTuple):
    """A merge, with the number of times its pair occurred."""

    left: str
    right: str
    count: int  # type: ignore[assignment]  # hides tuple.count


class PresetTokenizer:
    """A tokenizer by a preset: first `train` or `load`, then everything else.

    Args:
        preset: the settings.
    """

    def __init__(self, preset: Preset) -> None:
        self.preset = preset
        self._trained: Tokenizer | None = None
        self._counts: PretokenCounts | None = None

    def _train(self, texts: Iterable[str] | Mapping[str, int], preset: Preset) -> Self:
        """Count texts, in the order in which they come, and train on them."""
        counts = preset.count(_repeated(texts), track_order=True)
        self.adopt(preset.train(counts))
        self._counts = counts.pruned(preset.prune_below)
        return self

    def adopt(self, tokenizer: Tokenizer) -> Self:
        """Take a tokenizer that was trained elsewhere."""
        self.preset = replace(
            self.preset,
            pretokenizer=tokenizer.pretokenizer,
            model=tokenizer.model,
            special_tokens=tuple(tokenizer.special_tokens),
        )
        self._trained = tokenizer
        self._counts = None
        return self

    @property
    def tokenizer(self) -> Tokenizer:
        """The tokenizer itself, which does all that any `bpe.Tokenizer` does.

        Raises:
            TokenizerError: nothing was trained or loaded yet.
        """
        if self._trained is None:
            raise TokenizerError(f"this {type(self).__name__} is not trained: call train first")
        return self._trained

    @property
    def training(self) -> Training:
        """The training of the tokenizer.

        Raises:
            TokenizerError: it was loaded, from a file that does not say so.
        """
        if self.tokenizer.training is None:
            raise TokenizerError("this tokenizer was loaded: its training is in training.json")
        return self.tokenizer.training

    @property
    def merges(self) -> list[LearnedMerge]:
        """The merges in order, each with the count of its pair."""
        return [
            LearnedMerge(_text(merge.left), _text(merge.right), merge.count)
            for merge in self.training.merges
        ]

    @property
    def vocabulary(self) -> dict[str, int]:
        """The tokens with their ids, in the order of these."""
        return self.tokenizer.get_vocab()

    @property
    def word_counts(self) -> dict[str, int]:
        """The words trained on, in the order in which they were first seen."""
        return {_text(word): count for word, count in self._words()}

    @property
    def splits(self) -> dict[str, list[str]]:
        """The words trained on, each in its tokens, in the order in which they were first seen."""
        pieces = Explainer(self.tokenizer.parts).pieces
        return {_text(word): [*map(_text, pieces(word))] for word, _ in self._words()}

    def pair_counts(self) -> Counter[tuple[str, str]]:
        """The count of each pair of symbols before the first merge."""
        symbols = self.preset.model.symbols
        words = [(symbols(word), count) for word, count in self._words()]
        pairs = count_pairs(words, self.preset.pair_counts)
        return Counter({(_text(left), _text(right)): n for (left, right), n in pairs.items()})

    def split(self, text: str, *, clean: bool = False) -> list[str]:
        """The pieces that the merges make of a text; characters nobody has seen stay what they are.

        WordPiece has no merges: its pieces are those of `tokenize`, an unknown word is its token.

        Args:
            text: is cut into words first.
            clean: leave out the marks at the ends of words.
        """
        words = self.tokenizer.pretokenizer.split(text)
        pieces = Explainer(self.tokenizer.parts).pieces
        return [_text(piece) for word in words for piece in pieces(word, clean=clean)]

    def _words(self) -> list[tuple[bytes, int]]:
        if self._counts is None:
            _ = self.tokenizer  # raises where there is none
            raise TokenizerError("this tokenizer was loaded: its file does not hold the words")
        words = list(self._counts.items())
        return [words[row] for row in self._counts.first_seen_rows().to_pylist()]

    def tokenize(self, text: str) -> list[str]:
        """The tokens of a text; what has none is the unknown token."""
        return self.tokenizer.tokenize(text)

    def __len__(self) -> int:
        """The size of the vocabulary; 0 before anything is trained."""
        return 0 if self._trained is None else len(self._trained)

    def get_vocab_size(self) -> int:
        """The size of the vocabulary; 0 before anything is trained."""
        return len(self)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the tokenizer as one JSON file; only ``bpe`` reads what others cannot express."""
        self.tokenizer.save(path, dialect="beam-bpe")

    def __repr__(self) -> str:
        name = type(self).__name__
        if self._trained is None:
            return f"<{name}, not trained>"
        return f"<{name}: {len(self):,} tokens, {len(self.tokenizer.merges):,} merges>"


class _SpecialTokens(PresetTokenizer):
    """Ids 0 to 3 are padding, unknown, beginning and end; texts are encoded as words."""

    _PRESET: ClassVar[str]

    pad_token_id = 0
    unk_token_id = 1
    bos_token_id = 2
    eos_token_id = 3

    def __init__(self) -> None:
        super().__init__(Preset.load(self._PRESET))

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
        ['low</w>', '<unk>', 'low</w>']
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
        """Return whether case is kept."""
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
        ['s', 'lowe', 'r', '</w>']
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
        bare = [token if token in special else token.removesuffix("</w>") for token in tokens]
        return [token for token in bare if token]


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
        super().__init__(Preset.load("notebook"))

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
        super().__init__(
            replace(Preset.load("byte-level"), pretokenizer=Pretokenizer(pretokenizer))
        )

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
        super().__init__(preset or Preset.load("words"))

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


def _repeated(texts: Iterable[str] | Mapping[str, int]) -> Iterable[str]:
    """Texts, or each text as often as a mapping says."""
    if not isinstance(texts, Mapping):
        return texts
    return (text for text, count in texts.items() for _ in range(count))


def _text(data: bytes) -> str:
    return data.decode("utf-8", "backslashreplace")
