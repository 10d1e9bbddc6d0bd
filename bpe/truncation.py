"""Smaller vocabularies: the first tokens of a tokenizer, as if no more had been trained."""

from __future__ import annotations

from array import array
from dataclasses import replace

from bpe.errors import TokenizerError
from bpe.models import BYTE_TOKENS, WordPiece
from bpe.parts import Merges, Parts
from bpe.token_table import TokenTable


def truncated(parts: Parts, vocab_size: int) -> Parts:
    """Return the tokenizer of the first ``vocab_size`` tokens; see :meth:`bpe.Tokenizer.truncated`.

    Raises:
        TokenizerError: the size is impossible, or the ids do not follow the order of the merges.
    """
    if type(vocab_size) is not int or not 1 <= vocab_size <= parts.size:
        raise TokenizerError(
            f"`vocab_size` {vocab_size!r:.60} is not between 1 and {parts.size:,}, the number "
            "of tokens of this tokenizer"
        )
    training = parts.training
    learnt = training.superwords if training is not None else None
    if parts.superwords and (
        learnt is None or learnt.boundless or len(learnt.merges) != len(parts.superwords)
    ):
        training = None
    alphabet = 0  # with the last ids; they move up
    if training is None:
        count, across = _merges_needed(parts, vocab_size)
    else:
        trained = training.first_rank + len(training.merges)
        if not isinstance(parts.model, WordPiece) and trained != len(parts.merges):
            raise TokenizerError(
                f"the training has {trained:,} merges, the tokenizer {len(parts.merges):,}: "
                "it is the training of another tokenizer"
            )
        training = training.truncated(vocab_size)
        count = training.first_rank + len(training.merges)
        across = len(training.superwords.merges) if training.superwords is not None else 0
        if parts.model.byte_fallback:
            alphabet = training.initial_vocab - len(parts.special_tokens) - len(BYTE_TOKENS)
    dropped = parts.size - vocab_size
    last = parts.max_id + 1 - alphabet
    # The ids that an extended tokenizer left free come before all that were trained.
    end = last - dropped
    for content, id_ in parts.cut_tokens.items():
        if id_ >= end:
            raise TokenizerError(
                f"a vocabulary of {vocab_size:,} tokens does not hold {content!r}, which has the "
                f"id {id_}: only tokenizers whose special tokens come first can be truncated"
            )
    tokens = [*parts.tokens]
    flat = parts.merges.first(count).flat
    return replace(
        parts,
        tokens=TokenTable.of([*tokens[:end], *tokens[last:]]),
        merges=Merges(array("I", (id_ - dropped if id_ >= last else id_ for id_ in flat))),
        superwords=parts.superwords.first(across),
        training=training,
    )


def _merges_needed(parts: Parts, vocab_size: int) -> tuple[int, int]:
    """Return how many merges, and superwords, the first tokens need, judged by the ids alone."""
    if isinstance(parts.model, WordPiece):
        raise TokenizerError(
            "a WordPiece vocabulary does not say in which order its tokens were learnt: use "
            'tokenizer.with_training(bpe.Training.load("training.json"))'
        )
    for id_, token in enumerate(parts.tokens):
        if token is None:
            raise TokenizerError(f"no token has the id {id_}: ids with gaps")
    if vocab_size == parts.size:
        return len(parts.merges), len(parts.superwords)
    is_symbol = parts.model.is_symbol
    available = {id_ for id_, token in enumerate(parts.tokens) if token and is_symbol(token)}
    for id_ in sorted(available):
        if id_ >= vocab_size:
            raise TokenizerError(
                f"a vocabulary of {vocab_size:,} tokens does not hold the symbol "
                f"{parts.text(id_)!r}, which has the id {id_}"
            )
    count = _first_merges(parts.merges, vocab_size, available)
    return count, _first_merges(parts.superwords, vocab_size, available)


def _first_merges(merges: Merges, vocab_size: int, available: set[int]) -> int:
    """Return how many merges come before the first that makes a token beyond the size.

    Args:
        merges: in order.
        vocab_size: of the tokens that are kept.
        available: tokens that need no merge; those that merges make are added.
    """
    count, greatest = 0, -1
    for number, (_, _, result) in enumerate(merges):
        if result in available:
            continue
        if result < greatest:
            raise TokenizerError(
                f"a merge makes token {result} after one that made token {greatest}: the "
                "ids do not follow the order of the merges, so no smaller vocabulary is in it"
            )
        available.add(result)
        greatest = result
        if result < vocab_size:
            count = number + 1
    return count
