"""What the trainer has learnt, as a tokenizer."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

from bpe.models import Model, WordPiece
from bpe.tokenizer import Tokenizer
from bpe.training import Stopped, TrainedMerge, Training, WholeWord

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from bpe._native import Trainer
    from bpe._training_words import Alphabet, TrainingWords
    from bpe.counts import PretokenCounts
    from bpe.counts.pruning import Pruned
    from bpe.pretokenize import Pretokenizer


@dataclass(frozen=True, kw_only=True)
class TrainedFrom:
    """What a tokenizer remembers of its counts.

    Attributes:
        pretokenizer: how text was cut.
        settings: for ``training.json``: how the corpus was counted, and totals.
        prune: what was dropped for being rare.
        words: that were trained on, each as often as it occurs.
        bytes: of all of them.
    """

    pretokenizer: Pretokenizer
    settings: Mapping[str, object]
    prune: Pruned | None
    words: int
    bytes: int

    @classmethod
    def of(cls, counts: PretokenCounts, words: TrainingWords) -> TrainedFrom:
        """Of counts, of which these words are trained on."""
        return cls(
            pretokenizer=counts.pretokenizer,
            settings={
                **counts.pretokenizer.settings,
                "special_tokens": list(counts.special_tokens),
                "scale": counts.scale,
                "documents": counts.totals.documents,
                "bytes": counts.totals.bytes,
                "pretokens": counts.totals.pretokens,
                "distinct_pretokens": len(counts),
            },
            prune=counts.prune,
            words=words.occurrences,
            bytes=words.size,
        )


def trained_tokenizer(
    trainer: Trainer,
    source: TrainedFrom,
    *,
    specials: Sequence[str],
    alphabet: Alphabet,
    ties: str,
    vocab_size: int | None,
    max_merges: int | None,
    min_frequency: int,
    prune_below: int,
    model: Model,
) -> Tokenizer:
    """The tokenizer of a trainer that is done; the settings are those of ``bpe.train``."""
    strings = trainer.tokens()
    stopped: Stopped = "no pair left"
    if trainer.vocabulary_full:
        stopped = "vocabulary full"
    elif trainer.merge_count == max_merges:
        stopped = "merge limit"
    first_id = len(specials)
    left, right, token = (
        memoryview(ids).cast("I") for ids in (trainer.left(), trainer.right(), trainer.token())
    )
    training = Training(
        merges=tuple(
            TrainedMerge(strings[i], strings[j], count, tokens_left)
            for i, j, count, tokens_left in zip(
                left,
                right,
                memoryview(trainer.count()).cast("q"),
                memoryview(trainer.tokens_left()).cast("q"),
                strict=True,
            )
        ),
        initial_tokens=trainer.initial_tokens,
        initial_words=source.words,
        initial_bytes=source.bytes,
        initial_vocab=first_id + len(alphabet.symbols),
        ties=ties,
        vocab_size=vocab_size,
        max_merges=max_merges,
        min_frequency=min_frequency,
        prune_below=prune_below,
        model=model,
        stopped=stopped,
        repeated=tuple(memoryview(trainer.repeated()).cast("I")),
        tied=None if ties == "huggingface" else tuple(memoryview(trainer.tied()).cast("I")),
        whole_words=tuple(
            WholeWord(strings[i], count, merges_before)
            for i, count, merges_before in trainer.whole_tokens()
        ),
        pruned=_pruned(trainer, source.prune, model, stopped),
        counts=source.settings,
    )
    return Tokenizer(
        tokens=[*(special.encode() for special in specials), *strings],
        merges=[]
        if isinstance(model, WordPiece)
        else [
            (first_id + i, first_id + j, first_id + k)
            for i, j, k in zip(left, right, token, strict=True)
        ],
        special_tokens={special: i for i, special in enumerate(specials)},
        pretokenizer=source.pretokenizer,
        model=model,
        training=training,
    )


def _pruned(
    trainer: Trainer, prune: Pruned | None, model: Model, stopped: Stopped
) -> Mapping[str, int | None] | None:
    if prune is None:
        return None
    affected = trainer.first_affected
    if affected == trainer.merge_count and stopped == "vocabulary full":
        affected = None  # whole words took the room that a missing merge could have had
    if isinstance(model, WordPiece) and prune.distinct_pretokens:
        # Any word can change any score: one pair of two rare symbols has the greatest.
        affected = 0 if trainer.merge_count or stopped == "no pair left" else None
    return {**asdict(prune), "first_affected_merge": affected}
