"""Training: from pre-token counts to a tokenizer, with the merges of the textbook algorithm.

The core (``bpe/native/train/trainer.h``) gives the result of ``bpe.reference.train``; with the tie
rule ``huggingface``, that of Hugging Face's ``BpeTrainer``.
"""

from __future__ import annotations

import sys
from array import array
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from bpe._native import Trainer
from bpe.byte_alphabet import BYTE_OF_CHAR, from_text
from bpe.counts import PretokenCounts
from bpe.counts.pruning import Pruned
from bpe.errors import TrainingError
from bpe.extension import (
    atomic_tokens,
    check_counts,
    check_extended,
    extended,
    token_alphabet,
)
from bpe.models import BYTE_TOKENS, ByteLevel, CharacterLevel, Model, WordPiece
from bpe.normalizer import MARK
from bpe.pair_counts import check_pair_counts
from bpe.parts import Merges, Parts
from bpe.special_tokens import check_special_tokens
from bpe.symbols import Alphabet, TrainingWords, make_alphabet
from bpe.ties import check_ties
from bpe.token_table import TokenTable
from bpe.tokenizer import Tokenizer
from bpe.training_report import Stopped, TrainedMerge, Training, WholeWord

if TYPE_CHECKING:
    from bpe._native import MergeRow


_MERGES_A_STEP = 256  # at most, between two reports of progress and two chances to interrupt
MAX_VOCAB = 1 << 31
MAX_FREQUENCY = (1 << 63) - 1
_MOST_LOST = 1 << 62  # as good as more: no pair occurs so often


