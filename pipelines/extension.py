"""Load the tokenizer that a training extends, and derive settings from the tokenizer."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from bpe.errors import TokenizerFileError
from bpe.formats import published
from pipelines.errors import ConfigError, InputError
from pipelines.planned import absolute
from pipelines.settings import PretokenSettings
from pipelines.tokenizer_files import load_tokenizer, read_training, training_file

if TYPE_CHECKING:
    from bpe import Tokenizer
    from pipelines.settings import TrainSettings


def located(training: TrainSettings) -> TrainSettings:
    """Return the settings with an absolute path of the extended tokenizer.

    Raises:
        InputError: the file of a published vocabulary is not on this machine.
    """
    if training.extend is None:
        return training
    known = published.of_name(training.extend)
    try:
        path = training.extend if known is None else str(published.find(known))
    except TokenizerFileError:
        raise InputError(
            f"`extend` {training.extend}: neither the cache of tiktoken nor that of Hugging Face's "
            "hub has the file of this published vocabulary: name the file itself"
        ) from None
    return replace(training, extend=absolute(path))


def load_extended(training: TrainSettings, *, sha256: str = "") -> Tokenizer | None:
    """Load the tokenizer that a training extends; None if the training extends no tokenizer.

    Args:
        training: the settings of the training.
        sha256: the SHA-256 that the tokenizer must have; empty for any.

    Raises:
        InputError: the tokenizer cannot be read, or has changed; or the counts of its merges are
            needed, and cannot be read.
    """
    path = training.extend
    if path is None:
        return None
    tokenizer = load_tokenizer(path)
    if sha256 and tokenizer.sha256 != sha256:
        raise InputError(f"{path} was changed while the job ran: start it again")
    if not training.is_of_superwords:
        return tokenizer
    of_words = read_training(path)
    if of_words is None and training.boundless:
        raise InputError(
            f"{training_file(path)} is missing: `boundless` compares superwords with the counts of "
            "the merges of words, which it holds; use `superwords` N, or a tokenizer of bpe train"
        )
    return tokenizer.with_training(of_words)


def extended_pretokens(
    pretokens: PretokenSettings, training: TrainSettings, tokenizer: Tokenizer
) -> PretokenSettings:
    """Return the pre-token settings of the extended tokenizer, checked against the options.

    Args:
        pretokens: the settings that the options ask for.
        training: the settings of the training.
        tokenizer: the extended tokenizer.

    Raises:
        JobError: the tokenizer cuts otherwise, or lacks a special token.
    """
    option = "`tokenizer`" if training.is_of_superwords else "`extend`"
    own = pretokens_of(tokenizer)
    cut, specials = own.cut, own.special_tokens
    if pretokens.gives_cut and pretokens.cut != cut:
        raise ConfigError(
            f"{option} {training.extend} splits text with {cut}, but the options say "
            f"{pretokens.cut}: leave them out, since its ids hold for its pre-tokenizer only"
        )
    if lacking := [token for token in pretokens.special_tokens if token not in specials]:
        raise ConfigError(
            f"{option} {training.extend} lacks the special token {lacking[0]!r} (it has "
            f"{', '.join(map(repr, specials)) or 'none'}): its special tokens are those of the "
            "result"
        )
    return own


def pretokens_of(tokenizer: Tokenizer) -> PretokenSettings:
    """Return the pre-token settings of a tokenizer, with its special and added tokens."""
    cut = tokenizer.pretokenizer
    return PretokenSettings(
        pretokenizer=cut.name,
        pattern=cut.pattern,
        normalizer=cut.normalizer,
        never_split=cut.never_split,
        special_tokens=tuple(tokenizer.parts.cut_tokens),
    )
