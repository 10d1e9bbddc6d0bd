"""The command line: ``python -m tests.cluster``."""

from __future__ import annotations

import sys
from typing import NoReturn

import click

from tests.cluster import cache, service
from tests.cluster.processes import ProgramError
from tests.cluster.service import ServiceError
from tests.cluster.setup import SetupError, missing_tools, set_up


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
def cluster() -> None:
    """Run Flink on this machine, and send jobs to it."""


@cluster.command()
def setup() -> None:
    """Bring what a cluster is made of, unless it is here."""
    try:
        set_up(lambda line: click.echo(f"cluster: {line}", err=True))
    except SetupError as error:
        _fail(error)
    click.echo(cache.root())


@cluster.command()
def start() -> None:
    """Start a standalone Flink with Python workers, in the background."""
    if lacking := [*missing_tools(), *cache.missing()]:
        _fail(f"not here: {'; '.join(lacking)}: run make cluster first")
    try:
        service.start()
    except (ServiceError, ProgramError) as error:
        _fail(error)
    click.echo(
        f"""\
jobs:  bpe … --config configs/runners/flink-standalone.yaml
watch: http://127.0.0.1:{service.WEB}
logs:  {service.folder()}
stop:  python -m tests.cluster stop"""
    )


@cluster.command(hidden=True)
def serve() -> None:
    """Hold a cluster; what `start` runs in the background."""
    service.serve()


@cluster.command()
def stop() -> None:
    """Take the cluster down, and all it started."""
    click.echo("stopped" if service.stop() else "no cluster was running")


def _fail(why: object) -> NoReturn:
    click.echo(f"cluster: error: {why}", err=True)
    sys.exit(1)


if __name__ == "__main__":
    cluster()