def train(
    counts: PretokenCounts | Callable[[], PretokenCounts],
    *,
    vocab_size: int | None = None,
    max_merges: int | None = None,
    ties: str = "bytes-min",
    pair_counts: str = "overlapping",
    special_tokens: Sequence[str] = (),
    min_frequency: int = 1,
    prune_below: int = 1,
    model: Model = ByteLevel(),  # noqa: B008  # immutable
    initial_alphabet: Iterable[str] = (),
    character_coverage: Fraction | float | str | None = None,
    extend: Tokenizer | None = None,
    progress: Callable[[int, int], object] | None = None,
) -> Tokenizer:
    """Train a tokenizer on counts.

    The most frequent pair of adjacent tokens becomes one token, again and again, until the
    vocabulary is full or no pair is left (Sennrich, Haddow and Birch 2016, section 3.2). Pairs
    are merged from left to right. Two merges that make the same
    string share a token; if that brings an earlier pair back, it is merged again at once, as
    encoding would do. No merge makes the string of a special token.

    ``WordPiece`` merges the pair ab with the greatest count(ab) / (count(a) · count(b)), compared
    exactly (the score of Hugging Face's course, after Schuster and Nakajima 2012).

    Pre-tokens that are never split (``counts.pretokenizer.never_split``) are not trained on. They
    compete with merges for the vocabulary by frequency: one that occurs at least as often as the
    best pair gets its id first, and the rest fill what the merges leave.

    Ids: the special tokens in the order given, the alphabet, then one for each new string. The
    alphabet is the 256 bytes. For models of characters, it is the sorted characters of the words,
    of ``initial_alphabet``, and the end of a word. With byte fallback, the layout is
    SentencePiece's: the unknown token first, the other special tokens, the 256 byte tokens, the new
    strings, the characters (the mark of a space among them, if the counts mark spaces).

    With ``extend``, every token, id and merge of that tokenizer stays: its merges come first, each
    pre-token begins as the tokens that it encodes to, and new tokens get the ids after the
    greatest. So ids of a text change only where a new merge applies.

    Args:
        counts: pre-tokens with their counts; or a function that returns them, so that they can be
            freed before the merges, which need as much memory again. Ties ``first-seen`` needs
            counts that track order.
        vocab_size: tokens in the vocabulary, special tokens and alphabet included. If a model's
            characters do not fit, nothing is merged.
        max_merges: merges at most, those of ``extend`` not counted. At least one of these two
            limits is required.
        ties: which of several equally frequent pairs is merged. ``bytes-min`` (``bytes-max``): the
            smallest (greatest) pair of byte strings. ``gpt2-max``: the greatest pair of strings in
            GPT-2's printable alphabet. ``id-min``: the smallest pair of ids, bytes
            in byte order. ``huggingface``: the same with Hugging Face's ids, and its merges
            (byte-level only). ``first-seen``: the first in the corpus.
        pair_counts: how often a pair of equal symbols occurs in a row of them. ``overlapping``: at
            every position, so that ``aaaa`` holds (a, a) three times. ``disjoint``: as often as a
            merge would join it, two times; not with ties ``huggingface``.
        special_tokens: strings with reserved ids. Those the counts were cut at come first unless
            they are named here; the unknown token of the model comes last.
        min_frequency: rarer pairs, and rarer pre-tokens that are never split, become no tokens.
        prune_below: drop rarer pre-tokens before training; ``tokenizer.training.pruned`` says
            what that could have changed.
        model: what a pre-token consists of.
        initial_alphabet: characters that get tokens even if no word has them (for WordPiece, with
            and without the prefix).
        character_coverage: the share of all characters that get tokens, above 0: the most frequent,
            of equals the smallest. The others become bytes or the unknown token, as in encoding,
            and nothing merges with them. For ``CharacterLevel`` with byte fallback or an unknown
            token. ``0.9995`` and ``"1999/2000"`` mean exactly the same. None: 0.9995 for
            SentencePiece's model, as in its own trainer, and 1 for others.
        extend: a byte-level tokenizer to learn more merges for. Counts must be cut as it cuts text;
            its special tokens are those of the result. Not with ties ``huggingface``.
        progress: called with (merges done, merges at most) at least every 256 merges.

    Returns:
        The tokenizer. If no pair was left before the vocabulary was full, it is smaller than
        asked, and ``tokenizer.training.stopped`` says so.

    Raises:
        TrainingError: a setting is wrong or does not go with another one, the vocabulary is too
            small for bytes and special tokens, a special token is one character or byte long, a
            word is not UTF-8 and the model is of characters, or ties ``first-seen`` gets counts
            without order.
    """
    settings = WordSettings(
        vocab_size=vocab_size,
        max_merges=max_merges,
        ties=ties,
        pair_counts=pair_counts,
        min_frequency=min_frequency,
        prune_below=prune_below,
        character_coverage=_exact_coverage(
            _usual_coverage(model) if character_coverage is None else character_coverage
        ),
        model=model,
    )
    if extend is not None:
        check_extended(extend, vocab_size=vocab_size, ties=ties, model=model)
    run = TrainingState(
        counts() if callable(counts) else counts,
        settings,
        special_tokens=special_tokens,
        initial_alphabet=initial_alphabet,
        extend=extend,
    )
    run.merge(progress)
    return run.tokenizer()


@dataclass(frozen=True, kw_only=True)
class Settings:
    """Checked settings that trainings of words and of superwords share."""

    ties: str
    pair_counts: str = "overlapping"
    min_frequency: int
    prune_below: int

    def __post_init__(self) -> None:
        for name in ("min_frequency", "prune_below"):
            check_number(name, getattr(self, name), least=1, most=MAX_FREQUENCY)
        check_ties(self.ties)
        check_pair_counts(self.pair_counts, ties=self.ties)


