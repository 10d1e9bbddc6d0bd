"""The tokenizer that a training extends: from its file, and what it settles."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from bpe.errors import TokenizerFileError
from bpe.formats import published
from bpe.training_report import Training
from pipelines import storage
from pipelines.errors import ConfigError, InputError
from pipelines.failures import job_errors
from pipelines.output.names import TRAINING
from pipelines.planned import absolute
from pipelines.settings import PretokenSettings
from pipelines.storage import join
from pipelines.tokenizer_files import load_tokenizer

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
    """The tokenizer that a training extends, if any; that of words, where superwords follow.

    Args:
        training: its settings.
        sha256: that it must have, where it was loaded before.

    Raises:
        InputError: it cannot be read, or is another one by now; or the counts of its merges are
            needed, and cannot be read.
    """
    path = training.extend
    if path is None:
        return None
    tokenizer = load_tokenizer(path)
    if sha256 and tokenizer.sha256 != sha256:
        raise InputError(f"{path} was changed while the job ran: start it again")
    if training.is_of_superwords:
        return tokenizer.with_training(_training_of(path, required=training.boundless))
    return tokenizer


def _training_of(path: str, *, required: bool) -> Training | None:
    """Return the training of a tokenizer of words; None if unknown.

    Raises:
        InputError: nothing says it, and it is required.
    """
    is_folder = storage.is_local(path) and Path(path).is_dir()
    training_path = join(path if is_folder else storage.located(path).rpartition("/")[0], TRAINING)
    data = storage.read_if_there(training_path)
    if data is None and not required:
        return None
    if data is None:
        raise InputError(
            f"{training_path} is missing: `boundless` compares superwords with the counts of the "
            "merges of words, which it holds; use `superwords` N, or a tokenizer of bpe train"
        )
    return Training.read(data, where=training_path)


def extended_pretokens(
    pretokens: PretokenSettings, training: TrainSettings, tokenizer: Tokenizer, *, cut_given: bool
) -> PretokenSettings:
    """Return how to cut text: as the extended tokenizer does.

    Args:
        pretokens: as asked for.
        training: its settings.
        tokenizer: that it extends.
        cut_given: whether a pre-tokenizer was asked for; it must be that of the tokenizer.

    Raises:
        JobError: the tokenizer cuts otherwise, or lacks a special token.
    """
    option = "`tokenizer`" if training.is_of_superwords else "`extend`"
    with job_errors():
        own = pretokens_of(tokenizer)
        cut, specials = own.cut, own.special_tokens
        if cut_given and pretokens.cut != cut:
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
    """Return how a tokenizer cuts text; it cuts out special and added tokens."""
    cut = tokenizer.pretokenizer
    return PretokenSettings(
        pretokenizer=cut.name or PretokenSettings().pretokenizer,
        pattern=cut.pattern,
        normalizer=cut.normalizer,
        never_split=cut.never_split,
        special_tokens=tuple(tokenizer.parts.cut_tokens),
    )
