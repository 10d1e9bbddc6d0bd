"""What training tells beside the tokenizer: ``training.json``, each merge with its count."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from bpe import models
from bpe._checksum import CHECKSUM, checksum_of, is_intact
from bpe.errors import TokenizerError, TokenizerFileError
from bpe.files import write_atomically
from bpe.formats.byte_alphabet import from_text, to_text
from bpe.models import ByteLevel, Model, WordPiece

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

VERSION = 1
Stopped = Literal["vocabulary full", "no pair left", "merge limit"]


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


@dataclass(frozen=True, slots=True)
class WholeWord:
    """A pre-token that is never split, and frequent enough to be a token.

    Attributes:
        token: its string, as bytes.
        count: how often it occurred.
        merges_before: how many merges came before it; its id comes after theirs.
    """

    token: bytes
    count: int
    merges_before: int


@dataclass(frozen=True, slots=True)
class MixedSource:
    """One of the counts that a tokenizer was trained on, and its share of the effective mix.

    Attributes:
        path: as it was given.
        weight: that its counts were multiplied by: ``3`` or ``1/2``.
        bytes_share: of the bytes of all texts, each as often as it counted; from 0 to 1.
        pretokens_share: the same of pre-tokens.
    """

    path: str
    weight: str
    bytes_share: float
    pretokens_share: float


class CurvePoint(NamedTuple):
    """How well a vocabulary compresses the corpus it was trained on.

    Attributes:
        vocab_size: tokens in the vocabulary.
        tokens: the length of the corpus.
        bytes_per_token: bytes of the corpus for each of them; 0.0 for an empty corpus.
    """

    vocab_size: int
    tokens: int
    bytes_per_token: float


@dataclass(frozen=True, kw_only=True)
class Training:
    """How a tokenizer came to be.

    The corpus, wherever its length is told here, are the words that were trained on: pre-tokens
    that are never split are not among them, nor those that were pruned.

    Attributes:
        merges: the merges in the order of their ranks.
        initial_tokens: the length of the corpus in single symbols, before the first merge.
        initial_words: the number of words in it.
        initial_bytes: its length in bytes.
        initial_vocab: tokens before the first merge: special tokens and the alphabet.
        ties: the rule that chose among equally good pairs.
        vocab_size: the size that was asked for, if one was.
        max_merges: the number of merges that was asked for, if one was.
        min_frequency: a pair that occurred fewer times was not merged.
        prune_below: a pre-token that occurred fewer times was dropped.
        model: what was trained.
        stopped: why training ended.
        repeated: the numbers of the merges that made a string that was there before, and so
            added no token.
        tied: the numbers of the merges that the tie rule chose among equally good pairs; None
            where that is not known: of ``huggingface``, whose counts can be old ones.
        whole_words: the pre-tokens that are never split and have become tokens.
        pruned: what was dropped for being rare, and ``first_affected_merge``: the number (from 0)
            of the first merge that could be another one had it not been dropped, which is that of
            the merge after the last if training could have gone on, and None where neither is
            so. None where nothing was to be dropped.
        counts: where the counts come from: pre-tokenizer, special tokens, totals.
        mix: the counts that were added up, with weights and shares; empty where one set of counts
            is all, without a weight.
    """

    merges: tuple[TrainedMerge, ...]
    initial_tokens: int
    initial_words: int
    initial_bytes: int
    initial_vocab: int
    ties: str
    vocab_size: int | None
    max_merges: int | None
    min_frequency: int
    prune_below: int
    model: Model
    stopped: Stopped
    repeated: tuple[int, ...]
    whole_words: tuple[WholeWord, ...]
    pruned: Mapping[str, int | None] | None
    counts: Mapping[str, Any]
    tied: tuple[int, ...] | None = None
    mix: tuple[MixedSource, ...] = ()

    @property
    def tokens(self) -> int:
        """The length of the corpus in tokens of the whole vocabulary."""
        return self.merges[-1].tokens_left if self.merges else self.initial_tokens

    @property
    def score(self) -> str:
        """What made one pair better than another: ``count``, or the score of ``wordpiece``."""
        return "wordpiece" if isinstance(self.model, WordPiece) else "count"

    def curve(self) -> list[CurvePoint]:
        """Compression for every vocabulary size from the alphabet alone to all tokens.

        Each point is what training with that ``vocab_size`` would have ended with.
        """
        return [
            CurvePoint(size, tokens, self.initial_bytes / tokens if tokens else 0.0)
            for size, tokens, _, _ in self._sizes()
        ]

    def truncated(self, vocab_size: int) -> Training:
        """What training with this smaller ``vocab_size`` would have told.

        Raises:
            TokenizerError: the size does not hold the special tokens and the alphabet, or is
                greater than that of the vocabulary.
        """
        sizes = {size: ends for size, _, *ends in self._sizes()}
        if vocab_size not in sizes:
            raise TokenizerError(
                f"`vocab_size` {vocab_size!r:.60} is not between {self.initial_vocab:,} (special "
                f"tokens and alphabet) and {max(sizes):,} (all tokens)"
            )
        merges, whole_words = sizes[vocab_size]
        affected = self.pruned["first_affected_merge"] if self.pruned is not None else None
        if affected is not None and affected >= merges:
            affected = None
        return replace(
            self,
            merges=self.merges[:merges],
            vocab_size=vocab_size,
            stopped="vocabulary full",
            repeated=tuple(number for number in self.repeated if number < merges),
            tied=self.tied and tuple(number for number in self.tied if number < merges),
            whole_words=self.whole_words[:whole_words],
            pruned=self.pruned and {**self.pruned, "first_affected_merge": affected},
        )

    def _sizes(self) -> Iterator[tuple[int, int, int, int]]:
        """Each vocabulary size, and then: tokens left, merges, whole words."""
        size, tokens, whole = self.initial_vocab, self.initial_tokens, 0
        yield size, tokens, 0, 0
        repeated = set(self.repeated)
        for number in range(len(self.merges) + 1):
            while whole < len(self.whole_words) and (
                self.whole_words[whole].merges_before == number
            ):
                size, whole = size + 1, whole + 1
                yield size, tokens, number, whole
            if number < len(self.merges):
                tokens = self.merges[number].tokens_left
                if number not in repeated:
                    size += 1
                    yield size, tokens, number + 1, whole

    def to_json(self) -> str:
        """The text of ``training.json``; the same training gives the same text."""
        spell = to_text if isinstance(self.model, ByteLevel) else bytes.decode
        head = {
            "version": VERSION,
            "model": model_settings(self.model),
            "score": self.score,
            "ties": self.ties,
            "vocab_size": self.vocab_size,
            "max_merges": self.max_merges,
            "min_frequency": self.min_frequency,
            "prune_below": self.prune_below,
            "stopped": self.stopped,
            "initial_vocab": self.initial_vocab,
            "initial_words": self.initial_words,
            "initial_bytes": self.initial_bytes,
            "initial_tokens": self.initial_tokens,
            "counts": dict(self.counts),
            "mix": [asdict(source) for source in self.mix],
            "pruned": None if self.pruned is None else dict(self.pruned),
            "repeated": list(self.repeated),
            "whole_words": [
                {**asdict(word), "token": spell(word.token)} for word in self.whole_words
            ],
        }
        merges = [
            {
                "left": spell(merge.left),
                "right": spell(merge.right),
                "count": merge.count,
                "tokens_left": merge.tokens_left,
            }
            for merge in self.merges
        ]
        tied = None if self.tied is None else list(self.tied)
        checksum = checksum_of({**head, "tied": tied, "merges": merges})
        rows = [json.dumps(merge, ensure_ascii=False) for merge in merges]
        opening = json.dumps(head, ensure_ascii=False, indent=2).removesuffix("\n}")
        opening += f',\n  "tied": {json.dumps(tied)},\n  "{CHECKSUM}": "{checksum}"'
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
        return cls.read(Path(path).read_bytes(), where=str(path))

    @classmethod
    def read(cls, data: bytes, *, where: str) -> Training:
        """The same from what is in the file, of which ``where`` is the name."""
        try:
            fields = json.loads(data)
            intact = is_intact(fields)
            training = cls._from_fields(fields)
        except (KeyError, TypeError, ValueError, AttributeError, RecursionError) as error:
            if isinstance(error, TokenizerFileError):
                raise TokenizerFileError(f"{where}: {error}") from None
            raise TokenizerFileError(
                f"{where}: not a training.json of beam-bpe ({type(error).__name__}: {error})"
            ) from error
        if not intact:
            raise TokenizerFileError(f"{where}: its checksum says that it was changed: train again")
        return training

    @classmethod
    def _from_fields(cls, fields: dict[str, Any]) -> Training:
        fields.pop(CHECKSUM, None)  # those of earlier releases have none
        version = fields.pop("version")
        if version != VERSION:
            raise TokenizerFileError(
                f"training.json of version {version!r}, this reads version {VERSION}"
            )
        score = fields.pop("score")
        model = _model(fields.pop("model"))
        read = from_text if isinstance(model, ByteLevel) else str.encode
        training = cls(
            model=model,
            merges=tuple(
                TrainedMerge(
                    read(row["left"]),
                    read(row["right"]),
                    int(row["count"]),
                    int(row["tokens_left"]),
                )
                for row in fields.pop("merges")
            ),
            whole_words=tuple(
                WholeWord(read(row["token"]), int(row["count"]), int(row["merges_before"]))
                for row in fields.pop("whole_words")
            ),
            repeated=tuple(map(int, fields.pop("repeated"))),
            mix=tuple(MixedSource(**source) for source in fields.pop("mix", ())),
            tied=None if (tied := fields.pop("tied", None)) is None else tuple(map(int, tied)),
            **fields,
        )
        if score != training.score:
            raise ValueError(f"score {score!r} is not that of the model")
        return training


def model_settings(model: Model) -> dict[str, Any]:
    """Everything about a model, as training.json says it."""
    return {"type": type(model).__name__, **asdict(model)}


def _model(fields: dict[str, Any]) -> Model:
    kinds = {"ByteLevel", "CharacterLevel", "WordPiece"}
    kind = fields.pop("type")
    if kind not in kinds:
        raise ValueError(f"unknown model {kind!r}")
    model: Model = getattr(models, kind)(**fields)
    return model