@dataclass(frozen=True, kw_only=True)
class WordSettings(Settings):
    """Checked settings of :func:`train`."""

    vocab_size: int | None
    max_merges: int | None
    character_coverage: str = "1"
    model: Model

    def __post_init__(self) -> None:
        if self.vocab_size is None and self.max_merges is None:
            raise TrainingError("training has no limit: give `vocab_size`, `max_merges` or both")
        for name, least in (("vocab_size", 1), ("max_merges", 0)):
            if getattr(self, name) is not None:
                check_number(name, getattr(self, name), least=least, most=MAX_VOCAB)
        super().__post_init__()
        if not isinstance(self.model, (ByteLevel, CharacterLevel, WordPiece)):
            raise TrainingError(
                f"the model is {self.model!r:.60}: give ByteLevel(), CharacterLevel() or "
                "WordPiece()"
            )
        if self.coverage != 1:
            self._check_coverage()
        if self.ties == "huggingface" and not isinstance(self.model, ByteLevel):
            raise TrainingError(
                f"ties 'huggingface' is for byte-level models, not for "
                f"{type(self.model).__name__}: use one of the other rules"
            )

    def _check_coverage(self) -> None:
        if not isinstance(self.model, CharacterLevel):
            raise TrainingError(
                f"`character_coverage` {self.character_coverage} is for models of characters, not "
                f"for {type(self.model).__name__}: leave it out"
            )
        if not self.model.byte_fallback and self.model.unknown is None:
            raise TrainingError(
                f"`character_coverage` {self.character_coverage} leaves characters without a "
                "token, and the model has neither byte_fallback nor an unknown token: give it one"
            )

    @property
    def coverage(self) -> Fraction:
        """Return the share of characters that get tokens."""
        return Fraction(self.character_coverage)

    @property
    def most_tokens(self) -> int:
        """Tokens in the vocabulary at most."""
        return self.vocab_size or MAX_VOCAB


def _usual_coverage(model: Model) -> str:
    is_characters = isinstance(model, CharacterLevel) and not model.end_of_word
    return "1999/2000" if is_characters and model.byte_fallback else "1"


def _exact_coverage(given: Fraction | float | str) -> str:
    """Return a share as a fraction in lowest terms; of a float, the decimals that Python prints.

    Raises:
        TrainingError: it is none above 0 and at most 1.
    """
    try:
        share = Fraction(str(given)) if isinstance(given, float) else Fraction(given)
    except (ValueError, TypeError, ZeroDivisionError, OverflowError):
        share = Fraction(0)
    if not 0 < share <= 1 or isinstance(given, bool):
        raise TrainingError(
            f"`character_coverage` {given!r:.60} is not a share above 0 and at most 1, such as "
            "0.9995"
        )
    return str(share)


@dataclass(frozen=True, kw_only=True)
class _Start:
    """The vocabulary before the first merge.

    Attributes:
        alphabet: the symbols that words consist of.
        ids: the ids of the symbols; None if they come after the ids of new tokens.
        parts: the parts of the tokenizer before training; without the alphabet if it comes last.
        forbidden: the special tokens, whose strings no merge makes.
        known: the merges of a tokenizer that is extended, as triples of symbols.
    """

    alphabet: Alphabet
    ids: Sequence[int] | None
    parts: Parts
    forbidden: Sequence[str]
    known: array[int] | None = None

    @property
    def size(self) -> int:
        """Return the number of tokens."""
        return self.parts.size + (len(self.alphabet.symbols) if self.ids is None else 0)


def _fresh(
    counts: PretokenCounts,
    words: TrainingWords,
    settings: WordSettings,
    *,
    specials: Sequence[str],
    initial_alphabet: Iterable[str],
) -> _Start:
    """Return a vocabulary of special tokens and the alphabet."""
    model = settings.model
    if model.byte_fallback and "mark-spaces" in counts.pretokenizer.normalizer:
        initial_alphabet = (*initial_alphabet, MARK)
    alphabet = make_alphabet(
        words,
        model=model,
        ties=settings.ties,
        initial=initial_alphabet,
        coverage=settings.coverage,
    )
    fixed = [special.encode() for special in specials]
    fixed += BYTE_TOKENS if model.byte_fallback else ()
    _check_alphabet(alphabet, specials, model)
    if not alphabet.symbols and not specials:
        raise TrainingError(
            "nothing to train on: no pre-token is left to split, and there are no special tokens, "
            "so the vocabulary would be empty"
        )
    return _Start(
        alphabet=alphabet,
        ids=None if model.byte_fallback else range(len(fixed), len(fixed) + len(alphabet.symbols)),
        parts=Parts(
            tokens=TokenTable.of(fixed if model.byte_fallback else [*fixed, *alphabet.symbols]),
            merges=Merges(),
            pretokenizer=counts.pretokenizer,
            special_tokens={special: i for i, special in enumerate(specials)},
            model=model,
        ),
        forbidden=specials,
    )


