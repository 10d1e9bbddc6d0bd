"""``bpe words``: train on a few words, and see everything."""

from __future__ import annotations

import sys
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import click

from pipelines.cli import options
from pipelines.cli.command import Command, GroupedOption, WholeNumber
from pipelines.cli.declared import declared_options
from pipelines.cli.report import show_json, too_small, warning_lines
from pipelines.cli.train_options import (
    model,
    preset_option,
    settle_stop,
)
from pipelines.progress import many
from pipelines.settings import ModelSettings, PretokenSettings, TrainSettings

if TYPE_CHECKING:
    from bpe.presets import WordsTokenizer

MAX_MERGES = 200  # where neither the command line nor a preset says how many


@click.command(
    cls=Command,
    short_help="Train on the words given; print every merge and the splits.",
    example="""
bpe words low lower lowest
bpe words low lower lowest --encode lowly
bpe words --preset notebook 'This is the first document.' 'Is this the first document?'
""",
)
@click.argument("words", metavar="[WORD...]", nargs=-1)
@declared_options(PretokenSettings, TrainSettings, ModelSettings)
@preset_option(default="words")
@click.option(
    "--encode",
    cls=GroupedOption,
    group="Input",
    multiple=True,
    metavar="WORD",
    help="Also split this word, which is not trained on; repeatable.",
)
@click.option(
    "--pairs",
    type=WholeNumber(0),
    default=0,
    metavar="N",
    cls=GroupedOption,
    group="Messages",
    default_is="none",
    help="Also print the N most frequent pairs before the first merge.",
)
@options.config_option()
@options.json_option()
@options.traceback_option()
@click.pass_context
def words(ctx: click.Context, /, words: tuple[str, ...], **_: Any) -> None:
    """Train on the WORDs, or on the lines of standard input; print each merge and the splits.

    Each WORD is a text of its own. They are cut at white space, and merged up to 200 times while a
    pair occurs twice, the pair seen first among equally frequent ones: the preset words. Other
    presets and options say otherwise.
    """
    given = words or tuple(sys.stdin.read().splitlines())
    if not any(given):
        raise click.UsageError("no words: give some as arguments, or on standard input", ctx)
    trained = _train(ctx, given)
    wanted = ctx.params["vocab_size"]
    small = wanted is not None and len(trained) > wanted
    warnings = [too_small(len(trained), wanted)] if small else []
    if ctx.params["json"]:
        show_json({**_facts(trained, ctx.params), "warnings": warnings})
        return
    click.echo("\n\n".join([_report(trained, ctx.params), *warning_lines(warnings)]))


def _train(ctx: click.Context, texts: tuple[str, ...]) -> WordsTokenizer:
    from bpe.presets import Preset, WordsTokenizer

    settle_stop(ctx)
    values, pretokens = ctx.params, options.pretoken_settings(ctx)
    preset = Preset(
        name="words",
        pretokenizer=pretokens.cut,
        model=model(ctx),
        special_tokens=pretokens.special_tokens,
        ties=values["ties"],
        min_frequency=values["min_frequency"],
        prune_below=values["prune_below"],
        initial_alphabet=tuple(values["initial_alphabet"] or ""),
        vocab_size=values["vocab_size"],
        max_merges=values["max_merges"],
    )
    if preset.vocab_size is None and preset.max_merges is None:
        preset = replace(preset, max_merges=MAX_MERGES)
    return WordsTokenizer(preset).train(texts)


def _facts(trained: WordsTokenizer, asked: dict[str, Any]) -> dict[str, Any]:
    """Everything, as JSON values."""
    counts, splits = trained.word_counts, trained.splits
    facts: dict[str, Any] = {
        "merges": [
            {"left": left, "right": right, "count": count} for left, right, count in trained.merges
        ],
        "stopped": trained.training.stopped,
        "vocab_size": len(trained),
        "vocabulary": trained.vocabulary,
        "words": [
            {"word": word, "count": counts[word], "tokens": tokens}
            for word, tokens in splits.items()
        ],
    }
    if asked["pairs"]:
        facts["pairs"] = [
            {"left": left, "right": right, "count": count}
            for (left, right), count in trained.pair_counts().most_common(asked["pairs"])
        ]
    if asked["encode"]:
        facts["encoded"] = [
            {"word": word, "tokens": trained.split(word)} for word in asked["encode"]
        ]
    return facts


def _report(trained: WordsTokenizer, asked: dict[str, Any]) -> str:
    """The same for people."""
    parts = []
    if asked["pairs"]:
        found = trained.pair_counts().most_common(asked["pairs"])
        rows = [(f"{_visible(left)} {_visible(right)}", f"{n:,}") for (left, right), n in found]
        parts.append(_table("pairs", rows))
    merges = [
        (f"{_visible(left)} {_visible(right)}", f"{count:,}")
        for left, right, count in trained.merges
    ]
    parts.append(_table("merges", merges) or "no merges")
    size = f"{many(len(merges), 'merge')}, {many(len(trained), 'token')}"
    parts.append(f"{size} ({trained.training.stopped})")
    splits = trained.splits | {word: trained.split(word) for word in asked["encode"]}
    parts.append(_table("words", [(_visible(word), _joined(splits[word])) for word in splits]))
    return "\n\n".join(filter(None, parts))


def _joined(tokens: list[str]) -> str:
    return " ".join(map(_visible, tokens))


def _visible(text: str) -> str:
    from bpe.visible import visible

    return visible(text.encode())


def _table(title: str, rows: list[tuple[str, str]]) -> str:
    from bpe.visible import columns

    width = max((columns(left) for left, _ in rows), default=0)
    lines = [f"  {left}{' ' * (width - columns(left))}  {right}".rstrip() for left, right in rows]
    return "\n".join([title, *lines]) if rows else ""
