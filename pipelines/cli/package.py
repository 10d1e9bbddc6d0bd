"""``bpe package``: this package as a file that brings it to the workers of a cluster."""

from __future__ import annotations

import shlex
from pathlib import Path

import click

from pipelines.cli import options
from pipelines.cli.command import Command, own_option
from pipelines.cli.loading import loading


@click.command(
    cls=Command,
    short_help="Make a wheel of this package for the workers of a cluster.",
    example="""
bpe package --output dist
""",
)
@own_option("output", required=True, metavar="DIR", help="Where the wheel goes.")
@options.traceback_option()
def package(output: str) -> None:
    """Make a wheel of beam-bpe, and print the option of Beam that brings it to workers.

    pip builds it from the sources that run; where beam-bpe is installed without them, pip takes
    the same release from the package index.
    """
    with loading():
        from pipelines.submission.package import fits, make_wheel

    wheel = make_wheel(Path(output))
    click.echo(f"bpe: package: fits {fits()}", err=True)
    click.echo(f"--extra_package={shlex.quote(str(wheel))}")
