"""``bpe export``: token ids in the formats that trainers read."""

from __future__ import annotations

from typing import Any

import click

from pipelines.cli import options
from pipelines.cli.command import JobCommand
from pipelines.cli.loading import loading
from pipelines.cli.options import declared_options, settings_of
from pipelines.cli.summary import show_summary
from pipelines.settings import Execution, ExportSettings, OutputSettings


@click.command(
    cls=JobCommand,
    short_help="Write token ids in a format that trainers read.",
    example="""
bpe export ids --to bin --output ids-bin
bpe export ids --to megatron --one-file --output ids-megatron
bpe export ids --to mds --with-id --output ids-mds
""",
)
@click.argument("directory", metavar="DIR")
@declared_options(ExportSettings, OutputSettings, Execution)
@options.config_option()
@options.report_options()
@click.pass_context
def export(ctx: click.Context, /, directory: str, **_: Any) -> None:
    """Write the token ids in DIR (from bpe encode) in a format that trainers read.

    bin: the ids of all rows, one after the other, as uint16 or uint32, little-endian
    (train-00000-of-00042.bin). megatron: the same (uint32 as int32), and train-00000-of-00042.idx
    with the borders of rows and documents. mds: samples with the column input_ids, and index.json.
    litdata: chunks for TokensLoader, and index.json. Parts without ids make no files.

    Each part of DIR becomes files of its own, in parallel. export.json comes last: it lists all
    files with their SHA-256, and marks the job as complete. Files are the same bytes with any
    number of workers. bpe verify checks them.
    """
    output, settings = options.output_settings(ctx), settings_of(ctx, ExportSettings)
    execution = options.execution(ctx)
    with loading():
        from pipelines.export import job

    summary = job.export(
        directory=directory,
        output=output,
        settings=settings,
        execution=execution,
        progress=options.progress(ctx),
    )
    show_summary(ctx, export=summary)
