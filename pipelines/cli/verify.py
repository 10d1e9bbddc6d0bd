"""``bpe verify``: is an output, or a tokenizer file, what it says?"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from pipelines.cli import options
from pipelines.cli.command import JobCommand, beam_args
from pipelines.cli.loading import loading
from pipelines.cli.logs import set_up_logging
from pipelines.cli.report import show_summary
from pipelines.cli.tokenizer_options import tokenizer_options
from pipelines.cli.verify_tokenizer import is_tokenizer, verify_tokenizer
from pipelines.settings import Execution


@click.command(
    cls=JobCommand,
    short_help="Check an output (against its input too), or a tokenizer file.",
    example="""
bpe verify ids
bpe verify ids --input 'corpus/*.jsonl'
bpe verify model/tokenizer.json
bpe verify s3://bucket/ids -- --s3_endpoint_url=http://storage:9000
""",
)
@click.argument("path", metavar="PATH")
@options.input_options(required=False)
@tokenizer_options()
@options.config_option()
@options.report_options()
@click.pass_context
def verify(ctx: click.Context, /, **_: Any) -> None:
    """Check encoded output, counts, or a tokenizer.

    Encoded output and counts, without --input: every part against the manifest (sizes, SHA-256,
    rows, tokens). With --input, given as when the output was made: also that every document of the
    corpus is there once and decodes to its own bytes (or encodes to the same ids, where the
    tokenizer loses text), or that counting the corpus again gives the same. (Encoded output knows
    how its documents were read; for counts, --format and its like are given again.)

    A tokenizer file, of any format that bpe convert knows: it is read in full (with training.json,
    where training left one beside it), and each token that cannot be encoded to itself is listed.

    All of it is read in this process: behind a lone -- stand the options of Beam's filesystems, and
    no --runner.

    Exit status 0: all is right; 1: something is not, and what is named.
    """
    if is_tokenizer(Path(ctx.params["path"])):
        if beam_args(ctx):
            raise click.UsageError(
                "a tokenizer file is read without Beam: leave out what stands after --", ctx
            )
        verify_tokenizer(ctx)
        return
    inputs = options.input_settings(ctx) if ctx.params["input"] else None
    set_up_logging()
    with loading():
        from pipelines import jobs

    summary = jobs.verify(
        directory=ctx.params["path"],
        inputs=inputs,
        execution=Execution(beam_args=beam_args(ctx)),
        progress=options.progress(ctx),
    )
    show_summary(ctx, verify=summary)
