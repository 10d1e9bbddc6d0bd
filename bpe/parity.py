"""Parity-aware training: counts of several groups to one tokenizer that treats them alike.

The merges are those of ``bpe.reference.parity``.
"""

from __future__ import annotations

import functools
import math
import operator
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, replace
from typing import cast

from bpe._native import Trainer
from bpe.counts import PretokenCounts, combine
from bpe.errors import TrainingError
from bpe.models import ByteLevel
from bpe.tokenizer import Tokenizer
from bpe.trainer import (
    MAX_FREQUENCY,
    MAX_VOCAB,
    TrainingState,
    WordSettings,
    check_number,
)
from bpe.training_report import Parity, ParityGroup, TrainedMerge, Training

GroupedCounts = Mapping[str, PretokenCounts | Callable[[], PretokenCounts]]

TIES = "gpt2-max"
MIN_FREQUENCY = 2
ALPHA = 2.0
_MOST_SYMBOLS = 1 << 62
_TOTALS = ("documents", "bytes", "pretokens", "distinct_pretokens")  # of counts, in training.json


def train_parity(
    counts: GroupedCounts,
    *,
    dev: GroupedCounts | None = None,
    vocab_size: int | None = None,
    max_merges: int | None = None,
    global_merges: int = 0,
    window: int | None = None,
    alpha: float = ALPHA,
    ties: str = TIES,
    pair_counts: str = "overlapping",
    special_tokens: Sequence[str] = (),
    min_frequency: int = MIN_FREQUENCY,
    prune_below: int = 1,
    progress: Callable[[int, int], object] | None = None,
) -> Tokenizer:
    """Train a byte-level tokenizer that compresses several groups (languages, sources) alike.

    At each step, the group that is compressed worst chooses: its most frequent pair is merged in
    all groups (Foroutan et al. 2025, arXiv 2508.04796). Groups of equal compression choose in the
    order of ``counts``. Training ends when the group whose turn it is has no pair of
    ``min_frequency``, even if others have.

    Args:
        counts: the counts of each group by name, with one pre-tokenizer; or functions that return
            them, which are called twice if there are global merges.
        dev: held-out counts of the same groups, ideally of parallel texts: the group with the most
            tokens in its held-out text is compressed worst. Without ``dev``, it is the group with
            the fewest bytes per token in ``counts``.
        vocab_size: as for ``bpe.train``.
        max_merges: as for ``bpe.train``.
        global_merges: the first merges, which all groups choose together (hybrid).
        window: a group that chose more than ``alpha / len(counts)`` of the last ``window`` merges
            is passed over (moving window). The authors use 100.
        alpha: see ``window``; at least 1.
        ties: as for ``bpe.train``; the authors' rule is ``gpt2-max``. Not ``huggingface``.
        pair_counts: as for ``bpe.train``.
        special_tokens: as for ``bpe.train``.
        min_frequency: as for ``bpe.train``, in the group that chooses.
        prune_below: drop pre-tokens that are rarer in their group.
        progress: as for ``bpe.train``.

    Returns:
        The tokenizer; ``tokenizer.training.parity`` says which group chose each merge, and how many
        tokens each group has in the end.

    Raises:
        TrainingError: a setting is wrong or does not go with another one, groups differ between
            arguments, one of them has no pre-tokens, or counts were cut differently.
    """
    settings = WordSettings(
        vocab_size=vocab_size,
        max_merges=max_merges,
        ties=ties,
        pair_counts=pair_counts,
        min_frequency=min_frequency,
        prune_below=prune_below,
        model=ByteLevel(),
    )
    names = tuple(counts)
    _check_settings(settings, global_merges=global_merges, window=window, alpha=alpha)
    _check_groups(names, dev=dev)
    groups = {
        f"group {name!r}": _begin(counts[name], f"group {name!r}", settings, special_tokens)
        for name in names
    }
    held_out = {}
    if dev is not None:
        # What is never asked for a pair needs no queue: none is frequent enough for it.
        silent = replace(settings, ties="bytes-min", min_frequency=MAX_FREQUENCY, prune_below=1)
        held_out = {
            title: _begin(dev[name], title, silent, special_tokens)
            for name, title in ((name, f"held-out group {name!r}") for name in names)
        }
    _check_agreement({**groups, **held_out})
    pooled = None
    if global_merges:
        pooled = TrainingState(
            _pooled(counts, prune_below), settings, special_tokens=special_tokens
        )
    trainer = _ParityTrainer(
        names,
        [*groups.values()],
        [*held_out.values()],
        pooled,
        Parity(global_merges, window, float(alpha), groups=(), chosen_by=()),
    )
    first, *_ = groups.values()
    first.merge(progress, step=trainer.step)
    tokenizer = first.tokenizer()  # the merges of one are those of all
    return tokenizer.with_training(trainer.report(cast("Training", tokenizer.training)))


