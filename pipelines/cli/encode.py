"""``bpe encode``: corpus to Parquet token ids."""

from __future__ import annotations

from typing import Any

import click

from pipelines.cli import options
from pipelines.cli.command import JobCommand
from pipelines.cli.declared import own_option
from pipelines.cli.loading import loading
from pipelines.cli.moved import instead
from pipelines.cli.options import declared_options, settings_of
from pipelines.cli.summary import show_summary
from pipelines.settings import (
    AppendSettings,
    DriftSettings,
    EncodeSettings,
    Execution,
    InputSettings,
    OutputSettings,
)


class _Encode(JobCommand):
    """Explains options that moved to `bpe export`."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse, but for options that moved."""
        if not ctx.resilient_parsing and (said := instead(args)):
            raise click.UsageError(said, ctx)
        return super().parse_args(ctx, args)


@click.command(
    cls=_Encode,
    short_help="Encode a corpus into Parquet files of token ids.",
    example="""
bpe encode --input 'corpus/*.jsonl' --tokenizer model/tokenizer.json --output ids
bpe encode --input corpus --tokenizer model/tokenizer.json --output ids \\
    --append-token '<|endoftext|>'
bpe encode --append --input 'landing/*.jsonl' --tokenizer model/tokenizer.json --output ids
""",
)
@declared_options(
    *(InputSettings, EncodeSettings, OutputSettings, AppendSettings, DriftSettings, Execution)
)
@own_option(
    "tokenizer",
    group="Input",
    required=True,
    metavar="FILE",
    help="tokenizer.json, written by bpe train or by Hugging Face's tokenizers; or the name of a "
    "published vocabulary whose file is on this machine: gpt2, cl100k, o200k or llama3. The tokens "
    "that a post-processor would add are not added.",
)
@options.vocabulary_path_option()
@options.config_option()
@options.report_options()
@click.pass_context
def encode(ctx: click.Context, /, **_: Any) -> None:
    """Encode a corpus into Parquet files of token ids, one row per document.

    Writes DIR/data/train-00000-of-00042.parquet and so on (columns: id, kept columns, key, a hash
    of the id, input_ids, num_tokens), and finally DIR/manifest.json, which marks the job as
    complete. Special tokens that occur in documents are encoded as plain text, unless
    --allow-special names them. An empty document has a row with an empty list. bpe export makes
    training data of the ids: mixed, shuffled, packed.

    With --append, only files that DIR does not have yet are encoded, into parts of their own;
    --watch SECONDS does that again and again.
    """
    with loading():
        from pipelines.encode.job import encode as encode_corpus

    encoded = encode_corpus(
        inputs=settings_of(ctx, InputSettings),
        tokenizer=options.tokenizer_path(ctx),
        output=options.output_settings(ctx),
        encoding=settings_of(ctx, EncodeSettings),
        execution=options.execution(ctx),
        appending=settings_of(ctx, AppendSettings),
        drift=options.drift_settings(ctx),
        progress=options.progress(ctx),
    )
    show_summary(ctx.params, encode=encoded)
