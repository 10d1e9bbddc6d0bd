"""The options that say what to train, of ``bpe train``, ``bpe run`` and ``bpe words``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from pipelines.cli.command import (
    GroupedOption,
    Source,
    choose,
    forget,
    source,
    use_preset,
)
from pipelines.cli.declared import settings_of
from pipelines.settings import TrainSettings

if TYPE_CHECKING:
    from collections.abc import Callable

    from bpe import Model

# As bpe.presets.names() (a test compares); bpe is not imported for `--help`.
PRESETS = ("byte-level", "interview", "notebook", "word-tutorial", "words")
# Which options go with models of characters alone.
_OF_CHARACTERS = ("end_of_word", "unknown_token", "initial_alphabet")


def preset_option(default: str | None = None) -> Callable[[Any], Any]:
    """Where defaults come from that neither the command line nor a file gives."""
    return click.option(
        "--preset",
        cls=GroupedOption,
        group="Vocabulary",
        type=click.Choice(PRESETS),
        default=default,
        metavar="NAME",
        is_eager=True,
        expose_value=False,
        callback=use_preset,
        help="Train as a known description does: word-tutorial, notebook, byte-level, words or "
        "interview. --config and other options win.",
    )


def train_settings(ctx: click.Context) -> TrainSettings:
    """The vocabulary that the options ask for.

    Raises:
        click.UsageError: they do not go together, or do not say when training ends.
    """
    values = ctx.params
    settle_stop(ctx)
    if values["vocab_size"] is None and values["max_merges"] is None:
        raise click.UsageError(
            "nothing says when training ends: give --vocab-size N, or --max-merges N", ctx
        )
    alphabet = tuple(values["initial_alphabet"] or "")
    return settings_of(ctx, TrainSettings, model=model(ctx), initial_alphabet=alphabet)


def settle_stop(ctx: click.Context) -> None:
    """Where one layer says how large to get, the layers below it do not count."""
    if source(ctx, "vocab_size") != source(ctx, "max_merges"):
        choose(ctx, "vocab_size", "max_merges")


def model(ctx: click.Context) -> Model:
    """The model that the options describe; options of a preset that do not go with it are dropped.

    Raises:
        click.UsageError: the options do not go together.
    """
    from bpe.presets import model_of

    values = ctx.params
    wordpiece = values["model"] == "wordpiece"
    _drop_unless(ctx, not (wordpiece and values["symbols"] == "bytes"), "symbols", "--model bpe")
    symbols = values["symbols"] or ("characters" if wordpiece else "bytes")
    for name in _OF_CHARACTERS:
        _drop_unless(ctx, symbols == "characters", name, "--symbols characters")
    _drop_unless(ctx, not wordpiece, "end_of_word", "--model bpe")
    return model_of(
        values["model"],
        symbols=symbols,
        end_of_word=values["end_of_word"],
        unknown_token=values["unknown_token"],
    )


def _drop_unless(ctx: click.Context, fits: bool, name: str, partner: str) -> None:
    if fits or ctx.params[name] is None:
        return
    if source(ctx, name) > Source.PRESET:
        option = f"--{name}".replace("_", "-")
        raise click.UsageError(f"{option} {ctx.params[name]} goes with {partner}", ctx)
    forget(ctx, name)
