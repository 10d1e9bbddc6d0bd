"""Training: from pre-token counts to a tokenizer, exactly as the textbook says, but fast.

The core (``bpe/native/train/trainer.h``) does what ``bpe.reference.train`` does; for the tie rule
``huggingface``, what ``bpe.reference.huggingface`` does.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from bpe._native import TIES, Trainer
from bpe._trained import TrainedFrom, trained_tokenizer
from bpe._training_words import Alphabet, TrainingWords, make_alphabet
from bpe.counts import PretokenCounts
from bpe.errors import TrainingError
from bpe.formats.byte_alphabet import BYTE_OF_CHAR, from_text
from bpe.models import ByteLevel, CharacterLevel, Model, WordPiece
from bpe.special import check_special_tokens

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from bpe.tokenizer import Tokenizer

_MERGES_A_STEP = 256  # at most, between two reports of progress and two chances to interrupt
_MAX_VOCAB = 1 << 31
_MAX_FREQUENCY = (1 << 63) - 1


def train(
    counts: PretokenCounts | Callable[[], PretokenCounts],
    *,
    vocab_size: int | None = None,
    max_merges: int | None = None,
    ties: str = "bytes-min",
    special_tokens: Sequence[str] = (),
    min_frequency: int = 1,
    prune_below: int = 1,
    model: Model = ByteLevel(),  # noqa: B008  # immutable
    initial_alphabet: Iterable[str] = (),
    progress: Callable[[int, int], object] | None = None,
) -> Tokenizer:
    """Train a tokenizer on counts.

    Again and again the most frequent pair of adjacent tokens becomes one token, until the
    vocabulary is full or no pair is left (Sennrich, Haddow and Birch 2016, section 3.2). Pairs
    are counted at every position and merged from left to right. Two merges that make the same
    string share a token; a merge whose pair comes back by that is applied again at once, as
    encoding would do. No merge makes the string of a special token.

    For ``WordPiece`` the pair ab is merged for which count(ab) / (count(a) · count(b)) is
    greatest, compared exactly (the score of Hugging Face's course on it, after Schuster and
    Nakajima 2012).

    Pre-tokens that are never split (``counts.pretokenizer.never_split``) are not trained on: they
    compete with the merges for the vocabulary, by how often they occur. One that occurs as often
    as a pair, or more often, comes before it; what room the merges leave is theirs.

    Ids: the special tokens in the order given, the alphabet, then one for each new string. The
    alphabet are the 256 bytes; or, for models of characters, the sorted strings of all characters
    of the words, of the end of a word, and of ``initial_alphabet``.

    Args:
        counts: pre-tokens with their counts, or a function that returns them: then they are let
            go of before the merges, which need as much memory again. Ties ``first-seen`` needs
            counts that track order.
        vocab_size: tokens in the vocabulary, special tokens and alphabet included. One that a
            model's characters do not fit in trains no merge.
        max_merges: merges at most. One of these two limits must be given.
        ties: the pair that wins among equally good ones: ``bytes-min`` (``bytes-max``) the
            smallest (greatest) pair of strings, as bytes; ``id-min`` the smallest pair of ids,
            bytes in byte order; ``huggingface`` the same with its ids, and its merges (of bytes
            only); ``first-seen`` the pair that occurs first in the corpus.
        special_tokens: strings with reserved ids; those the counts were cut at come first where
            they are not named here, the unknown token of the model comes last.
        min_frequency: a pair, or a pre-token that is never split, that occurs fewer times does
            not become a token.
        prune_below: pre-tokens that occur fewer times are dropped before;
            ``tokenizer.training.pruned`` says what that could have changed.
        model: what a pre-token consists of.
        initial_alphabet: characters that have tokens even where no word has them (for WordPiece,
            with and without the prefix).
        progress: called with (merges done, merges at most) every few hundred merges.

    Returns:
        The tokenizer. If no pair was left before the vocabulary was full, it is smaller than
        asked, and ``tokenizer.training.stopped`` says so.

    Raises:
        TrainingError: a setting is wrong or does not go with another one, the size does not hold
            the bytes and special tokens, a special token is one character or byte long, a word is
            not UTF-8 though the model is of characters, or the counts do not know the order that
            the rule needs.
    """
    _check(vocab_size, max_merges, ties, min_frequency, prune_below, model)
    begun = _begin(
        counts() if callable(counts) else counts,
        vocab_size=vocab_size,
        ties=ties,
        special_tokens=special_tokens,
        min_frequency=min_frequency,
        prune_below=prune_below,
        model=model,
        initial_alphabet=initial_alphabet,
    )
    room = (vocab_size or _MAX_VOCAB) - len(begun.specials) - len(begun.alphabet.symbols)
    at_most = max(room if max_merges is None else min(room, max_merges), 0)
    _run(begun.trainer, max_merges, at_most, progress)
    return trained_tokenizer(
        begun.trainer,
        begun.source,
        specials=begun.specials,
        alphabet=begun.alphabet,
        ties=ties,
        vocab_size=vocab_size,
        max_merges=max_merges,
        min_frequency=min_frequency,
        prune_below=prune_below,
        model=model,
    )


@dataclass(frozen=True)
class _Begun:
    """A trainer that has its words. The counts are not held: it needs their memory for itself."""

    trainer: Trainer
    specials: tuple[str, ...]
    alphabet: Alphabet
    source: TrainedFrom


def _begin(
    counts: PretokenCounts,
    *,
    vocab_size: int | None,
    ties: str,
    special_tokens: Sequence[str],
    min_frequency: int,
    prune_below: int,
    model: Model,
    initial_alphabet: Iterable[str],
) -> _Begun:
    _check_counts(counts)
    specials = _special_tokens(counts, special_tokens, model)
    if isinstance(model, ByteLevel) and vocab_size is not None:
        _check_size(vocab_size, specials)
    if prune_below > 1:
        counts = counts.pruned(prune_below)
    words = TrainingWords.of(counts, model=model, ties=ties)
    alphabet = make_alphabet(words, model=model, ties=ties, initial=initial_alphabet)
    _check_alphabet(alphabet, specials)
    if not alphabet.symbols and not specials:
        raise TrainingError(
            "there is nothing to train on: no pre-token is left to split, and there are no special "
            "tokens, so the vocabulary would be empty"
        )
    trainer = Trainer(
        alphabet=alphabet.symbols,
        ties=ties,
        by_score=isinstance(model, WordPiece),
        prefix=model.prefix.encode() if isinstance(model, WordPiece) else b"",
        max_tokens=max((vocab_size or _MAX_VOCAB) - len(specials), 0),
        min_frequency=min(min_frequency * counts.scale, _MAX_FREQUENCY),
        forbidden=_forbidden(specials, model),
        whole_words=words.whole,
        pruned=_most_pruned(counts, model),
    )
    if len(words.pretokens):
        try:
            alphabet.add(trainer, words)
        except (OverflowError, ValueError) as error:
            raise TrainingError(f"these counts cannot be trained on: {error}") from error
    return _Begun(trainer, specials, alphabet, TrainedFrom.of(counts, words))


def _check_counts(counts: PretokenCounts) -> None:
    if not isinstance(counts, PretokenCounts):
        raise TrainingError(
            f"training takes pre-token counts, not {type(counts).__name__}: count the texts first, "
            "bpe.train(bpe.count_pretokens(texts), ...)"
        )


def _check(
    vocab_size: int | None,
    max_merges: int | None,
    ties: str,
    min_frequency: int,
    prune_below: int,
    model: Model,
) -> None:
    if vocab_size is None and max_merges is None:
        raise TrainingError("training has no limit: give `vocab_size`, `max_merges` or both")
    for name, value, least, most in (
        ("vocab_size", vocab_size, 1, _MAX_VOCAB),
        ("max_merges", max_merges, 0, _MAX_VOCAB),
        ("min_frequency", min_frequency, 1, _MAX_FREQUENCY),
        ("prune_below", prune_below, 1, _MAX_FREQUENCY),
    ):
        if value is None and name in ("vocab_size", "max_merges"):
            continue
        if type(value) is not int:
            raise TrainingError(f"`{name}` {value!r:.60} is not an int")
        if not least <= value <= most:
            power = "2^31" if most == _MAX_VOCAB else "2^63 - 1"
            raise TrainingError(f"`{name}` {value} is not between {least} and {power}")
    if ties not in TIES:
        raise TrainingError(f"unknown tie rule {ties!r}: use one of {', '.join(TIES)}")
    if not isinstance(model, (ByteLevel, CharacterLevel, WordPiece)):
        raise TrainingError(
            f"the model is {model!r:.60}: give ByteLevel(), CharacterLevel() or WordPiece()"
        )
    if ties == "huggingface" and not isinstance(model, ByteLevel):
        raise TrainingError(
            f"ties 'huggingface' are for byte-level models, not for {type(model).__name__}: "
            "use one of the other rules"
        )


def _check_size(vocab_size: int, specials: Sequence[str]) -> None:
    least = len(specials) + 256
    if vocab_size < least:
        raise TrainingError(
            f"`vocab_size` {vocab_size:,} cannot be trained: it holds {len(specials)} special "
            f"tokens and the 256 bytes, so it is at least {least:,} (and at most {_MAX_VOCAB:,})"
        )


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
        specials.append(model.unknown)
    for token in specials:
        if len(token) == 1:
            raise TrainingError(
                f"the special token {token!r} is a single character: use a longer one"
            )
    return tuple(specials)


def _check_alphabet(alphabet: Alphabet, specials: Sequence[str]) -> None:
    symbols = set(alphabet.symbols)
    for token in specials:
        if token.encode() in symbols:
            raise TrainingError(
                f"the special token {token!r} is a symbol that words consist of: use another one"
            )


def _forbidden(specials: Sequence[str], model: Model) -> list[bytes]:
    """Strings no merge may make: as text they would be special tokens, or share their name."""
    strings = [token.encode() for token in specials]
    if isinstance(model, ByteLevel):
        named = (token for token in specials if all(char in BYTE_OF_CHAR for char in token))
        strings += [from_text(token) for token in named]
    return strings


def _most_pruned(counts: PretokenCounts, model: Model) -> int:
    """What the words that were dropped can have added to the count of any pair.

    A pair of tokens occurs where the last byte of one is followed by the first byte of the other,
    however the bytes are merged; the end of a word follows the last byte.
    """
    if counts.prune is None or isinstance(model, WordPiece):
        return 0
    if isinstance(model, CharacterLevel) and model.end_of_word:
        return max(counts.prune.max_pair, counts.prune.max_end)
    return counts.prune.max_pair


def _run(
    trainer: Trainer,
    max_merges: int | None,
    at_most: int,
    progress: Callable[[int, int], object] | None,
) -> None:
    more = True
    while more and trainer.merge_count != max_merges:
        # The first merges are the most frequent pairs, and take the longest.
        step = min(_MERGES_A_STEP, trainer.merge_count + 1)
        if max_merges is not None:
            step = min(step, max_merges - trainer.merge_count)
        more = trainer.step(step)
        if progress is not None:
            progress(trainer.merge_count, max(at_most, trainer.merge_count))
    trainer.finish()
