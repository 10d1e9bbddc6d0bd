"""``bpe count``: corpus to counts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from pipelines.cli import options
from pipelines.cli.command import JobCommand
from pipelines.cli.declared import own_option
from pipelines.cli.layers import Source, source
from pipelines.cli.loading import loading
from pipelines.cli.options import declared_options, settings_of
from pipelines.cli.summary import show_summary
from pipelines.settings import (
    AppendSettings,
    CountSettings,
    Execution,
    InputSettings,
    OutputSettings,
    PretokenSettings,
    RunSettings,
)

if TYPE_CHECKING:
    from pipelines.count.runs import RunsOf


@click.command(
    cls=JobCommand,
    short_help="Count the pre-tokens of a corpus.",
    example="""
bpe count --input 'corpus/*.jsonl.gz' --output counts --pretokenizer cl100k
bpe count --append --input 'landing/*.jsonl' --output counts
bpe count --runs --tokenizer words/tokenizer.json --input 'corpus/*.jsonl.gz' --output runs
""",
)
@declared_options(
    *(InputSettings, PretokenSettings, RunSettings, CountSettings, OutputSettings),
    *(AppendSettings, Execution),
)
@own_option(
    "runs",
    group="Text",
    kind="flag",
    default=False,
    help="Count runs, not pre-tokens: adjacent pre-tokens that are one token each. Superwords are "
    "trained on them.",
)
@own_option(
    "tokenizer",
    group="Text",
    metavar="FILE",
    help="With --runs: the tokenizer whose tokens are the parts of runs. It says how text is "
    "split, instead of --pretokenizer and similar options.",
)
@options.vocabulary_path_option()
@options.preset_option()
@options.config_option()
@options.report_options()
@click.pass_context
def count(ctx: click.Context, /, **_: Any) -> None:
    """Count the pre-tokens (roughly, words) of a corpus.

    Writes DIR/data/part-00000-of-00016.parquet and so on (columns pretoken and count), and
    DIR/manifest.json. From these counts, bpe train makes tokenizers of any vocabulary size without
    reading the corpus again. It can train on the counts of several corpora at once:
    bpe train --counts DIR --counts OTHER.

    With --runs, it counts the runs of a tokenizer's tokens instead, whose keys in the column
    pretoken are ids; DIR/tokenizer.json is the tokenizer. bpe train --counts DIR --superwords N
    learns tokens across word boundaries from them.

    With --append, only files that DIR does not have yet are counted; --watch SECONDS does that
    again and again. bpe train --counts DIR can use the counts at any time.
    """
    inputs, pretokens = settings_of(ctx, InputSettings), options.pretoken_settings(ctx)
    output, execution = options.output_settings(ctx), options.execution(ctx)
    settings = settings_of(ctx, CountSettings)
    _check_runs(ctx)
    with loading():
        from pipelines.count import job

    summary = job.count(
        inputs=inputs,
        pretokens=pretokens,
        output=output,
        execution=execution,
        settings=settings,
        runs=_runs(ctx),
        appending=settings_of(ctx, AppendSettings),
        progress=options.progress(ctx),
    )
    show_summary(ctx.params, count=summary)


def _check_runs(ctx: click.Context) -> None:
    """Refuse options that contradict ``--runs``, or go with it alone.

    Raises:
        click.UsageError: there is one.
    """
    if ctx.params["runs"]:
        if ctx.params["tokenizer"] is None:
            raise click.UsageError("--runs needs --tokenizer FILE, whose tokens are counted", ctx)
        options.refuse_cutting(
            ctx,
            *(*options.OF_CUT, "special_token", "track_order"),
            above=Source.DEFAULT,
            why="excludes --runs: the --tokenizer says how text is split; leave it out",
        )
        return
    for name in ("tokenizer", "vocabulary_path", "merge_pattern", "max_run"):
        if source(ctx, name) is Source.COMMAND_LINE:
            option = f"--{name}".replace("_", "-")
            raise click.UsageError(f"{option} needs --runs", ctx)


def _runs(ctx: click.Context) -> RunsOf | None:
    """The runs that the options ask for; None for pre-tokens."""
    if not ctx.params["runs"]:
        return None
    from pipelines.count.runs import RunsOf
    from pipelines.failures import job_errors
    from pipelines.run import use_storage

    with job_errors():
        use_storage(options.execution(ctx))
        return RunsOf.of(options.tokenizer_path(ctx), settings_of(ctx, RunSettings))
