"""``bpe encode``: corpus to Parquet token ids."""

from __future__ import annotations

from typing import Any

import click

from pipelines.cli import options
from pipelines.cli.command import JobCommand
from pipelines.cli.encode_options import encode_options, encode_settings
from pipelines.cli.logs import set_up_logging
from pipelines.cli.report import show_summary


@click.command(
    cls=JobCommand,
    short_help="Turn a corpus into Parquet token ids.",
    example="""
bpe encode --input 'corpus/*.jsonl' --tokenizer model/tokenizer.json --output ids
bpe encode --input corpus --tokenizer model/tokenizer.json --output packed \\
    --append-token '<|endoftext|>' --pack 2048
""",
)
@options.input_options(required=True)
@options.bulk_options()
@click.option(
    "--tokenizer",
    required=True,
    metavar="FILE",
    help="tokenizer.json, as bpe train writes it or Hugging Face's tokenizers.",
)
@encode_options()
@options.output_options()
@options.execution_options()
@options.report_options()
@click.pass_context
def encode(ctx: click.Context, /, **_: Any) -> None:
    """Turn a corpus into Parquet token ids, a row for each document unless asked otherwise.

    Writes DIR/part-00000-of-00042.parquet and so on (columns id, those kept, input_ids,
    num_tokens; with --max-tokens also chunk_index, with --pack documents instead of id and those
    kept), and DIR/manifest.json last: where it stands, the job is complete. Special tokens that
    occur in documents are encoded as plain text. An empty document keeps its row, with an empty
    list.
    """
    inputs, output = options.input_settings(ctx), options.output_settings(ctx)
    encoding, execution = encode_settings(ctx), options.execution(ctx)
    set_up_logging()
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
