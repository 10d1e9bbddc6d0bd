"""``bpe decode``: Parquet token ids back to documents."""

from __future__ import annotations

import sys

import click

from pipelines.cli import options
from pipelines.cli.command import Command
from pipelines.cli.logs import set_up_logging
from pipelines.progress import many


@click.command(
    cls=Command,
    short_help="Turn Parquet token ids back into documents.",
    example="""
bpe decode ids > documents.jsonl
bpe decode ids | head -n 3
""",
)
@click.argument("directory", metavar="DIR")
@options.traceback_option()
def decode(directory: str) -> None:
    """Turn the token ids in DIR (from bpe encode) back into documents.

    Prints a JSON object for each document, {"id": ..., "text": ...}, in the order of the parts.
    """
    set_up_logging()
    from pipelines import jobs

    documents = jobs.decode(directory=directory, stream=sys.stdout.buffer)
    sys.stdout.buffer.flush()
    click.echo(f"bpe: decode: {many(documents, 'document')}", err=True)
