"""``bpe decode``: Parquet token ids back to documents."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import click

from pipelines.cli import options
from pipelines.cli.command import command
from pipelines.cli.loading import loading
from pipelines.progress import many
from pipelines.settings import Execution

if TYPE_CHECKING:
    from pipelines.cli.layers import Values


@command(
    *(Execution, options.Config),
    leave_out=options.NO_RUNNER,
)
@click.argument("directory", metavar="DIR")
def decode(values: Values) -> None:
    """Decode Parquet files of token ids into documents.

    DIR is a directory that bpe encode wrote. Prints one JSON object per document, {"id": ...,
    "text": ...}, in the order of the parts. Always runs in this process.

    Example:
        bpe decode ids > documents.jsonl
        bpe decode ids | head -n 3
        bpe decode s3://bucket/ids --storage-option endpoint_override=http://storage:9000
    """
    with loading():
        from pipelines import decode as job

    documents = job.decode(
        directory=values["directory"],
        stream=sys.stdout.buffer,
        execution=values.settings(Execution),
    )
    sys.stdout.buffer.flush()
    click.echo(f"bpe: decode: {many(documents, 'document')}", err=True)
