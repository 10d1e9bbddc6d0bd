"""``bpe run``: count, train and encode as a file says."""

from __future__ import annotations

from typing import Any

import click

from pipelines.cli import options
from pipelines.cli.command import JobCommand, use_job
from pipelines.cli.declared import declared_options, settings_of
from pipelines.cli.loading import loading
from pipelines.cli.logs import set_up_logging
from pipelines.cli.report import show_summary
from pipelines.cli.train_options import preset_option, train_settings
from pipelines.settings import (
    CountSettings,
    EncodeSettings,
    Execution,
    InputSettings,
    ModelSettings,
    OutputSettings,
    PretokenSettings,
    TrainSettings,
)


@click.command(
    cls=JobCommand,
    short_help="Count, train and encode as a YAML file says.",
    example="""
bpe run configs/demo.yaml
bpe run configs/demo.yaml --output elsewhere --vocab-size 4096
bpe run configs/demo.yaml --resume
bpe run configs/demo.yaml --config configs/runners/prism.yaml
""",
)
@click.argument("job", metavar="CONFIG.yaml", is_eager=True, expose_value=False, callback=use_job)
@declared_options(
    *(InputSettings, PretokenSettings, CountSettings, TrainSettings, ModelSettings),
    *(EncodeSettings, OutputSettings, Execution),
)
@preset_option()
@options.config_option()
@options.report_options()
@click.pass_context
def run(ctx: click.Context, /, **_: Any) -> None:
    """Count a corpus, train a tokenizer on it and encode it, as CONFIG.yaml says.

    The file gives values for the options below by name, such as vocab_size: 32000; an option on
    the command line wins over it. Writes DIR/counts, DIR/tokenizer.json, DIR/training.json and
    DIR/encoded.
    """
    inputs, pretokens = settings_of(ctx, InputSettings), options.pretoken_settings(ctx)
    training, encoding = train_settings(ctx), settings_of(ctx, EncodeSettings)
    execution = options.execution(ctx)
    output = options.output_settings(ctx)
    counts_output = options.output_settings(ctx, "counts")
    encoded_output = options.output_settings(ctx, "encoded")
    progress = options.progress(ctx)
    set_up_logging()
    with loading():
        from pipelines import jobs

    jobs.check_run(
        inputs=inputs,
        pretokens=pretokens,
        training=training,
        output=output,
        encoding=encoding,
        execution=execution,
    )
    counted = jobs.count(
        inputs=inputs,
        pretokens=pretokens,
        output=counts_output,
        settings=jobs.CountSettings(
            track_order=ctx.params["track_order"] or training.ties == "first-seen",
            prune_below=training.prune_below,
            shards=ctx.params["shards"],
        ),
        execution=execution,
        progress=progress,
    )
    trained = jobs.train(
        inputs=None,
        counts=(jobs.CountsInput(directory=counts_output.directory),),
        pretokens=pretokens,
        training=training,
        output=output,
        execution=execution,
        progress=progress,
        then="encoded",
    )
    encoded = jobs.encode(
        inputs=inputs,
        tokenizer=options.join(output.directory, "tokenizer.json"),
        output=encoded_output,
        encoding=encoding,
        execution=execution,
        progress=progress,
    )
    show_summary(ctx, count=counted, train=trained, encode=encoded)
