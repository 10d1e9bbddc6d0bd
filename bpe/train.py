"""Training: from pre-token counts to a tokenizer, exactly as the textbook says, but fast.

The core (``bpe/native/trainer.h``) does what ``bpe.reference.train`` does; for the tie rule
``huggingface``, what ``bpe.reference.huggingface`` does.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, get_args

import pyarrow as pa
import pyarrow.compute as pc

from bpe._native import Trainer
from bpe.errors import TrainingError
from bpe.formats.byte_alphabet import BYTE_OF_CHAR, HUGGINGFACE_ORDER, from_text
from bpe.special import check_special_tokens
from bpe.tokenizer import Tokenizer
from bpe.training import TrainedMerge, Training

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from bpe.counts import PretokenCounts

Ties = Literal["bytes-min", "bytes-max", "id-min", "huggingface", "first-seen"]
TIES: tuple[str, ...] = get_args(Ties)
"""The rules that choose among equally frequent pairs."""

_MERGES_A_STEP = 256  # at most, between two reports of progress and two chances to interrupt
_MAX_VOCAB = 1 << 31
_MAX_FREQUENCY = (1 << 63) - 1


def train(
    counts: PretokenCounts,
    *,
    vocab_size: int,
    ties: str = "bytes-min",
    special_tokens: Sequence[str] = (),
    min_frequency: int = 1,
    progress: Callable[[int, int], object] | None = None,
) -> Tokenizer:
    """Train a byte-level tokenizer on counts.

    Again and again the most frequent pair of adjacent tokens becomes one token, until the
    vocabulary is full or no pair is left (Sennrich, Haddow and Birch 2016, section 3.2). Pairs
    are counted at every position and merged from left to right. Two merges that make the same
    string share a token; a merge whose pair comes back by that is applied again at once, as
    encoding would do. No merge makes the string of a special token.

    Ids: the special tokens in the order given, the 256 bytes, then one for each new string.

    Args:
        counts: pre-tokens with their counts; ties ``first-seen`` needs counts that track order.
        vocab_size: tokens in the vocabulary, special tokens and bytes included.
        ties: the pair that wins among equally frequent ones: ``bytes-min`` (``bytes-max``) the
            smallest (greatest) pair of byte strings; ``id-min`` the smallest pair of ids, bytes
            in byte order; ``huggingface`` the same with its ids, and its merges; ``first-seen``
            the pair that occurs first in the corpus.
        special_tokens: strings with reserved ids; those the counts were cut at come first where
            they are not named here.
        min_frequency: a pair that occurs fewer times is never merged.
        progress: called with (merges done, merges at most) every few hundred merges.

    Returns:
        The tokenizer. If no pair was left before the vocabulary was full, it is smaller than
        asked, and ``tokenizer.training.stopped`` says so.

    Raises:
        TrainingError: the size does not hold the bytes and special tokens, a special token is
            one byte long, an unknown rule, or counts without the order that the rule needs.
    """
    specials = _special_tokens(counts, special_tokens)
    fixed = len(specials) + 256
    for name, value in (("vocab_size", vocab_size), ("min_frequency", min_frequency)):
        if type(value) is not int:
            raise TrainingError(f"{name} {value!r} is not an int")
    if not fixed <= vocab_size <= _MAX_VOCAB:
        raise TrainingError(
            f"vocab_size {vocab_size:,} cannot be trained: it holds {len(specials)} special tokens "
            f"and the 256 bytes, so it is at least {fixed:,} (and at most {_MAX_VOCAB:,})"
        )
    if ties not in TIES:
        raise TrainingError(f"unknown tie rule {ties!r}: use one of {', '.join(TIES)}")
    if not 1 <= min_frequency <= _MAX_FREQUENCY:
        raise TrainingError(f"min_frequency {min_frequency} is not between 1 and 2^63 - 1")
    byte_order = list(HUGGINGFACE_ORDER if ties == "huggingface" else range(256))
    trainer = Trainer(
        alphabet=[bytes([byte]) for byte in byte_order],
        ties=ties,
        max_tokens=vocab_size - len(specials),
        min_frequency=min_frequency,
        forbidden=_forbidden(specials),
    )
    symbol_of_byte = bytes(sorted(range(256), key=byte_order.__getitem__))
    _add_words(trainer, counts, ties, symbol_of_byte)
    more = True
    while more:
        # The first merges are the most frequent pairs, and take the longest.
        more = trainer.step(min(_MERGES_A_STEP, trainer.merge_count + 1))
        if progress is not None:
            progress(trainer.merge_count, vocab_size - fixed)
    return _tokenizer(trainer, counts, specials, vocab_size, ties, min_frequency)


def _special_tokens(counts: PretokenCounts, given: Sequence[str]) -> tuple[str, ...]:
    named = check_special_tokens(given)
    specials = (*(token for token in counts.special_tokens if token not in named), *named)
    for token in specials:
        if len(token.encode()) == 1 or token in BYTE_OF_CHAR:
            raise TrainingError(
                f"the special token {token!r} is a single byte, or the name of one in "
                "tokenizer.json: use a longer one, such as '<|endoftext|>'"
            )
    return specials


def _forbidden(specials: Sequence[str]) -> list[bytes]:
    """Strings no merge may make: as text they would be special tokens, or share their name."""
    named = (token for token in specials if all(char in BYTE_OF_CHAR for char in token))
    return [*(token.encode() for token in specials), *(from_text(token) for token in named)]


def _add_words(trainer: Trainer, counts: PretokenCounts, ties: str, symbols: bytes) -> None:
    words, numbers = counts.pretokens, counts.counts
    if ties == "first-seen":
        if counts.first_documents is None:
            raise TrainingError(
                "ties 'first-seen' needs counts that know where each pre-token occurred first: "
                "count with track_order=True (bpe count --track-order)"
            )
        order = pc.sort_indices(
            pa.table([counts.first_documents, counts.first_positions], ["document", "position"]),
            sort_keys=[("document", "ascending"), ("position", "ascending")],
        )
        words, numbers = words.take(order), numbers.take(order)
    _, offsets, data = words.buffers()
    first, last = words.offset, words.offset + len(words)
    if len(words) == 0:
        return
    try:
        trainer.add_words(
            data=data if data is not None else b"",
            offsets=memoryview(offsets)[first * 8 : (last + 1) * 8],
            counts=memoryview(numbers.buffers()[1])[numbers.offset * 8 :][: len(words) * 8],
            symbol_of_byte=symbols,
        )
    except (OverflowError, ValueError) as error:
        raise TrainingError(f"these counts cannot be trained on: {error}") from error


def _tokenizer(
    trainer: Trainer,
    counts: PretokenCounts,
    specials: tuple[str, ...],
    vocab_size: int,
    ties: str,
    min_frequency: int,
) -> Tokenizer:
    strings = trainer.tokens()
    first_id = len(specials)
    # Hugging Face's trainer can merge a pair twice; the later rank is the one that it keeps.
    ranked: dict[tuple[int, int], tuple[int, int, int]] = {}
    for left, right, token, count, tokens_left in zip(
        *(memoryview(ids).cast("I") for ids in (trainer.left(), trainer.right(), trainer.token())),
        memoryview(trainer.count()).cast("q"),
        memoryview(trainer.tokens_left()).cast("q"),
        strict=True,
    ):
        ranked.pop((left, right), None)
        ranked[left, right] = (token, count, tokens_left)
    training = Training(
        merges=tuple(
            TrainedMerge(strings[left], strings[right], count, tokens_left)
            for (left, right), (_, count, tokens_left) in ranked.items()
        ),
        initial_tokens=trainer.initial_tokens,
        ties=ties,
        vocab_size=vocab_size,
        min_frequency=min_frequency,
        stopped="vocabulary full" if trainer.vocabulary_full else "no pair left",
        counts={
            "pretokenizer": counts.pretokenizer.name,
            "pattern": counts.pretokenizer.pattern,
            "special_tokens": list(counts.special_tokens),
            "documents": counts.totals.documents,
            "bytes": counts.totals.bytes,
            "pretokens": counts.totals.pretokens,
            "distinct_pretokens": len(counts),
        },
    )
    return Tokenizer(
        tokens=[*(token.encode() for token in specials), *strings],
        merges=[
            (first_id + left, first_id + right, first_id + token)
            for (left, right), (token, _, _) in ranked.items()
        ],
        special_tokens={token: i for i, token in enumerate(specials)},
        pretokenizer=counts.pretokenizer,
        training=training,
    )
