"""The options of jobs that take files as they arrive."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from pipelines.cli.command import EXAMPLE_PATTERN, GroupedOption, Source, choose, source
from pipelines.option import declared
from pipelines.watch.settings import DriftSettings, WatchSettings

if TYPE_CHECKING:
    from collections.abc import Callable


def watch_option() -> Callable[[Any], Any]:
    """Which files to wait for."""
    return click.option(
        "--watch",
        cls=GroupedOption,
        group="Watching",
        multiple=True,
        metavar="PATTERN",
        help="In the place of --input: take files as they arrive, and those that are there; "
        "repeatable.",
    )


def settle_input(ctx: click.Context) -> bool:
    """Whether to watch; then the patterns stand where those of ``--input`` do.

    Raises:
        click.UsageError: neither is given, or both are.
    """
    choose(ctx, "watch", "input")
    if ctx.params["watch"]:
        ctx.params["input"] = ctx.params["watch"]
        return True
    if not ctx.params["input"]:
        raise click.UsageError(
            f"Missing option '--input': give {EXAMPLE_PATTERN}, or --watch for files that are "
            "still to come",
            ctx,
        )
    return False


def refuse_watching(ctx: click.Context) -> None:
    """Refuse what goes with ``--watch`` alone, where it was typed without it.

    Raises:
        click.UsageError: it was.
    """
    for spec in (*declared(WatchSettings).values(), *declared(DriftSettings).values()):
        if spec.name in ctx.params and source(ctx, spec.name) is Source.COMMAND_LINE:
            option = f"--{spec.name}".replace("_", "-")
            raise click.UsageError(f"{option} goes with --watch: without it, nothing waits", ctx)
