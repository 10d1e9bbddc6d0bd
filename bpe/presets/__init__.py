"""Presets: the settings of published descriptions of BPE, one YAML file each in this folder.

``--preset NAME`` on the command line, ``Preset.load(NAME)`` in Python. ``docs/systems.md`` compares
the descriptions.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import pyarrow as pa
import yaml

from bpe.counting import count_pretokens
from bpe.counts import PretokenCounts
from bpe.errors import TrainingError
from bpe.models import SENTENCEPIECE_BPE, ByteLevel, CharacterLevel, Model, WordPiece
from bpe.pretokenizer import Pretokenizer
from bpe.ties import needs_order
from bpe.tokenizer import Tokenizer
from bpe.trainer import train

_FOLDER = Path(__file__).parent


@dataclass(frozen=True, kw_only=True)
class Preset:
    """All settings of training; only the texts are missing. ``dataclasses.replace`` varies it.

    Example:
        >>> tokenizer = Preset.load("interview").train(["low lower lowest"])
        >>> tokenizer.training.merges[0].count
        3

    Attributes:
        name: of the preset.
        pretokenizer: how texts are cut into words.
        model: what a word consists of before anything is merged.
        special_tokens: with ids from 0.
        ties: the tie rule, one of ``bpe.ties.TIES``.
        pair_counts: how pairs of equal symbols are counted, ``overlapping`` or ``disjoint``.
        min_frequency: rarer pairs are not merged.
        prune_below: rarer words are dropped.
        initial_alphabet: characters that are tokens even if no text holds them.
        character_coverage: the share of characters that are tokens, as in ``bpe.train``.
        vocab_size: tokens at most; None for any number.
        max_merges: merges at most; None for any number.
    """

    name: str
    pretokenizer: Pretokenizer
    model: Model = ByteLevel()  # noqa: RUF009 - immutable
    special_tokens: tuple[str, ...] = ()
    ties: str = "bytes-min"
    pair_counts: str = "overlapping"
    min_frequency: int = 1
    prune_below: int = 1
    initial_alphabet: tuple[str, ...] = ()
    character_coverage: Fraction | float | str = 1
    vocab_size: int | None = None
    max_merges: int | None = None

    @classmethod
    def load(cls, name: str) -> Preset:
        """Load a preset by its name.

        Raises:
            TrainingError: no preset has this name.
        """
        settings: dict[str, Any] = yaml.safe_load(path(name).read_text("utf-8"))
        settings.pop("track_order", None)  # follows from the tie rule
        cut = {key: _strings(settings.pop(key, ())) for key in ("normalizer", "never_split")}
        options = ("model", "symbols", "end_of_word", "unknown_token")
        model = {key: settings.pop(key) for key in options if key in settings}
        return cls(
            name=name,
            pretokenizer=Pretokenizer(settings.pop("pretokenizer"), **cut),
            model=model_of(**model),
            special_tokens=_strings(settings.pop("special_token", ())),
            initial_alphabet=tuple(settings.pop("initial_alphabet", "")),
            **settings,
        )

    def count(
        self, texts: Iterable[str] | pa.Array | pa.ChunkedArray, *, track_order: bool = False
    ) -> PretokenCounts:
        """Count the words of texts; tracks their order if the tie rule needs it."""
        return count_pretokens(
            texts,
            pretokenizer=self.pretokenizer,
            special_tokens=self.special_tokens,
            track_order=track_order or needs_order(self.ties),
        )

    def train(
        self,
        texts: Iterable[str] | pa.Array | pa.ChunkedArray | PretokenCounts,
        *,
        vocab_size: int | None = None,
        max_merges: int | None = None,
        progress: Callable[[int, int], object] | None = None,
    ) -> Tokenizer:
        """Train on texts, or on counts from `count`.

        Args:
            texts: what to learn from.
            vocab_size: tokens at most.
            max_merges: merges at most. Either of the two replaces both limits of the preset.
            progress: as in ``bpe.train``.

        Raises:
            TrainingError: there is no limit, or a setting is wrong.
        """
        settings = dict(vars(self.stopping(vocab_size=vocab_size, max_merges=max_merges)))
        del settings["name"], settings["pretokenizer"]  # the others are of `train`
        counts = texts if isinstance(texts, PretokenCounts) else self.count(texts)
        return train(counts, progress=progress, **settings)

    def stopping(self, *, vocab_size: int | None = None, max_merges: int | None = None) -> Preset:
        """Return the preset with other limits, or the preset itself if no limit is given."""
        if vocab_size is None and max_merges is None:
            return self
        return replace(self, vocab_size=vocab_size, max_merges=max_merges)


def names() -> tuple[str, ...]:
    """Return the names of the presets, sorted."""
    return tuple(sorted(file.stem for file in _FOLDER.glob("*.yaml")))


def path(name: str) -> Path:
    """Return the path of the file of a preset.

    Raises:
        TrainingError: there is no preset of this name.
    """
    if name not in names():
        near = difflib.get_close_matches(name, names(), 1, 0)[0]
        raise TrainingError(
            f"unknown preset {name!r}: use one of {', '.join(names())} (did you mean {near}?)"
        )
    return _FOLDER / f"{name}.yaml"


def _strings(value: str | Sequence[str]) -> tuple[str, ...]:
    return (value,) if isinstance(value, str) else tuple(value)


def model_of(
    model: str = "bpe",
    *,
    symbols: str = "bytes",
    end_of_word: str | None = None,
    unknown_token: str | None = None,
) -> Model:
    """Return the model that the options of the command line describe.

    Args:
        model: ``bpe``, ``wordpiece`` or ``sentencepiece-bpe``.
        symbols: what BPE merges, ``bytes`` or ``characters``; WordPiece merges characters.
        end_of_word: of BPE over characters; None for ``</w>``, "" for no such symbol.
        unknown_token: of BPE over characters (None: no such token), WordPiece (None: [UNK]) and
            SentencePiece's BPE (None: <unk>).

    Raises:
        TrainingError: there is no such model.
    """
    if model == "sentencepiece-bpe":
        unknown = SENTENCEPIECE_BPE.unknown if unknown_token is None else unknown_token
        return replace(SENTENCEPIECE_BPE, unknown=unknown)
    if model == "wordpiece":
        return WordPiece() if unknown_token is None else WordPiece(unknown=unknown_token)
    if model != "bpe":
        raise TrainingError(f"model {model!r} is unknown: use bpe, wordpiece or sentencepiece-bpe")
    if symbols == "bytes":
        return ByteLevel()
    end = CharacterLevel.end_of_word if end_of_word is None else end_of_word
    return CharacterLevel(end_of_word=end, unknown=unknown_token)
