"""``bpe export``: ids to training data."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from pipelines.cli import options
from pipelines.cli.command import command
from pipelines.cli.loading import loading
from pipelines.cli.summary import show_summary
from pipelines.settings import Execution, ExportSettings, OutputSettings

if TYPE_CHECKING:
    from pipelines.cli.layers import Values


@command(
    *(ExportSettings, OutputSettings, Execution, options.Config, options.Messages),
)
@click.argument("sources", metavar="[NAME=]IDS...", nargs=-1, required=True)
def export(values: Values) -> None:
    r"""Make training data of ids: mixed, shuffled, packed.

    Each IDS is a directory that bpe encode wrote. Documents are held out (--validation), chosen
    (--mix, --token-budget), shuffled (--shuffle), and become rows: one each, chunks (--max-tokens)
    or packed (--pack), in every format. No text is encoded again: try other mixtures, seeds and row
    lengths on the same ids.

    docs/export.md describes the files of each format.

    manifest.json comes last and marks the job as complete. The same ids and options give the same
    bytes, with any number of workers. bpe verify DIR --input IDS checks the export.

    Example:
        bpe export ids --to bin --output ids-bin
        bpe export ids --to parquet --pack 2048 --shuffle 1 --validation 0.5% --output rows
        bpe export web=ids-web code=ids-code --mix web=70% --mix code=30% \
            --pack 4096 --shuffle 1 --to mds --output mixed
    """
    output, settings = values.settings(OutputSettings), values.settings(ExportSettings)
    execution = values.settings(Execution)
    with loading():
        from pipelines.export import job

    summary = job.export(
        sources=values["sources"],
        output=output,
        settings=settings,
        execution=execution,
        progress=options.progress(values),
    )
    show_summary(values, export=summary)
