"""The options that say what to train, of ``bpe train``, ``bpe run`` and ``bpe words``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from pipelines.cli.command import (
    Described,
    Source,
    WholeNumber,
    choose,
    forget,
    source,
    stack,
    use_preset,
)
from pipelines.settings import TrainSettings

if TYPE_CHECKING:
    from collections.abc import Callable

    from bpe import Model

# As bpe.presets.names() and bpe.TIES (tests compare); bpe is not imported for `--help`.
PRESETS = ("byte-level", "interview", "notebook", "word-tutorial", "words")
TIES = ("bytes-min", "bytes-max", "id-min", "huggingface", "first-seen")
MODELS = ("bpe", "wordpiece")
SYMBOLS = ("bytes", "characters")
# Which options go with models of characters alone.
_OF_CHARACTERS = ("end_of_word", "unknown_token", "initial_alphabet")


def preset_option(default: str | None = None) -> Callable[[Any], Any]:
    """Where defaults come from that neither the command line nor a file gives."""
    return click.option(
        "--preset",
        type=click.Choice(PRESETS),
        default=default,
        metavar="NAME",
        is_eager=True,
        expose_value=False,
        callback=use_preset,
        help="Train as a known description does: word-tutorial, notebook, byte-level, words or "
        "interview. --config and other options win.",
    )


def prune_option() -> Callable[[Any], Any]:
    """Which words not to train on."""
    return click.option(
        "--prune-below",
        type=WholeNumber(1),
        default=1,
        metavar="N",
        help="Drop pre-tokens that occur fewer times in the whole corpus; what is lost is written "
        "down.",
    )


def vocabulary_options() -> Callable[[Any], Any]:
    """What to train."""
    return stack(
        click.option(
            "--vocab-size",
            type=WholeNumber(1),
            metavar="N",
            help="Tokens to end up with: special tokens, the 256 bytes (or all characters), and "
            "the merges.",
        ),
        click.option(
            "--max-merges",
            type=WholeNumber(0),
            metavar="N",
            help="Merges to end up with; in place of --vocab-size, or beside it.",
        ),
        click.option(
            "--ties",
            type=click.Choice(TIES),
            default="bytes-min",
            metavar="RULE",
            help="Which of equally frequent pairs to merge first. bytes-min, bytes-max: smallest "
            "or greatest pair of byte strings; id-min: smallest ids; huggingface: as its trainer "
            "does (the same merges if no special token occurs in the corpus); first-seen: first in "
            "the corpus.",
        ),
        click.option(
            "--min-frequency",
            type=WholeNumber(1),
            default=1,
            metavar="N",
            help="Never merge a pair that occurs fewer times.",
        ),
        model_options(),
    )


def model_options() -> Callable[[Any], Any]:
    """What words consist of, before and after merging."""
    return stack(
        click.option(
            "--model",
            type=click.Choice(MODELS),
            default="bpe",
            metavar="NAME",
            help="bpe: merge the most frequent pair; wordpiece: the one of the greatest "
            "count(ab) / (count(a) count(b)), over characters.",
        ),
        click.option(
            "--symbols",
            type=click.Choice(SYMBOLS),
            metavar="KIND",
            cls=Described,
            default_is="bytes; characters for wordpiece",
            help="What words consist of before anything is merged: bytes or characters.",
        ),
        click.option(
            "--end-of-word",
            metavar="TEXT",
            cls=Described,
            default_is="</w>",
            help="Symbol behind the characters of each word; '' for none.",
        ),
        click.option(
            "--unknown-token",
            metavar="TOKEN",
            cls=Described,
            default_is="none; [UNK] for wordpiece",
            help="Special token of characters without one (wordpiece: of whole words); without "
            "it, they are errors.",
        ),
        click.option(
            "--initial-alphabet",
            metavar="CHARACTERS",
            help="Characters that become tokens even where the corpus has none of them.",
        ),
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
    return TrainSettings(
        vocab_size=values["vocab_size"],
        max_merges=values["max_merges"],
        ties=values["ties"],
        min_frequency=values["min_frequency"],
        prune_below=values["prune_below"],
        model=model(ctx),
        initial_alphabet=tuple(values["initial_alphabet"] or ""),
    )


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
