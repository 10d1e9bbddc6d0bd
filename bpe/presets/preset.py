"""Presets by name: everything that training needs to know but the texts."""

from __future__ import annotations

import difflib
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml

from bpe.counts import PretokenCounts
from bpe.counts.texts import count_pretokens
from bpe.errors import TrainingError
from bpe.models import ByteLevel, CharacterLevel, Model, WordPiece
from bpe.pretokenize import Pretokenizer
from bpe.train import train

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    import pyarrow as pa

    from bpe.tokenizer import Tokenizer

_INSTALLED = Path(__file__).with_name("settings")  # setup.py puts them there in a wheel
_CHECKOUT = Path(__file__).resolve().parents[2] / "configs" / "presets"


@dataclass(frozen=True, kw_only=True)
class Preset:
    """Everything that training needs to know but the texts; ``dataclasses.replace`` varies it.

    Attributes:
        name: what it is called.
        pretokenizer: how texts are cut into words.
        model: what a word consists of before anything is merged.
        special_tokens: with ids from 0.
        ties: the rule that chooses among equally frequent pairs, one of ``bpe.TIES``.
        min_frequency: a pair that occurs fewer times is not merged.
        prune_below: a word that occurs fewer times is dropped.
        initial_alphabet: characters that are tokens whether the texts hold them or not.
        vocab_size: tokens at most; None for any number.
        max_merges: merges at most; None for any number.
    """

    name: str
    pretokenizer: Pretokenizer
    model: Model = ByteLevel()  # noqa: RUF009 - immutable
    special_tokens: tuple[str, ...] = ()
    ties: str = "bytes-min"
    min_frequency: int = 1
    prune_below: int = 1
    initial_alphabet: tuple[str, ...] = ()
    vocab_size: int | None = None
    max_merges: int | None = None

    def count(
        self, texts: Iterable[str] | pa.Array | pa.ChunkedArray, *, track_order: bool = False
    ) -> PretokenCounts:
        """Count the words of texts; their order is tracked where the tie rule needs it."""
        return count_pretokens(
            texts,
            pretokenizer=self.pretokenizer,
            special_tokens=self.special_tokens,
            track_order=track_order or self.ties == "first-seen",
        )

    def train(
        self,
        texts: Iterable[str] | pa.Array | pa.ChunkedArray | PretokenCounts,
        *,
        vocab_size: int | None = None,
        max_merges: int | None = None,
        progress: Callable[[int, int], object] | None = None,
    ) -> Tokenizer:
        """Train on texts, or on counts that `count` made.

        Args:
            texts: what to learn from.
            vocab_size: tokens at most.
            max_merges: merges at most. Where one of the two is given, the preset's own do not
                count.
            progress: as in ``bpe.train``.

        Raises:
            TrainingError: nothing says when to stop, or a setting is wrong.
        """
        asked = self.stopping(vocab_size=vocab_size, max_merges=max_merges)
        return train(
            texts if isinstance(texts, PretokenCounts) else self.count(texts),
            vocab_size=asked.vocab_size,
            max_merges=asked.max_merges,
            ties=self.ties,
            special_tokens=self.special_tokens,
            min_frequency=self.min_frequency,
            prune_below=self.prune_below,
            model=self.model,
            initial_alphabet=self.initial_alphabet,
            progress=progress,
        )

    def stopping(self, *, vocab_size: int | None = None, max_merges: int | None = None) -> Preset:
        """The preset with another end of training; itself where neither is given."""
        if vocab_size is None and max_merges is None:
            return self
        return replace(self, vocab_size=vocab_size, max_merges=max_merges)


def names() -> tuple[str, ...]:
    """The names of the presets, sorted."""
    return tuple(sorted(file.stem for file in _folder().glob("*.yaml")))


def path(name: str) -> Path:
    """The file of a preset.

    Raises:
        TrainingError: there is no preset of that name.
    """
    if name not in names():
        near = difflib.get_close_matches(name, names(), 1, 0)[0]
        raise TrainingError(
            f"unknown preset {name!r}: use one of {', '.join(names())} (did you mean {near}?)"
        )
    return _folder() / f"{name}.yaml"


def _folder() -> Path:
    return _INSTALLED if _INSTALLED.is_dir() else _CHECKOUT


def load(name: str) -> Preset:
    """A preset by its name.

    Raises:
        TrainingError: there is none of that name, or its file holds a key that is no setting.

    Example:
        >>> tokenizer = load("interview").train(["low lower lowest"])
        >>> tokenizer.training.merges[0].count
        3
    """
    file = path(name)
    settings: dict[str, Any] = yaml.safe_load(file.read_text("utf-8"))
    settings.pop("track_order", None)  # follows from the tie rule
    try:
        return _preset(name=name, **settings)
    except TypeError as error:
        raise TrainingError(f"{file}: a setting is not known: {error}") from error


def _preset(
    *,
    name: str,
    pretokenizer: str,
    normalizer: str | Sequence[str] = (),
    never_split: str | Sequence[str] = (),
    special_token: str | Sequence[str] = (),
    model: str = "bpe",
    symbols: str = "bytes",
    end_of_word: str | None = None,
    unknown_token: str | None = None,
    initial_alphabet: str = "",
    **same: Any,
) -> Preset:
    """A preset from the options of the command line."""
    return Preset(
        name=name,
        pretokenizer=Pretokenizer(
            pretokenizer, normalizer=_several(normalizer), never_split=_several(never_split)
        ),
        model=model_of(
            model, symbols=symbols, end_of_word=end_of_word, unknown_token=unknown_token
        ),
        special_tokens=_several(special_token),
        initial_alphabet=tuple(initial_alphabet),
        **same,
    )


def _several(value: str | Sequence[str]) -> tuple[str, ...]:
    return (value,) if isinstance(value, str) else tuple(value)


def model_of(
    model: str = "bpe",
    *,
    symbols: str = "bytes",
    end_of_word: str | None = None,
    unknown_token: str | None = None,
) -> Model:
    """The model that the options of the command line describe.

    Args:
        model: ``bpe`` or ``wordpiece``.
        symbols: what BPE merges, ``bytes`` or ``characters``; WordPiece merges characters.
        end_of_word: of BPE over characters; None for ``</w>``, "" for none.
        unknown_token: of BPE over characters (None: there is none) and WordPiece (None: [UNK]).
    """
    if model == "wordpiece":
        return WordPiece() if unknown_token is None else WordPiece(unknown=unknown_token)
    if symbols == "bytes":
        return ByteLevel()
    if end_of_word is None:
        return CharacterLevel(unknown=unknown_token)
    return CharacterLevel(end_of_word=end_of_word, unknown=unknown_token)
