"""The command line: ``python -m cluster``."""

from __future__ import annotations

import sys

import click

from cluster import cache
from cluster.setup import SetupError, set_up


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
def cluster() -> None:
    """Run Flink on this machine, and send jobs to it."""


@cluster.command()
def setup() -> None:
    """Bring what a cluster is made of, unless it is here."""
    try:
        set_up(lambda line: click.echo(f"cluster: {line}", err=True))
    except SetupError as error:
        click.echo(f"cluster: error: {error}", err=True)
        sys.exit(1)
    click.echo(cache.root())


if __name__ == "__main__":
    cluster()
