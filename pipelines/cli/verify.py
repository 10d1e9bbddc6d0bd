"""``bpe verify``: is an output what its manifest, or the text itself, says?"""

from __future__ import annotations

from typing import Any

import click

from pipelines.cli import options
from pipelines.cli.command import JobCommand
from pipelines.cli.logs import set_up_logging
from pipelines.cli.report import show_summary


@click.command(
    cls=JobCommand,
    short_help="Check an output against its manifest, or the text itself.",
    example="""
bpe verify ids
bpe verify ids --input 'corpus/*.jsonl'
""",
)
@click.argument("directory", metavar="DIR")
@options.input_options(required=False)
@options.config_option()
@options.report_options()
@click.pass_context
def verify(ctx: click.Context, /, **_: Any) -> None:
    """Check encoded output or counts.

    Without --input: every part against the manifest (sizes, SHA-256, rows, tokens). With --input,
    given as when the output was made: also that every document of the corpus is there once and
    decodes to its own bytes, or that counting the corpus again gives the same. (Encoded output
    knows how its documents were read; for counts, --format and its like are given again.) Exit
    status 0: all is right; 1: something is not, and the first difference is named.
    """
    inputs = options.input_settings(ctx) if ctx.params["input"] else None
    set_up_logging()
    from pipelines import jobs

    summary = jobs.verify(
        directory=ctx.params["directory"], inputs=inputs, progress=options.progress(ctx)
    )
    show_summary(ctx, verify=summary)
