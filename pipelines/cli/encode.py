"""``bpe encode``: corpus to Parquet token ids."""

from __future__ import annotations

from typing import Any

import click

from pipelines.cli import options
from pipelines.cli.command import GroupedOption, JobCommand
from pipelines.cli.declared import declared_options, settings_of
from pipelines.cli.loading import loading
from pipelines.cli.logs import set_up_logging
from pipelines.cli.report import show_summary
from pipelines.cli.watch_options import refuse_watching, settle_input, watch_option
from pipelines.settings import EncodeSettings, Execution, InputSettings, OutputSettings
from pipelines.watch.settings import DriftSettings, WatchSettings


@click.command(
    cls=JobCommand,
    short_help="Turn a corpus into Parquet token ids.",
    example="""
bpe encode --input 'corpus/*.jsonl' --tokenizer model/tokenizer.json --output ids
bpe encode --input corpus --tokenizer model/tokenizer.json --output packed \\
    --append-token '<|endoftext|>' --pack 2048
bpe encode --watch 'landing/*.jsonl' --tokenizer model/tokenizer.json --output ids
""",
)
@declared_options(
    *(InputSettings, EncodeSettings, OutputSettings, WatchSettings, DriftSettings, Execution),
    optional=["input"],
)
@watch_option()
@click.option(
    "--tokenizer",
    cls=GroupedOption,
    group="Input",
    required=True,
    metavar="FILE",
    help="tokenizer.json, as bpe train writes it or Hugging Face's tokenizers. Tokens that its "
    "post-processor adds are not added.",
)
@options.config_option()
@options.report_options()
@click.pass_context
def encode(ctx: click.Context, /, **_: Any) -> None:
    """Turn a corpus into Parquet token ids, a row for each document unless asked otherwise.

    Writes DIR/data/train-00000-of-00042.parquet and so on (columns id, those kept, input_ids,
    num_tokens; with --max-tokens also chunk_index, with --pack documents instead of id and those
    kept), and DIR/manifest.json last: where it stands, the job is complete. Special tokens that
    occur in documents are encoded as plain text. An empty document keeps its row, with an empty
    list.

    With --watch in the place of --input, files are encoded as they arrive, each to parts of its
    own, until the job is told to stop; given again, it goes on where it was.
    """
    watching = settle_input(ctx)
    inputs, output = settings_of(ctx, InputSettings), options.output_settings(ctx)
    encoding, execution = settings_of(ctx, EncodeSettings), options.execution(ctx)
    watch = settings_of(ctx, WatchSettings) if watching else None
    drift = settings_of(ctx, DriftSettings) if watching else None
    if not watching:
        refuse_watching(ctx)
    set_up_logging()
    if watch is not None and drift is not None:
        with loading():
            from pipelines.watch.job import watch_encode

        watched = watch_encode(
            inputs=inputs,
            tokenizer=ctx.params["tokenizer"],
            output=output,
            encoding=encoding,
            execution=execution,
            watch=watch,
            drift=drift,
            progress=options.progress(ctx),
        )
        show_summary(ctx, watch=watched)
        return
    with loading():
        from pipelines import jobs

    summary = jobs.encode(
        inputs=inputs,
        tokenizer=ctx.params["tokenizer"],
        output=output,
        encoding=encoding,
        execution=execution,
        progress=options.progress(ctx),
    )
    show_summary(ctx, encode=summary)
