"""The options of jobs that take files as they arrive."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from pipelines.cli.command import EXAMPLE_PATTERN, Described, Source, choose, source, stack

if TYPE_CHECKING:
    from collections.abc import Callable

    from pipelines.watch.settings import DriftSettings, WatchSettings

# As in pipelines.watch.settings.COMPLETE_WHEN (a test compares).
COMPLETE_WHEN = ("settled", "marker")
_OF_WATCHING = (
    *("interval", "settle", "complete_when", "stop_after", "stop_idle"),
    *("drift_every", "baseline", "warn_bytes_per_token", "warn_single_bytes", "warn_unseen"),
)


def watch_options() -> Callable[[Any], Any]:
    """Which files to wait for, and for how long."""
    return stack(
        click.option(
            "--watch",
            multiple=True,
            metavar="PATTERN",
            help="In the place of --input: take files as they arrive, and those that are there; "
            "repeatable.",
        ),
        click.option(
            "--interval",
            type=float,
            default=10.0,
            metavar="SECONDS",
            help="With --watch: time between two looks at what is there.",
        ),
        click.option(
            "--complete-when",
            type=click.Choice(COMPLETE_WHEN),
            default="settled",
            metavar="RULE",
            help="With --watch: when a file is complete. settled: nothing has changed in it for "
            "--settle SECONDS; marker: NAME.done stands beside it. Hidden files and names such as "
            "NAME.tmp and NAME.part are never taken.",
        ),
        click.option(
            "--settle",
            type=float,
            default=5.0,
            metavar="SECONDS",
            help="With --watch: how long; 0 where files are renamed to their names when whole.",
        ),
        click.option(
            "--stop-after",
            type=float,
            metavar="SECONDS",
            cls=Described,
            default_is="never",
            help="With --watch: stop then.",
        ),
        click.option(
            "--stop-idle",
            type=float,
            metavar="SECONDS",
            cls=Described,
            default_is="never",
            help="With --watch: stop when all is taken, and nothing has come for so long.",
        ),
    )


def drift_options() -> Callable[[Any], Any]:
    """How the fit of the tokenizer is measured while files arrive."""
    return stack(
        click.option(
            "--drift-every",
            type=float,
            default=60.0,
            metavar="SECONDS",
            help="With --watch: time between two rows of drift/DATE.jsonl, at least.",
        ),
        click.option(
            "--baseline",
            metavar="COUNTS",
            cls=Described,
            default_is="they are not measured",
            help="With --watch: counts that the tokenizer was trained on, which tell unseen "
            "pre-tokens.",
        ),
        click.option(
            "--warn-bytes-per-token",
            type=float,
            default=0.8,
            metavar="SHARE",
            help="With --watch: warn below this share of the bytes per token of the training.",
        ),
        click.option(
            "--warn-single-bytes",
            type=float,
            metavar="SHARE",
            cls=Described,
            default_is="never",
            help="With --watch: warn above this share of tokens that are one byte.",
        ),
        click.option(
            "--warn-unseen",
            type=float,
            metavar="N",
            cls=Described,
            default_is="never",
            help="With --watch: warn above so many unseen in a million pre-tokens (--baseline).",
        ),
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
    for name in _OF_WATCHING:
        if name in ctx.params and source(ctx, name) is Source.COMMAND_LINE:
            option = f"--{name}".replace("_", "-")
            raise click.UsageError(f"{option} goes with --watch: without it, nothing waits", ctx)


def watch_settings(ctx: click.Context) -> WatchSettings:
    """When a file is complete, and when the job ends."""
    from pipelines.watch.settings import WatchSettings

    names = ("interval", "complete_when", "settle", "stop_after", "stop_idle")
    return WatchSettings(**{name: ctx.params[name] for name in names})


def drift_settings(ctx: click.Context) -> DriftSettings:
    """How drift is measured, and when to warn."""
    from pipelines.watch.settings import DriftSettings

    values = ctx.params
    return DriftSettings(
        every=values["drift_every"],
        baseline=values["baseline"],
        warn_bytes_per_token=values["warn_bytes_per_token"],
        warn_single_bytes=values["warn_single_bytes"],
        warn_unseen=values["warn_unseen"],
    )