def _extended(tokenizer: Tokenizer, *, initial_alphabet: Iterable[str]) -> _Start:
    """Return the vocabulary of a tokenizer that is extended."""
    if tuple(initial_alphabet):
        raise TrainingError("initial_alphabet cannot be added to: the tokenizer has all 256 bytes")
    alphabet = token_alphabet(tokenizer)
    return _Start(
        alphabet=alphabet,
        ids=[id_ for id_, token in enumerate(tokenizer.tokens) if token is not None],
        parts=tokenizer.parts,
        forbidden=tuple(atomic_tokens(tokenizer)),
        known=array("I", map(alphabet.symbol_of_id.__getitem__, tokenizer.parts.merges.flat)),
    )


def make_trainer(
    settings: Settings,
    alphabet: Alphabet,
    words: TrainingWords,
    *,
    scale: int,
    lost: int,
    **options: Any,
) -> Trainer:
    """Return the core's trainer with its words.

    Args:
        settings: the requested settings.
        alphabet: the symbols that words consist of.
        words: the words to train on.
        scale: the scale of the counts of words.
        lost: how much more frequent a pair may be than its count.
        **options: options of the core's trainer.

    Raises:
        TrainingError: the core cannot hold the words.
    """
    trainer = Trainer(
        alphabet=alphabet.symbols,
        ties=settings.ties,
        pair_counts=settings.pair_counts,
        min_frequency=min(settings.min_frequency * scale, MAX_FREQUENCY),
        pruned=min(lost, _MOST_LOST),
        **options,
    )
    try:
        alphabet.add(trainer, words)
    except (OverflowError, ValueError) as error:
        raise TrainingError(f"cannot train on these counts: {error}") from error
    return trainer


def record(trainer: Trainer, settings: Settings, strings: Sequence[bytes]) -> dict[str, Any]:
    """Return the fields that the reports of words and of superwords share.

    Args:
        trainer: the core's trainer, after the last merge.
        settings: the requested settings.
        strings: the strings of the trainer's symbols.
    """
    return {
        **vars(settings),
        "initial_tokens": trainer.initial_tokens,
        "repeated": tuple(memoryview(trainer.repeated()).cast("I")),
        "tied": tuple(memoryview(trainer.tied()).cast("I")),
        "merges": tuple(
            TrainedMerge(strings[left], strings[right], count, length)
            for left, right, _, count, length in trainer.merges()
        ),
    }


def totals(counts: PretokenCounts, what: str) -> dict[str, int]:
    """Return the fields of the entry ``counts`` of a report that say how much was counted."""
    return {
        "scale": counts.scale,
        "documents": counts.totals.documents,
        "bytes": counts.totals.bytes,
        what: counts.totals.pretokens,
        f"distinct_{what}": len(counts),
    }


