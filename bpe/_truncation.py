"""The smaller tokenizer that a tokenizer holds: as if less had been trained."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from bpe.errors import TokenizerError
from bpe.models import ByteLevel, CharacterLevel, WordPiece

if TYPE_CHECKING:
    from bpe.tokenizer import Tokenizer


def truncated(tokenizer: Tokenizer, vocab_size: int) -> dict[str, Any]:
    """The tokens, merges and training of the first ``vocab_size`` tokens.

    Raises:
        TokenizerError: the size is none, or the order of the ids is not that of the merges.
    """
    if type(vocab_size) is not int or not 1 <= vocab_size <= len(tokenizer):
        raise TokenizerError(
            f"`vocab_size` {vocab_size!r:.60} is not between 1 and {len(tokenizer):,}, the number "
            "of tokens of this tokenizer"
        )
    merges = tokenizer.merges
    training = tokenizer.training
    if training is None:
        kept = _kept_merges(tokenizer, vocab_size)
    else:
        if not isinstance(tokenizer.model, WordPiece) and len(training.merges) != len(merges):
            raise TokenizerError(
                f"the training tells of {len(training.merges):,} merges, the tokenizer has "
                f"{len(merges):,}: it is the training of another one"
            )
        training = training.truncated(vocab_size)
        kept = len(training.merges)
    for content, id_ in (*tokenizer.special_tokens.items(), *tokenizer.added_tokens.items()):
        if id_ >= vocab_size:
            raise TokenizerError(
                f"a vocabulary of {vocab_size:,} tokens does not hold {content!r}, which has the "
                f"id {id_}: only tokenizers whose special tokens come first can be truncated"
            )
    return {
        "tokens": tokenizer.tokens[:vocab_size],
        "merges": merges[:kept],
        "training": training,
    }


def _kept_merges(tokenizer: Tokenizer, vocab_size: int) -> int:
    """How many merges the first tokens need, where only the ids can tell."""
    if isinstance(tokenizer.model, WordPiece):
        raise TokenizerError(
            "a WordPiece vocabulary does not say in which order its tokens were learnt: load "
            "training.json, tokenizer.training = bpe.Training.load(path)"
        )
    if None in tokenizer.tokens:
        raise TokenizerError(f"no token has the id {tokenizer.tokens.index(None)}: ids with gaps")
    if vocab_size == len(tokenizer):
        return len(tokenizer.merges)
    symbols = _symbols(tokenizer)
    for id_ in sorted(symbols):
        if id_ >= vocab_size:
            raise TokenizerError(
                f"a vocabulary of {vocab_size:,} tokens does not hold the symbol "
                f"{tokenizer.token_text(id_)!r}, which has the id {id_}"
            )
    kept, made = 0, set(symbols)
    greatest = -1
    for number, (_, _, result) in enumerate(tokenizer.merges):
        if result in made:
            continue
        if result < greatest:
            raise TokenizerError(
                f"merge {number} makes token {result} after one that made token {greatest}: the "
                "ids do not follow the order of the merges, so no smaller vocabulary is in it"
            )
        made.add(result)
        greatest = result
        if result < vocab_size:
            kept = number + 1
    return kept


def _symbols(tokenizer: Tokenizer) -> set[int]:
    """The ids of what a pre-token consists of before it is merged."""
    model = tokenizer.model
    if isinstance(model, ByteLevel):
        return {id_ for id_, token in enumerate(tokenizer.tokens) if token and len(token) == 1}
    end = model.end_of_word if isinstance(model, CharacterLevel) else ""
    return {
        id_
        for id_, token in enumerate(tokenizer.tokens)
        if token and (len(token.decode()) == 1 or token.decode() == end)
    }
