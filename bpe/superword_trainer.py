"""Training superwords: merges across pre-tokens, learnt from counts of runs of tokens.

SuperBPE (Liu et al. 2025, arXiv 2503.13423) and BoundlessBPE (Schmidt et al. 2025, arXiv
2504.00178), both in the two phases of "Faster Superword Tokenization" (arXiv 2604.05192). The core
gives the result of ``bpe.reference.superwords``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING

from bpe.counts import CutRuns, PretokenCounts
from bpe.counts.pruning import Pruned
from bpe.errors import TokenizerError, TrainingError
from bpe.extension import atomic_tokens, extended, token_alphabet
from bpe.models import ByteLevel
from bpe.parts import Merges
from bpe.symbols import TrainingWords, ids_of_width
from bpe.ties import TIES
from bpe.token_table import TokenTable
from bpe.tokenizer import Tokenizer
from bpe.trainer import (
    MAX_VOCAB,
    Settings,
    check_number,
    forbidden_strings,
    make_trainer,
    most_pruned,
    record,
    totals,
)
from bpe.training_report import SuperwordTraining, Training, TrainingStep
from bpe.truncation import truncated

if TYPE_CHECKING:
    from bpe._native import MergeRow

_MERGES_A_STEP = 256  # between two reports of progress


def train_superwords(
    runs: PretokenCounts | Callable[[], PretokenCounts],
    *,
    tokenizer: Tokenizer,
    superwords: int | None = None,
    boundless: bool = False,
    ties: str = "bytes-min",
    pair_counts: str = "disjoint",
    min_frequency: int = 1,
    prune_below: int = 1,
    progress: Callable[[int, int], object] | None = None,
) -> Tokenizer:
    """Learn superwords: the most frequent pair of adjacent tokens of runs becomes one, repeatedly.

    Give ``superwords`` or ``boundless``:

    - ``superwords=N`` (SuperBPE) keeps all tokens of the tokenizer, and adds N; their ids follow
      the greatest.
    - ``boundless`` (BoundlessBPE) keeps the size of the vocabulary. Merges of words, with the
      counts that they had in training, compete with those of superwords: the superword is merged if
      its pair occurs more often than the next merge of words did. Merges of words that no longer
      fit are dropped, and the ids are made anew: those before the first merge stay, the others
      follow in the order in which they are made. The counts of runs are of the whole tokenizer,
      and a superword waits until its two parts are tokens.

    Two merges that make the same string share a token, that of a word included; if that brings an
    earlier pair back, it is merged again at once, as encoding would do. No merge makes the string
    of a special token.

    Args:
        runs: counts of runs (``bpe.count_runs``) of this tokenizer; or a function that returns
            them, so that they can be freed before the merges, which need as much memory again.
        tokenizer: byte-level, without superwords.
        superwords: how many tokens to add.
        boundless: let superwords compete; needs ``tokenizer.training``.
        ties: as for :func:`bpe.train`; counts of runs have no order for ``first-seen``, and
            ``huggingface`` is not for superwords.
        pair_counts: as for :func:`bpe.train`, whose default differs: SuperBPE counts disjointly.
        min_frequency: rarer pairs become no superwords.
        prune_below: drop rarer runs before training; ``training.superwords.pruned`` says what that
            could have changed.
        progress: called with (merges done, merges at most) at least every 256 merges; if
            ``boundless``, with the tokens.

    Returns:
        The tokenizer with its superwords, and with ``training.superwords``. A tokenizer without a
        record of its training gets one of no merges, which extends it.

    Raises:
        TrainingError: a setting is wrong or does not go with another one, the counts are not of
            runs of this tokenizer, or ``boundless`` lacks the counts of merges.

    Example:
        >>> import bpe
        >>> texts = ["to be or not to be"] * 2
        >>> words = bpe.train(bpe.count_pretokens(texts), max_merges=20)
        >>> runs = bpe.count_runs(texts, tokenizer=words)
        >>> tokenizer = bpe.train_superwords(runs, tokenizer=words, superwords=1)
        >>> [tokenizer.token_bytes(id_) for id_ in tokenizer.encode("to be or to be")]
        [b'to', b' be or', b' to', b' be']
    """
    settings = _Settings(
        superwords=superwords,
        boundless=boundless,
        ties=ties,
        pair_counts=pair_counts,
        min_frequency=min_frequency,
        prune_below=prune_below,
    )
    check_words(tokenizer, boundless=boundless)
    phase = _Phase(runs() if callable(runs) else runs, settings, tokenizer)
    phase.merge(progress)
    return phase.result()


@dataclass(frozen=True, kw_only=True)
class _Settings(Settings):
    """Checked settings of :func:`train_superwords`."""

    superwords: int | None
    boundless: bool

    def __post_init__(self) -> None:
        if type(self.boundless) is not bool:
            raise TrainingError(f"`boundless` {self.boundless!r:.60} is not a bool")
        if self.boundless and self.superwords is not None:
            raise TrainingError(
                f"`boundless` finds the number of superwords itself: leave out `superwords` "
                f"{self.superwords!r:.60}"
            )
        if not self.boundless and self.superwords is None:
            raise TrainingError("superwords have no limit: give `superwords` or `boundless`")
        if self.superwords is not None:
            check_number("superwords", self.superwords, least=0, most=MAX_VOCAB)
        allowed = [rule for rule in TIES if rule not in ("huggingface", "first-seen")]
        if self.ties not in allowed:
            raise TrainingError(
                f"ties {self.ties!r:.60} are not for superwords: use one of {', '.join(allowed)}"
            )
        super().__post_init__()


def check_words(tokenizer: Tokenizer, *, boundless: bool) -> None:
    """Check that superwords can be learnt for a tokenizer.

    Args:
        tokenizer: the tokenizer of words.
        boundless: whether merges of words compete with superwords.

    Raises:
        TrainingError: the tokenizer lacks something, which the message names.
    """
    if not isinstance(tokenizer, Tokenizer):
        raise TrainingError(
            f"`tokenizer` is {type(tokenizer).__name__}, not a tokenizer: load it, "
            "bpe.Tokenizer.load(path)"
        )
    if not isinstance(tokenizer.model, ByteLevel):
        raise TrainingError(
            f"superwords are for byte-level tokenizers, this one is of "
            f"{type(tokenizer.model).__name__}"
        )
    if tokenizer.superwords:
        raise TrainingError(
            "the tokenizer has superwords already: begin with the tokenizer of words that they "
            "were learnt for"
        )
    training = tokenizer.training
    if training is not None and training.first_rank + len(training.merges) != len(tokenizer.merges):
        raise TrainingError(
            f"the training has {training.first_rank + len(training.merges):,} merges, the "
            f"tokenizer {len(tokenizer.merges):,}: it is the training of another tokenizer"
        )
    if boundless and training is not None and training.parity is not None:
        raise TrainingError(
            "`boundless` compares superwords with the counts of the tokenizer's merges, but groups "
            "chose these, not counts: give `superwords`"
        )
    if boundless and training is None:
        raise TrainingError(
            "`boundless` needs the counts of the tokenizer's merges, which its file does not hold: "
            'give it its training, tokenizer.with_training(bpe.Training.load("training.json"))'
        )


def _training(tokenizer: Tokenizer) -> Training:
    """Return the record of its training; of no merges, if there is none."""
    if tokenizer.training is not None:
        return tokenizer.training
    return Training(
        model=tokenizer.model,
        ties="bytes-min",
        vocab_size=None,
        max_merges=0,
        min_frequency=1,
        prune_below=1,
        stopped="merge limit",
        initial_vocab=len(tokenizer),
        initial_words=0,
        initial_bytes=0,
        initial_tokens=0,
        counts={},
        extends=extended(tokenizer),
        pruned=None,
        repeated=(),
        whole_words=(),
        tied=(),
        merges=(),
    )


class _Phase:
    """The second phase of training; the counts are freed, since their memory is needed.

    Args:
        counts: the counts of runs.
        settings: the requested settings.
        tokenizer: the tokenizer of words.

    Attributes:
        trainer: the core's trainer, with runs as words.
        steps: the steps of the training of words that superwords compete with, in order.
        scale: the scales of the counts of runs and of words.
        most: the number of tokens at which training ends.
        tokens: the tokens of the result so far, by id.
        ids: the ids of these tokens.
        replayed: the number of steps of words made so far.
        before: for each superword merge, the number of steps of words before it.
        prune: the rare runs that were dropped.
        cut: what the cuts of long runs may have changed.
        counts: the entry ``counts`` of the report.
    """

    def __init__(self, counts: PretokenCounts, settings: _Settings, tokenizer: Tokenizer) -> None:
        if not isinstance(counts, PretokenCounts) or counts.runs is None:
            what = "pre-tokens" if isinstance(counts, PretokenCounts) else type(counts).__name__
            raise TrainingError(
                f"superwords are learnt from counts of runs, not of {what}: count them first, "
                "bpe.count_runs(texts, tokenizer=tokenizer)"
            )
        origin = counts.runs
        if origin.tokenizer != tokenizer.text_sha256:
            raise TrainingError(
                f"the counts are of {origin}, the tokenizer is {tokenizer.text_sha256[:12]}: "
                "count the runs of this tokenizer"
            )
        if settings.prune_below > 1:
            counts = counts.pruned(settings.prune_below)
        self.tokenizer, self.settings = tokenizer, settings
        self.prune, self.cut = counts.prune, counts.cut
        alphabet = token_alphabet(tokenizer, ids_of_width(origin.id_bytes))
        self.trainer = make_trainer(
            settings,
            alphabet,
            TrainingWords(counts.pretokens, counts.counts, []),
            scale=counts.scale,
            lost=_uncertain(counts.prune, counts.cut),
            forbidden=forbidden_strings(tuple(atomic_tokens(tokenizer)), ByteLevel()),
            max_tokens=MAX_VOCAB,
        )
        training, vocabulary, scale = _training(tokenizer), tokenizer.parts, 1
        self.most = len(tokenizer) + (settings.superwords or 0)
        self.steps: Sequence[TrainingStep] = ()
        if settings.boundless:
            self.steps, scale = list(training.steps()), training.counts.get("scale", 1)
            try:
                vocabulary = truncated(vocabulary, training.initial_vocab)
            except TokenizerError as error:
                problem = "the ids of the tokenizer cannot be made anew"
                raise TrainingError(f"{problem}: {error}") from error
        self.scale = (counts.scale, scale)
        self.tokens, self.ids = [*vocabulary.tokens], dict(vocabulary.ids)
        self.replayed = 0
        self.before: list[int] = []
        self.counts = {**asdict(origin), **totals(counts, "runs")}

    def merge(self, progress: Callable[[int, int], object] | None) -> None:
        """Make tokens until there are enough, or none is left to make."""
        first = len(self.ids)
        made = 0
        while len(self.ids) < self.most:
            chosen = self._superword()
            if chosen is not None:
                self.trainer.step(1)
                self.before.append(self.replayed)
            elif self.replayed < len(self.steps):
                chosen = self.steps[self.replayed].token
                self.replayed += 1
            else:
                break
            if chosen not in self.ids:
                self.ids[chosen] = len(self.tokens)
                self.tokens.append(chosen)
            made += 1
            if progress is not None and made % _MERGES_A_STEP == 0:
                progress(len(self.ids) - first, self.most - first)
        if progress is not None:
            progress(len(self.ids) - first, self.most - first)

    def _superword(self) -> bytes | None:
        """Return the string of the next superword, if it comes before the next step of words."""
        following = self.trainer.peek()
        if following is None:
            return None
        left, right, count = following
        are_tokens = left in self.ids and right in self.ids
        return left + right if are_tokens and self._exceeds(count) else None

    def _exceeds(self, count: int) -> bool:
        """Return whether a pair in runs is more frequent than the next step of words, if any."""
        of_runs, of_words = self.scale
        if self.replayed == len(self.steps):
            return True
        return count * of_words > self.steps[self.replayed].count * of_runs

    def result(self) -> Tokenizer:
        """Return the tokenizer with its report."""
        training, merges = _training(self.tokenizer), self.tokenizer.merges
        if self.settings.boundless:
            last = self.steps[self.replayed - 1] if self.replayed else None
            count = last.merges if last else 0
            if self.replayed < len(self.steps):
                training = training.first(count, last.whole_words if last else 0)
            name = self.tokenizer.token_bytes
            merges = [
                (self.ids[name(left)], self.ids[name(right)], self.ids[name(result)])
                for left, right, result in merges[: training.first_rank + count]
            ]
        learnt, strings = self.trainer.merges(), self.trainer.tokens()
        of = [self.ids.get(string, -1) for string in strings]  # -1: dropped, so in no merge
        superwords = [(of[left], of[right], of[token]) for left, right, token, *_ in learnt]
        return Tokenizer(
            replace(
                self.tokenizer.parts,
                tokens=TokenTable.of(self.tokens),
                merges=Merges.of(merges),
                superwords=Merges.of(superwords),
                training=replace(training, superwords=self._report(learnt, strings)),
            )
        )

    def _report(self, merges: Sequence[MergeRow], strings: Sequence[bytes]) -> SuperwordTraining:
        full = len(self.ids) >= self.most
        affected = self._affected(merges)

        def with_affected(lost: Pruned | CutRuns | None) -> dict[str, int | None] | None:
            return None if lost is None else {**asdict(lost), "first_affected_merge": affected}

        return SuperwordTraining(
            **record(self.trainer, self.settings, strings),
            stopped="vocabulary full" if full else "no pair left",
            steps_before=tuple(self.before) if self.settings.boundless else (),
            pruned=with_affected(self.prune),
            cut=with_affected(self.cut),
            counts=self.counts,
        )

    def _affected(self, merges: Sequence[MergeRow]) -> int | None:
        """Return the number of the first superword that dropped or cut runs could have changed.

        The least of: the first to which another pair is closer than counts are certain; the first
        that might not have been chosen if no run had been cut; the first of which it is not known
        how certain its count is; and, unless all superwords asked for are there, the number after
        the last.
        """
        if not _uncertain(self.prune, self.cut):
            return None
        wrong = 0 if self.cut is None else self.cut.max_pair
        least = self.settings.min_frequency * self.scale[0]
        too_high = (
            number
            for number, (*_, count, _) in enumerate(merges)
            if wrong and (count - wrong < least or not self._exceeds(count - wrong))
        )
        after = len(merges)
        found = (self.trainer.first_affected, next(too_high, None), self._first_unbounded(merges))
        affected = min((number for number in found if number is not None), default=after)
        full = len(self.ids) >= self.most and not self.settings.boundless
        return None if full and affected == after else affected

    def _first_unbounded(self, merges: Sequence[MergeRow]) -> int | None:
        """Return one more than the number of the first merge that begins or ends with two tokens.

        `Pruned.max_pair` and `CutRuns.max_pair` are of pairs of tokens of words. They bound pairs
        of symbols as long as each symbol always begins with the same token and ends with the same
        one: then all occurrences of a pair of symbols are at different occurrences of one pair of
        tokens. Only a merge that makes the string of an older symbol can end this (`a` `bc` after
        `ab` `c`).
        """
        repeated = set(memoryview(self.trainer.repeated()).cast("I"))
        ends: dict[int, tuple[int, int]] = {}  # of merged symbols: their first and last tokens
        for number, (left, right, symbol, *_) in enumerate(merges):
            both = ends.get(left, (left,))[0], ends.get(right, (right,))[-1]
            if number in repeated and both != ends.get(symbol, (symbol, symbol)):
                return number + 1
            ends[symbol] = both
        return None


def _uncertain(prune: Pruned | None, cut: CutRuns | None) -> int:
    """Return how much more frequent a pair can be than another one that its count is below by less.

    What was dropped adds to counts. The cuts of long runs move each of the two counts, up or down.
    For how long this is so: `_Phase._first_unbounded`.
    """
    return most_pruned(prune, ByteLevel()) + (0 if cut is None else 2 * cut.max_pair)
