"""Training that begins with a tokenizer, and keeps its ids and merges."""

from __future__ import annotations

from array import array
from collections.abc import Mapping, Sequence

from bpe.core_encoder import WordEncoder, word_encoder
from bpe.counts import PretokenCounts
from bpe.errors import TrainingError
from bpe.models import ByteLevel, Model
from bpe.special_tokens import found_in_normalized
from bpe.symbols import NO_SYMBOL, Alphabet
from bpe.tokenizer import Tokenizer
from bpe.training_report import Extended


def extended(tokenizer: Tokenizer) -> Extended:
    """Return a tokenizer to extend, as the report names it."""
    return Extended(tokenizer.sha256, len(tokenizer), len(tokenizer.merges))


def check_extended(
    tokenizer: Tokenizer,
    *,
    vocab_size: int | None = None,
    ties: str = "bytes-min",
    model: Model = ByteLevel(),  # noqa: B008  # immutable
) -> None:
    """Check that a tokenizer can be extended exactly, with these settings.

    Args:
        tokenizer: the tokenizer to extend.
        vocab_size: the size of the result, or None.
        ties: the tie rule.
        model: the requested model.

    Raises:
        TrainingError: the message names both sides.
    """
    if not isinstance(tokenizer, Tokenizer):
        raise TrainingError(
            f"`extend` is {type(tokenizer).__name__}, not a tokenizer: load it, "
            "bpe.Tokenizer.load(path)"
        )
    for what, kind in (
        ("the tokenizer to extend", tokenizer.model),
        ("the model asked for", model),
    ):
        if not isinstance(kind, ByteLevel):
            raise TrainingError(
                f"only byte-level BPE can be extended: WordPiece does not record its merges, and "
                f"new characters would need ids before the merges; {what} is {type(kind).__name__}"
            )
    if tokenizer.superwords:
        raise TrainingError(
            "a tokenizer with superwords cannot be extended: they come after all merges of words: "
            "extend the tokenizer that they were learnt from, and learn them again"
        )
    normalized = found_in_normalized(tokenizer.token_flags, tokenizer.pretokenizer.normalizer)
    for content, flags in tokenizer.token_flags.items():
        if flags.change_matches or content in normalized:
            raise TrainingError(
                f"the tokenizer to extend finds {content!r} in normalized text, or with lstrip, "
                "rstrip or single_word: counts are cut at the token alone, before they are "
                "normalized, so they cannot be of the same pre-tokens"
            )
    if ties == "huggingface":
        raise TrainingError(
            "ties 'huggingface' cannot extend a tokenizer: it compares the ids of Hugging Face's "
            "trainer, which cannot begin with one: use one of the other rules"
        )
    if vocab_size is not None and vocab_size < len(tokenizer):
        raise TrainingError(
            f"`vocab_size` {vocab_size:,} is smaller than the tokenizer to extend, which has "
            f"{len(tokenizer):,} tokens: it is the size of the result"
        )


def check_counts(
    tokenizer: Tokenizer, counts: PretokenCounts, special_tokens: Sequence[str]
) -> None:
    """Check that counts were cut as the tokenizer cuts text, and that it has the special tokens.

    Args:
        tokenizer: the tokenizer to extend.
        counts: the counts to train on.
        special_tokens: the requested special tokens.

    Raises:
        TrainingError: the message names both sides.
    """
    if counts.pretokenizer != tokenizer.pretokenizer:
        raise TrainingError(
            f"the counts were split with {counts.pretokenizer}, but the tokenizer to extend "
            f"splits with {tokenizer.pretokenizer}: count again as it does"
        )
    for named, where in (
        (special_tokens, "`special_tokens` has"),
        (counts.special_tokens, "the counts were split at the special token"),
    ):
        if missing := [token for token in named if token not in tokenizer.parts.cut_tokens]:
            known = ", ".join(map(repr, tokenizer.parts.cut_tokens)) or "none"
            raise TrainingError(
                f"{where} {missing[0]!r}, which the tokenizer to extend lacks (it has {known}): "
                "its special tokens are those of the result"
            )


def atomic_tokens(tokenizer: Tokenizer) -> Mapping[str, int]:
    """Return the special and added tokens that ordinary text never encodes to, with their ids."""
    atomic = tokenizer.parts.atomic_ids
    return {content: id_ for content, id_ in tokenizer.parts.cut_tokens.items() if id_ in atomic}


def token_alphabet(tokenizer: Tokenizer, ids_of: WordEncoder | None = None) -> Alphabet:
    """Return the tokens of a tokenizer, by id, as symbols of words.

    Args:
        tokenizer: the tokenizer.
        ids_of: gives the ids of words; None if the tokenizer encodes them. With ``ignore_merges``,
            it looks words up in its vocabulary, but not among new tokens. It need not: if new
            merges make a string inside a word, they also make it of the word that is this string.
    """
    symbols: list[bytes] = []
    symbol_of_id = array("I", [NO_SYMBOL] * len(tokenizer.tokens))
    for id_, token in enumerate(tokenizer.tokens):
        if token is not None:
            symbol_of_id[id_] = len(symbols)
            symbols.append(token)
    return Alphabet(symbols, ids_of or word_encoder(tokenizer.parts), symbol_of_id)
