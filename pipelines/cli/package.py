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
    short_help="Build a wheel of this package for the workers of a cluster.",
    example="""
bpe package --output dist
""",
)
@own_option(
    "output", required=True, metavar="DIR", help="Directory for the wheel; created if missing."
)
@options.traceback_option()
def package(output: str) -> None:
    """Build a wheel of beam-bpe, and print the Beam option that sends it to workers.

    Run it from a checkout (make install, or pip install -e), because pip builds the wheel from the
    sources. An installation without its sources downloads the same release from the package index,
    once there is one.
    """
    with loading():
        from pipelines.submission.package import fits, make_wheel

    wheel = make_wheel(Path(output))
    click.echo(f"bpe: package: fits {fits()}", err=True)
    click.echo(f"--extra_package={shlex.quote(str(wheel))}")
