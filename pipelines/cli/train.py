"""``bpe train``: corpus or counts to a tokenizer."""

from __future__ import annotations

from typing import Any

import click

from pipelines.cli import options
from pipelines.cli.command import GroupedOption, JobCommand, Source, choose, source
from pipelines.cli.declared import declared_options, settings_of
from pipelines.cli.loading import loading
from pipelines.cli.logs import set_up_logging
from pipelines.cli.report import show_summary
from pipelines.cli.train_options import preset_option, train_settings
from pipelines.settings import (
    Execution,
    InputSettings,
    ModelSettings,
    OutputSettings,
    PretokenSettings,
    TrainSettings,
)


@click.command(
    cls=JobCommand,
    short_help="Train a tokenizer on a corpus or on counts.",
    example="""
bpe train --input 'corpus/*.jsonl' --output model --vocab-size 32000
bpe train --counts english --counts german:3 --output model --vocab-size 32000
""",
)
@declared_options(
    *(InputSettings, PretokenSettings, TrainSettings, ModelSettings, OutputSettings, Execution),
    optional=["input"],
)
@click.option(
    "--counts",
    cls=GroupedOption,
    group="Input",
    multiple=True,
    metavar="DIR[:WEIGHT]",
    help="Counts to train on in place of --input, each times its weight: a whole number, a decimal "
    "(0.5) or a fraction (1/3); repeatable. Weights multiply counts and are no shares: the summary "
    "gives the share of each by bytes and by pre-tokens.",
)
@preset_option()
@options.config_option()
@options.report_options()
@click.pass_context
def train(ctx: click.Context, /, **_: Any) -> None:
    """Train a tokenizer on a corpus, or on counts made before.

    Writes DIR/tokenizer.json and DIR/training.json: every merge with its count and the tokens left
    after it. With --input, the counts stay in DIR/counts.

    Hugging Face's tokenizers and transformers open tokenizer.json too, and give the same ids for
    text that spells out no special token. What they cannot express is written so that they refuse
    the file; the summary says why.
    """
    choose(ctx, "input", "counts")
    if not ctx.params["input"] and not ctx.params["counts"]:
        raise click.UsageError(
            "nothing to train on: give --input (a corpus) or --counts (from bpe count)", ctx
        )
    options.refuse_recutting(ctx)
    training, output = train_settings(ctx), options.output_settings(ctx)
    inputs = settings_of(ctx, InputSettings) if ctx.params["input"] else None
    pretokens = options.pretoken_settings(ctx)
    counts = options.counts_inputs(ctx)
    execution = options.execution(ctx)
    set_up_logging()
    with loading():
        from pipelines import jobs

    if counts and source(ctx, "pretokenizer") is Source.PRESET:
        jobs.check_cut(counts=counts, pretokens=pretokens, execution=execution)
    summary = jobs.train(
        inputs=inputs,
        counts=counts,
        pretokens=pretokens,
        training=training,
        output=output,
        execution=execution,
        progress=options.progress(ctx),
    )
    show_summary(ctx, train=summary)
