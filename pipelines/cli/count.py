"""``bpe count``: corpus to counts."""

from __future__ import annotations

from typing import Any

import click

from pipelines.cli import options
from pipelines.cli.command import JobCommand
from pipelines.cli.loading import loading
from pipelines.cli.options import declared_options, settings_of
from pipelines.cli.summary import show_summary
from pipelines.settings import (
    CountSettings,
    Execution,
    InputSettings,
    OutputSettings,
    PretokenSettings,
    WatchSettings,
)


@click.command(
    cls=JobCommand,
    short_help="Count the pre-tokens of a corpus.",
    example="""
bpe count --input 'corpus/*.jsonl.gz' --output counts --pretokenizer cl100k
bpe count --watch 'landing/*.jsonl' --output counts
""",
)
@declared_options(
    *(InputSettings, PretokenSettings, CountSettings, OutputSettings, WatchSettings, Execution),
    optional=["input"],
)
@options.watch_option()
@options.preset_option()
@options.config_option()
@options.report_options()
@click.pass_context
def count(ctx: click.Context, /, **_: Any) -> None:
    """Count the pre-tokens (roughly, words) of a corpus.

    Writes DIR/data/part-00000-of-00016.parquet and so on (columns pretoken and count), and
    DIR/manifest.json. From these counts, bpe train makes tokenizers of any vocabulary size without
    reading the corpus again. It can train on the counts of several corpora at once:
    bpe train --counts DIR --counts OTHER.

    With --watch instead of --input, files are counted as they arrive, until you stop the job.
    bpe train --counts DIR can use the counts at any time.
    """
    watching = options.is_watching(ctx)
    inputs, pretokens = settings_of(ctx, InputSettings), options.pretoken_settings(ctx)
    output, execution = options.output_settings(ctx), options.execution(ctx)
    settings = settings_of(ctx, CountSettings)
    if watching:
        watch = settings_of(ctx, WatchSettings)
        with loading():
            from pipelines.watch.job import watch_count

        watched = watch_count(
            inputs=inputs,
            pretokens=pretokens,
            output=output,
            execution=execution,
            settings=settings,
            watch=watch,
            progress=options.progress(ctx),
        )
        show_summary(ctx, watch=watched)
        return
    with loading():
        from pipelines.count import job

    summary = job.count(
        inputs=inputs,
        pretokens=pretokens,
        output=output,
        execution=execution,
        settings=settings,
        progress=options.progress(ctx),
    )
    show_summary(ctx, count=summary)