class _ParityTrainer:
    """Trainers of groups, which share their merges and choose them in turn.

    Args:
        names: the names of the groups.
        groups: the trainers of the words of each group.
        held_out: the trainers of the held-out text of each group; empty without held-out text.
        pooled: the trainer of the words of all groups; None without global merges.
        parity: the settings. With held-out text, the group of the most tokens in it chooses; else
            that of the fewest symbols per token.

    Attributes:
        chosen: the number of the group that chose each merge; None for all together.
    """

    def __init__(
        self,
        names: Sequence[str],
        groups: Sequence[TrainingState],
        held_out: Sequence[TrainingState],
        pooled: TrainingState | None,
        parity: Parity,
    ) -> None:
        self._names, self._runs, self._held_out = names, groups, held_out
        self._groups = [run.trainer for run in groups]
        self._judged = [run.trainer for run in held_out or groups]
        self._pooled = None if pooled is None else pooled.trainer
        self._parity = parity
        self._initial = [trainer.initial_tokens for trainer in self._judged]
        self._turns: Counter[int | None] = Counter()  # of each group, in the window
        self.chosen: list[int | None] = []

    def step(self, merges: int) -> bool:
        """Do up to so many merges more; False when there is nothing left to do."""
        return all(self._merge() for _ in range(merges))

    def _merge(self) -> bool:
        together = self._pooled if len(self.chosen) < self._parity.global_merges else None
        group = self._worst() if together is None else None
        chooser = self._groups[group] if group is not None else together
        pair = None if chooser is None else chooser.choose()
        if pair is None:
            return False
        for trainer in dict.fromkeys((*self._groups, *self._judged)):
            trainer.merge(*pair)
        if together is not None:
            together.merge(*pair)
        self.chosen.append(group)
        self._turns[group] += 1
        window = self._parity.window
        if window and len(self.chosen) > window:
            self._turns[self.chosen[-1 - window]] -= 1
        return True

    def _worst(self) -> int:
        """Return the group that is compressed worst, the first of equals, of those that may choose.

        The numbers are compared as the authors' program does it, in floats.
        """
        most, window = self._parity.alpha / len(self._groups), self._parity.window
        allowed = (
            group
            for group in range(len(self._groups))
            if not window or self._turns[group] / window <= most
        )
        return max(allowed, key=self._score)

    def _score(self, group: int) -> float:
        tokens = float(self._judged[group].tokens_now)
        return tokens if self._held_out else -(self._initial[group] / tokens)

    def report(self, training: Training) -> Training:
        """Return the report of all groups, from that of the first."""
        sums = [
            (sum(count for *_, count, _ in same), sum(left for *_, left in same))
            for same in zip(*(trainer.merges() for trainer in self._groups), strict=True)
        ]
        choosers = [*self._groups, *([self._pooled] if self._pooled else [])]
        tied = {number for one in choosers for number in memoryview(one.tied()).cast("I")}
        return replace(
            training,
            merges=tuple(
                TrainedMerge(merge.left, merge.right, count, left)
                for merge, (count, left) in zip(training.merges, sums, strict=True)
            ),
            initial_tokens=sum(trainer.initial_tokens for trainer in self._groups),
            initial_words=sum(run.word_count for run in self._runs),
            initial_bytes=sum(run.word_bytes for run in self._runs),
            tied=tuple(sorted(tied)),
            pruned=self._pruned(choosers),
            counts={**self._runs[0].counts}
            | {name: sum(cast("int", run.counts[name]) for run in self._runs) for name in _TOTALS},
            parity=replace(
                self._parity,
                chosen_by=tuple(self.chosen),
                groups=tuple(map(self._group, range(len(self._groups)))),
            ),
        )

    def _group(self, number: int) -> ParityGroup:
        words = self._runs[number]
        group = ParityGroup(self._names[number], words.word_bytes, words.trainer.tokens_now)
        if not self._held_out:
            return group
        text = self._held_out[number]
        tokens = text.trainer.tokens_now
        return replace(group, held_out_bytes=text.word_bytes, held_out_tokens=tokens)

    def _pruned(self, choosers: Sequence[Trainer]) -> dict[str, int | None] | None:
        prunes = [run.prune for run in self._runs if run.prune is not None]
        if not prunes:
            return None
        lost = functools.reduce(operator.add, prunes)
        affected = [one.first_affected for one in choosers if one.first_affected is not None]
        if lost.distinct_pretokens and not self._held_out:
            affected = [0]  # another group might be compressed worst
        return {**asdict(lost), "first_affected_merge": min(affected, default=None)}