class TrainingState:
    """A trainer with the words of counts; the counts are freed, since their memory is needed.

    Args:
        counts: the counts of pre-tokens.
        settings: the requested settings.
        special_tokens: as for :func:`train`.
        initial_alphabet: as for :func:`train`.
        extend: as for :func:`train`.

    Attributes:
        trainer: the core's trainer.
        settings: the requested settings.
        counts: the entry ``counts`` of the report: how the corpus was counted, and totals.
        prune: the rare words that were dropped.
        word_count: the number of occurrences of words.
        word_bytes: the size in bytes of these occurrences.

    Raises:
        TrainingError: as for :func:`train`.
    """

    def __init__(
        self,
        counts: PretokenCounts,
        settings: WordSettings,
        *,
        special_tokens: Sequence[str],
        initial_alphabet: Iterable[str] = (),
        extend: Tokenizer | None = None,
    ) -> None:
        if not isinstance(counts, PretokenCounts):
            raise TrainingError(
                f"training takes pre-token counts, not {type(counts).__name__}: count the texts "
                "first, bpe.train(bpe.count_pretokens(texts), ...)"
            )
        if counts.runs is not None:
            raise TrainingError(
                f"training merges begins with counts of pre-tokens, these are of {counts.runs}: "
                "learn superwords from them, bpe.train_superwords(counts, tokenizer=...)"
            )
        model = settings.model
        specials: tuple[str, ...] = ()
        self.extends = None
        if extend is not None:
            check_counts(extend, counts, check_special_tokens(special_tokens))
            self.extends = extended(extend)
        else:
            specials = _special_tokens(counts, special_tokens, model)
            if isinstance(model, ByteLevel) and settings.most_tokens < len(specials) + 256:
                raise TrainingError(
                    f"`vocab_size` {settings.vocab_size:,} is too small: {len(specials)} special "
                    f"tokens and the 256 bytes need at least {len(specials) + 256:,} (at most "
                    f"{MAX_VOCAB:,})"
                )
        if settings.prune_below > 1:
            counts = counts.pruned(settings.prune_below)
        words = TrainingWords.of(counts, model=model, ties=settings.ties)
        self.start = start = (
            _fresh(counts, words, settings, specials=specials, initial_alphabet=initial_alphabet)
            if extend is None
            else _extended(extend, initial_alphabet=initial_alphabet)
        )
        before = start.size - len(start.alphabet.symbols)
        self.trainer = make_trainer(
            settings,
            start.alphabet,
            words,
            scale=counts.scale,
            lost=most_pruned(counts.prune, model),
            forbidden=forbidden_strings(start.forbidden, model),
            max_tokens=max(settings.most_tokens - before, 0),
            by_score=isinstance(model, WordPiece),
            prefix=model.prefix.encode(),
            whole_words=words.never_split,
            known=start.known,
        )
        self.settings, self.prune = settings, counts.prune
        self.word_count, self.word_bytes = words.occurrences, words.size
        self.counts: Mapping[str, object] = {
            **counts.pretokenizer.settings,
            "special_tokens": list(counts.special_tokens),
            **totals(counts, "pretokens"),
        }

    def merge(
        self,
        progress: Callable[[int, int], object] | None,
        *,
        step: Callable[[int], bool] | None = None,
    ) -> None:
        """Make all merges; ``step`` takes the place of the trainer's."""
        trainer, limit = self.trainer, self.settings.max_merges
        if limit is None:
            limit = sys.maxsize
        most = min(max(self.settings.most_tokens - self.start.size, 0), limit)
        make, more = step or trainer.step, True
        while more and (left := limit - trainer.merge_count):
            # The first merges are the most frequent pairs, and take the longest.
            more = make(min(_MERGES_A_STEP, trainer.merge_count + 1, left))
            if progress is not None:
                progress(trainer.merge_count, max(most, trainer.merge_count))
        trainer.finish()

    def tokenizer(self) -> Tokenizer:
        """Return the tokenizer, with its report."""
        strings, trainer, parts = self.trainer.tokens(), self.trainer, self.start.parts
        symbols = self.start.alphabet.symbols
        learnt = strings[len(symbols) :]
        first = len(parts.tokens)
        last = first + len(learnt)
        alphabet_ids, appended = self.start.ids, []
        if alphabet_ids is None:
            alphabet_ids, appended = range(last, last + len(symbols)), symbols
        ids = [*alphabet_ids, *range(first, last)]
        rows = trainer.merges()
        merges = (
            []
            if isinstance(self.settings.model, WordPiece)
            else [(ids[left], ids[right], ids[token]) for left, right, token, *_ in rows]
        )
        return Tokenizer(
            replace(
                parts,
                tokens=TokenTable.of([*parts.tokens, *learnt, *appended]),
                merges=Merges.of([*parts.merges, *merges]),
                training=self._report(strings, rows),
            )
        )

    def _report(self, strings: Sequence[bytes], merges: Sequence[MergeRow]) -> Training:
        trainer = self.trainer
        stopped: Stopped = "no pair left"
        if trainer.vocabulary_full:
            stopped = "vocabulary full"
        elif trainer.merge_count == self.settings.max_merges:
            stopped = "merge limit"
        fields = record(trainer, self.settings, strings)
        return Training(
            **fields,
            initial_words=self.word_count,
            initial_bytes=self.word_bytes,
            initial_vocab=self.start.size,
            extends=self.extends,
            stopped=stopped,
            whole_words=tuple(
                WholeWord(strings[symbol], count, merges_before)
                for symbol, count, merges_before in trainer.whole_tokens()
            ),
            pruned=self._pruned(stopped, [strings[token] for _, _, token, *_ in merges]),
            counts=self.counts,
        )

    def _pruned(self, stopped: Stopped, made: Sequence[bytes]) -> Mapping[str, int | None] | None:
        if self.prune is None:
            return None
        trainer = self.trainer
        affected = trainer.first_affected
        end = self.settings.model.end_of_word.encode()
        if end in made and most_pruned(self.prune, self.settings.model):
            # Its characters share its token from then on, so `most_pruned` bounds no pair of it.
            bounded = made.index(end) + 1
            if bounded < trainer.merge_count or stopped == "no pair left":
                affected = bounded if affected is None else min(affected, bounded)
        if affected == trainer.merge_count and stopped == "vocabulary full":
            affected = None  # whole words took the room that a missing merge could have had
        depends = isinstance(self.settings.model, WordPiece) or self.settings.coverage != 1
        if depends and self.prune.distinct_pretokens:
            # Any word can change any score (one pair of two rare symbols has the greatest), or
            # which characters are covered.
            affected = 0 if trainer.merge_count or stopped == "no pair left" else None
        return {**asdict(self.prune), "first_affected_merge": affected}


