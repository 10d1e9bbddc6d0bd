"""``bpe count``: corpus to counts."""

from __future__ import annotations

from typing import Any

import click

from pipelines.cli import options
from pipelines.cli.command import JobCommand
from pipelines.cli.logs import set_up_logging
from pipelines.cli.report import show_summary
from pipelines.cli.train_options import preset_option, prune_option


@click.command(
    cls=JobCommand,
    short_help="Count the pre-tokens of a corpus.",
    example="bpe count --input 'corpus/*.jsonl.gz' --output counts --pretokenizer cl100k",
)
@options.input_options(required=True)
@options.bulk_options()
@preset_option()
@options.pretoken_options()
@options.counting_options()
@prune_option()
@options.output_options()
@options.execution_options()
@options.report_options()
@click.pass_context
def count(ctx: click.Context, /, **_: Any) -> None:
    """Count the pre-tokens (words, roughly) of a corpus.

    Writes DIR/part-00000-of-00016.parquet and so on (columns pretoken and count), and
    DIR/manifest.json. Tokenizers of any vocabulary size can then be trained without reading the
    corpus again, and the counts of several corpora can be trained on together:
    bpe train --counts DIR --counts OTHER.
    """
    inputs, pretokens = options.input_settings(ctx), options.pretoken_settings(ctx)
    output, execution = options.output_settings(ctx), options.execution(ctx)
    set_up_logging()
    from pipelines import jobs

    summary = jobs.count(
        inputs=inputs,
        pretokens=pretokens,
        output=output,
        execution=execution,
        progress=options.progress(ctx),
        track_order=ctx.params["track_order"],
        prune_below=ctx.params["prune_below"],
        shards=ctx.params["shards"],
    )
    show_summary(ctx, count=summary)