def _check_settings(
    settings: WordSettings, *, global_merges: int, window: int | None, alpha: float
) -> None:
    if settings.ties == "huggingface":
        raise TrainingError(
            "ties 'huggingface' are the merges of Hugging Face's trainer, which knows no groups: "
            "use one of the other rules"
        )
    check_number("global_merges", global_merges, least=0, most=MAX_VOCAB)
    if window is not None:
        check_number("window", window, least=1, most=MAX_VOCAB)
    if type(alpha) not in (int, float) or not 1 <= alpha < math.inf:
        raise TrainingError(
            f"`alpha` {alpha!r:.60} is not a number from 1 upwards: with less, all groups could be "
            "passed over"
        )


def _check_groups(names: Sequence[str], *, dev: GroupedCounts | None) -> None:
    if not names:
        raise TrainingError("there are no groups to train on")
    for name in set(names).symmetric_difference(names if dev is None else dev):
        where, missing = ("`counts`", "`dev`") if name in names else ("`dev`", "`counts`")
        raise TrainingError(f"group {name!r} of {where} is not in {missing}: give both")


def _begin(
    counts: PretokenCounts | Callable[[], PretokenCounts],
    title: str,
    settings: WordSettings,
    special_tokens: Sequence[str],
) -> TrainingState:
    """Return a trainer with the words of a group, which ``title`` calls in errors."""
    run = TrainingState(_loaded(counts), settings, special_tokens=special_tokens)
    if run.prune is not None and settings.min_frequency == MAX_FREQUENCY:
        raise TrainingError(f"{title} was pruned: count held-out text without `prune_below`")
    if run.counts["never_split"]:
        raise TrainingError(
            f"{title}: parity does not go with `never_split`: pre-tokens that are never split take "
            "places among merges by their counts, and counts of merges that groups choose are in "
            "no order; count without it"
        )
    if run.word_count == 0:
        pruned = " after pruning" if run.prune is not None else ""
        raise TrainingError(f"{title} has no pre-tokens{pruned}: leave it out, or add text to it")
    return run


def _loaded(counts: PretokenCounts | Callable[[], PretokenCounts]) -> PretokenCounts:
    return counts() if callable(counts) else counts


def _pooled(counts: GroupedCounts, prune_below: int) -> PretokenCounts:
    """Return the counts of all groups, no more than two of which are held at a time."""

    def loaded(name: str) -> PretokenCounts:
        group = _loaded(counts[name])
        return group.pruned(prune_below) if prune_below > 1 else group

    first, *others = counts
    together = loaded(first)
    for name in others:
        names = ["the groups before", repr(name)]
        together = combine([(together, 1), (loaded(name), 1)], names=names)
    return together


def _check_agreement(runs: Mapping[str, TrainingState]) -> None:
    """Refuse groups that were cut differently, or whose counts are in different units."""
    first_title, first = next(iter(runs.items()))
    for title, run in runs.items():
        for what, value in first.counts.items():
            if what in _TOTALS or run.counts[what] == value:
                continue
            raise TrainingError(
                f"groups with different {what} cannot be trained together: {first_title} has "
                f"{value!r}, {title} has {run.counts[what]!r}; count one of them again"
            )
    if sum(run.trainer.initial_tokens for run in runs.values()) > _MOST_SYMBOLS:
        raise TrainingError(
            "the groups have more than 2^62 symbols: divide the counts by a common factor"
        )