def check_number(name: str, value: object, *, least: int, most: int) -> None:
    """Refuse a setting that is no int from ``least`` to ``most``.

    Raises:
        TrainingError: names the setting and its value.
    """
    if type(value) is not int:
        raise TrainingError(f"`{name}` {value!r:.60} is not an int")
    if not least <= value <= most:
        power = "2^31" if most == MAX_VOCAB else "2^63 - 1"
        raise TrainingError(f"`{name}` {value} is not between {least} and {power}")


def _special_tokens(counts: PretokenCounts, given: Sequence[str], model: Model) -> tuple[str, ...]:
    named = check_special_tokens(given)
    specials = [*(token for token in counts.special_tokens if token not in named), *named]
    if isinstance(model, ByteLevel):
        for token in specials:
            if len(token.encode()) == 1 or token in BYTE_OF_CHAR:
                raise TrainingError(
                    f"the special token {token!r} is a single byte, or the name of one in "
                    "tokenizer.json: use a longer one, such as '<|endoftext|>'"
                )
        return tuple(specials)
    if model.unknown is not None and model.unknown not in specials:
        specials.insert(0 if model.byte_fallback else len(specials), model.unknown)
    for token in specials:
        if len(token) == 1:
            raise TrainingError(
                f"the special token {token!r} is a single character: use a longer one"
            )
    return tuple(specials)


def _check_alphabet(alphabet: Alphabet, specials: Sequence[str], model: Model) -> None:
    symbols = set(alphabet.symbols)
    symbols.update(BYTE_TOKENS if model.byte_fallback else ())
    for token in specials:
        if token.encode() in symbols:
            raise TrainingError(
                f"the special token {token!r} is a symbol that words consist of: use another one"
            )


def forbidden_strings(specials: Sequence[str], model: Model) -> list[bytes]:
    """Strings no merge may make: as text they would be special tokens, or share their name."""
    strings = [token.encode() for token in specials]
    if isinstance(model, ByteLevel):
        named = (token for token in specials if all(char in BYTE_OF_CHAR for char in token))
        strings += [from_text(token) for token in named]
    return [*strings, *(BYTE_TOKENS if model.byte_fallback else ())]


def most_pruned(prune: Pruned | None, model: Model) -> int:
    """Return the greatest count that a pair can have lost to pruning; for runs, a pair of tokens.

    A pair of tokens occurs where the last byte of one is followed by the first byte of the other,
    however the bytes are merged; the end of a word follows the last byte. An end of one character
    shares the symbol of that character, so a pair with it occurs in both ways.
    """
    if prune is None or isinstance(model, WordPiece):
        return 0
    if len(model.end_of_word) == 1:
        return prune.max_pair + prune.max_end
    return max(prune.max_pair, prune.max_end if model.end_of_word else 0)
