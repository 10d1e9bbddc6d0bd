"""What the classes of the presets share: a preset, and the tokenizer that was trained with it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from bpe.errors import TokenizerError
from bpe.explain import merge_steps
from bpe.models import CharacterLevel, WordPiece
from bpe.reference.train import count_pairs

if TYPE_CHECKING:
    import os
    from collections.abc import Iterable

    from typing_extensions import Self

    from bpe.counts import PretokenCounts
    from bpe.presets.preset import Preset
    from bpe.tokenizer import Tokenizer
    from bpe.training import Training


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
        self.__dict__.pop("_ranks", None)
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
        """How the tokenizer came to be.

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
        of = self.tokenizer.token_text
        return {of(id_): id_ for id_, token in enumerate(self.tokenizer.tokens) if token}

    @property
    def word_counts(self) -> dict[str, int]:
        """The words trained on, in the order in which they were first seen."""
        return {_text(word): count for word, count in self._words()}

    @property
    def splits(self) -> dict[str, list[str]]:
        """The words trained on, each in its tokens, in the order in which they were first seen."""
        return {_text(word): self._split_word(word) for word, _ in self._words()}

    def pair_counts(self) -> Counter[tuple[str, str]]:
        """How often each pair of symbols occurs before the first merge."""
        symbols = self.preset.model.symbols
        pairs = count_pairs([(symbols(word), count) for word, count in self._words()])
        return Counter({(_text(left), _text(right)): n for (left, right), n in pairs.items()})

    def split(self, text: str, *, clean: bool = False) -> list[str]:
        """The pieces that the merges make of a text; characters nobody has seen stay what they are.

        WordPiece has no merges: its pieces are those of `tokenize`, an unknown word is its token.

        Args:
            text: is cut into words first.
            clean: leave out the marks at the ends of words.
        """
        words = self.tokenizer.pretokenizer.split(text)
        return [piece for word in words for piece in self._split_word(word, clean=clean)]

    def _split_word(self, word: bytes, *, clean: bool = False) -> list[str]:
        model = self.tokenizer.model
        if isinstance(model, WordPiece):  # encodes by its tokens, not by merges
            steps = self.tokenizer.explain(word)
        else:
            steps = merge_steps(model.symbols(word), self._ranks)
        pieces = list(steps[-1].symbols)
        if clean and isinstance(model, CharacterLevel) and pieces:
            pieces[-1] = pieces[-1].removesuffix(model.end_of_word.encode())
        return [_text(piece) for piece in pieces if piece]

    @cached_property
    def _ranks(self) -> dict[tuple[bytes, bytes], int]:
        of = self.tokenizer.token_bytes
        merges = self.tokenizer.merges
        return {(of(left), of(right)): rank for rank, (left, right, _) in enumerate(merges)}

    def _words(self) -> list[tuple[bytes, int]]:
        if self._counts is None:
            _ = self.tokenizer  # says so where there is none
            raise TokenizerError("this tokenizer was loaded: its file does not hold the words")
        counts = self._counts
        places = pa.table([counts.first_documents, counts.first_positions], ["text", "word"])
        order = pc.sort_indices(places, [("text", "ascending"), ("word", "ascending")])
        items = list(counts.items())
        return [items[i] for i in order.to_pylist()]

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


def _repeated(texts: Iterable[str] | Mapping[str, int]) -> Iterable[str]:
    """Texts, or each text as often as a mapping says."""
    if not isinstance(texts, Mapping):
        return texts
    return (text for text, count in texts.items() for _ in range(count))


def _text(data: bytes) -> str:
    return data.decode("utf-8", "backslashreplace")
