"""The command line: ``python -m tests.cluster``."""

from __future__ import annotations

import click

from tests.cluster import cache, service
from tests.cluster.setup import missing_tools, set_up


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
def cluster() -> None:
    """Run Flink on this machine, and send jobs to it."""


@cluster.command()
def setup() -> None:
    """Bring what a cluster is made of, unless it is here."""
    set_up(lambda line: click.echo(f"cluster: {line}", err=True))
    click.echo(cache.root())


@cluster.command()
def start() -> None:
    """Start a standalone Flink with Python workers, in the background."""
    if lacking := [*missing_tools(), *cache.missing()]:
        raise click.ClickException(f"not here: {'; '.join(lacking)}: run make cluster first")
    service.start()
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


if __name__ == "__main__":
    cluster()
