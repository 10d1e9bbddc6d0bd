"""The tokenizer that a training extends: from its file, and what it settles."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from bpe.errors import TokenizerFileError
from bpe.extension import cut_tokens
from bpe.formats import published
from pipelines.encode.tokenizer_files import load_tokenizer
from pipelines.errors import ConfigError, InputError
from pipelines.failures import job_errors
from pipelines.planned import absolute
from pipelines.settings import PretokenSettings

if TYPE_CHECKING:
    from bpe import Tokenizer
    from pipelines.settings import TrainSettings


def located(training: TrainSettings) -> TrainSettings:
    """The same settings, for a process in any working directory.

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
    """The tokenizer that a training extends, if any.

    Args:
        training: its settings.
        sha256: that it must have, where it was loaded before.

    Raises:
        InputError: it cannot be read, or is another one by now.
    """
    if training.extend is None:
        return None
    tokenizer = load_tokenizer(training.extend)
    if sha256 and tokenizer.sha256 != sha256:
        raise InputError(f"{training.extend} was changed while the job ran: start it again")
    return tokenizer


def extended_pretokens(
    pretokens: PretokenSettings, training: TrainSettings, tokenizer: Tokenizer, *, cut_given: bool
) -> PretokenSettings:
    """How text is cut: as the tokenizer cuts it that the training extends.

    Args:
        pretokens: as asked for.
        training: its settings.
        tokenizer: that it extends.
        cut_given: whether a pre-tokenizer was asked for; it must be that of the tokenizer.

    Raises:
        JobError: the tokenizer cuts otherwise, or lacks a special token.
    """
    with job_errors():
        cut, specials = tokenizer.pretokenizer, cut_tokens(tokenizer)
        if cut_given and pretokens.cut != cut:
            raise ConfigError(
                f"`extend` {training.extend} splits text with {cut}, but the options say "
                f"{pretokens.cut}: leave them out, since its ids hold for its pre-tokenizer only"
            )
        if lacking := [token for token in pretokens.special_tokens if token not in specials]:
            raise ConfigError(
                f"`extend` {training.extend} lacks the special token {lacking[0]!r} (it has "
                f"{', '.join(map(repr, specials)) or 'none'}): its special tokens are those of the "
                "result"
            )
        return PretokenSettings(
            pretokenizer=cut.name or pretokens.pretokenizer,
            pattern=cut.pattern,
            normalizer=cut.normalizer,
            never_split=cut.never_split,
            special_tokens=specials,
        )
