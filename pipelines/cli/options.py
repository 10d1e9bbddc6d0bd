"""The options that several commands share, and the settings made from their values."""

from __future__ import annotations

import re
import sys
from typing import TYPE_CHECKING, Any

import click

from pipelines.cli.command import (
    GroupedOption,
    Source,
    beam_args,
    choose,
    source,
    stack,
    use_configs,
)
from pipelines.cli.declared import settings_of
from pipelines.cli.logs import LOG_FORMATS, is_json, use_format
from pipelines.settings import (
    NO_NORMALIZER,
    CountsInput,
    Execution,
    OutputSettings,
    PretokenSettings,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from pipelines.progress import Progress


def special_ids_option() -> Callable[[Any], Any]:
    """Special tokens of a tokenizer file that does not say which they are."""
    return click.option(
        "--special-token",
        "special_token",
        cls=GroupedOption,
        group="Text",
        advanced=True,
        multiple=True,
        metavar="TOKEN[=ID]",
        help="Special token of a file that does not say so (.tiktoken, vocab.json), with its id; "
        "without, where the file or its publisher gives it one; repeatable.",
    )


def special_ids(given: tuple[str, ...]) -> dict[str, int | None] | None:
    """The values of :func:`special_ids_option`: ids by token; None where none is given."""
    found: dict[str, int | None] = {}
    for one in given:
        match = re.fullmatch(r"(.+)=([0-9]{1,10})", one, re.DOTALL)
        content, id_ = (match[1], int(match[2])) if match else (one, None)
        if content in found:
            raise click.UsageError(f"--special-token {content!r} is given twice: leave one out")
        found[content] = id_
    return found or None


def config_option() -> Callable[[Any], Any]:
    """Where defaults come from."""
    return click.option(
        "--config",
        cls=GroupedOption,
        group="Where it runs",
        metavar="FILE",
        multiple=True,
        is_eager=True,
        expose_value=False,
        callback=use_configs,
        help="YAML file of defaults for these options, by name. Of several the last one wins, and "
        "the command line over all.",
    )


# Of commands that read stores, and have no runner.
NO_RUNNER = ("runner", "workers", "stage", "package", "shared_path")


def traceback_option() -> Callable[[Any], Any]:
    """For those who look for a fault of bpe itself; ``main`` looks for it."""
    return click.option("--traceback", is_flag=True, hidden=True, expose_value=False)


def json_option() -> Callable[[Any], Any]:
    """In which form to print the result."""
    return click.option(
        "--json/--no-json",
        cls=GroupedOption,
        group="Messages",
        default=False,
        show_default=False,
        help="Print the result as JSON.",
    )


def report_options() -> Callable[[Any], Any]:
    """What to say."""
    return stack(
        json_option(),
        click.option(
            "--quiet/--no-quiet",
            "-q",
            cls=GroupedOption,
            group="Messages",
            default=False,
            show_default=False,
            help="No progress on stderr.",
        ),
        click.option(
            "--log-format",
            cls=GroupedOption,
            group="Messages",
            advanced=True,
            type=click.Choice(LOG_FORMATS),
            default="text",
            metavar="NAME",
            expose_value=False,
            callback=lambda ctx, _, name: None if ctx.resilient_parsing else use_format(name),
            help="Form of the lines on stderr. text: for people; json: an object each, also "
            "for what goes wrong.",
        ),
        traceback_option(),
    )


def pretoken_settings(ctx: click.Context) -> PretokenSettings:
    """How the options cut text."""
    choose(ctx, "pretokenizer", "pattern")
    pattern = ctx.params["pattern"] or None
    return settings_of(ctx, PretokenSettings, pattern=pattern, normalizer=_normalizer(ctx))


def _normalizer(ctx: click.Context) -> tuple[str, ...]:
    steps: tuple[str, ...] = ctx.params["normalizer"]
    if NO_NORMALIZER not in steps:
        return steps
    if len(steps) > 1:
        raise click.UsageError("--normalizer none stands alone: leave out the others, or it", ctx)
    return ()


def counts_inputs(ctx: click.Context) -> tuple[CountsInput, ...]:
    """The counts to train on; ``DIR:3`` is DIR with each count three times."""
    return tuple(CountsInput.parse(one) for one in ctx.params["counts"])


def refuse_recutting(ctx: click.Context) -> None:
    """Counts are of pre-tokens: how their text was cut is settled.

    Raises:
        click.UsageError: counts are given, and how to cut text as well.
    """
    for name in ("pretokenizer", "pattern", "normalizer", "never_split"):
        if ctx.params["counts"] and source(ctx, name) > Source.PRESET and ctx.params[name]:
            option = f"--{name}".replace("_", "-")
            raise click.UsageError(
                f"{option} goes with --input: --counts were cut when they were made, and the "
                "tokenizer will cut text the same way",
                ctx,
            )


def output_settings(ctx: click.Context, *below: str) -> OutputSettings:
    """Where the options write: ``--output``, or a directory below it."""
    choose(ctx, "overwrite", "resume")
    return settings_of(ctx, OutputSettings, directory=join(ctx.params["output"], *below))


def join(directory: str, *below: str) -> str:
    """A path below a directory of any filesystem."""
    return "/".join([directory.rstrip("/") or directory, *below]) if below else directory


def execution(ctx: click.Context) -> Execution:
    """Who does the work."""
    return settings_of(ctx, Execution, beam_args=beam_args(ctx))


def progress(ctx: click.Context) -> Progress:
    """Where progress goes: stderr, unless ``--quiet``. Logs of jobs elsewhere go to files."""
    from pipelines.cli.job_log import job_log

    shown = _shown_progress(quiet=ctx.params["quiet"])
    shown.logs = job_log
    return shown


def _shown_progress(*, quiet: bool) -> Progress:
    from pipelines.progress import NoProgress, progress_on

    if quiet:
        return NoProgress()
    if is_json():
        from pipelines.progress.json_lines import JsonProgress

        return JsonProgress(sys.stderr)
    return progress_on(sys.stderr)
