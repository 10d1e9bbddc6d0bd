"""``bpe verify``: is an output, or a tokenizer file, what it says?"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from pipelines.cli import options
from pipelines.cli.command import JobCommand, beam_args
from pipelines.cli.declared import declared_options, settings_of
from pipelines.cli.loading import loading
from pipelines.cli.logs import set_up_logging
from pipelines.cli.report import show_json, show_summary, summary_json
from pipelines.cli.tokenizer_options import tokenizer_options
from pipelines.cli.verify_tokenizer import (
    is_tokenizer_file,
    read_tokenizer,
    show_tokenizer,
    verify_tokenizer,
)
from pipelines.settings import Execution, InputSettings

if TYPE_CHECKING:
    from bpe import Tokenizer


@click.command(
    cls=JobCommand,
    short_help="Check an output (against its input too), or a tokenizer file.",
    example="""
bpe verify ids
bpe verify ids --input 'corpus/*.jsonl'
bpe verify model/tokenizer.json
bpe verify s3://bucket/ids --storage-option endpoint_override=http://storage:9000
""",
)
@click.argument("path", metavar="PATH")
@declared_options(
    InputSettings,
    Execution,
    optional=["input"],
    leave_out=["split_size", "max_failures"],
)
@tokenizer_options()
@options.config_option()
@options.report_options()
@click.pass_context
def verify(ctx: click.Context, /, **_: Any) -> None:
    """Check encoded output, counts, or a tokenizer, and that it is complete.

    Encoded output and counts, without --input: every part against the manifest (sizes, SHA-256,
    rows, tokens). With --input, given as when the output was made: also that every document of the
    corpus is there once and decodes to its own bytes (or encodes to the same ids, where the
    tokenizer loses text), or that counting the corpus again gives the same. (Encoded output knows
    how its documents were read; for counts, --format and its like are given again.)

    A directory of bpe train or bpe run: its counts, tokenizer and encoded corpus, each in full.
    Output that is not finished is an error: a job that was killed, or a file that is missing or
    of another run.

    A tokenizer file, of any format that bpe convert knows: it is read in full (with training.json,
    where training left one beside it), and each token that cannot be encoded to itself is listed.

    The parts of encoded output are shared out among the workers, on any runner. Each one is
    checked: the error names the first that is wrong, and how many are. Counts are checked in this
    process.

    Exit status 0: all is right; 1: something is not, and what is named.
    """
    path = ctx.params["path"]
    if is_tokenizer_file(path):
        if beam_args(ctx):
            raise click.UsageError(
                "a tokenizer file is read without Beam: leave out what stands after --", ctx
            )
        _refuse_input(ctx)
        found = verify_tokenizer(read_tokenizer(ctx, path), path)
        show_tokenizer(ctx, found)
        ctx.exit(1 if found["unreachable"] else 0)
    inputs = settings_of(ctx, InputSettings) if ctx.params["input"] else None
    execution = options.execution(ctx)
    set_up_logging()
    with loading():
        from pipelines import jobs

    outputs = jobs.outputs(directory=path, execution=execution)
    if all(output.kind == "tokenizer" for output in outputs):
        _refuse_input(ctx)
    results: dict[str, dict[str, Any]] = {}
    as_json = ctx.params["json"]
    tokenizer: Tokenizer | None = None
    for output in outputs:
        if output.kind == "tokenizer":
            tokenizer = read_tokenizer(ctx, path)
            results["tokenizer"] = found = verify_tokenizer(tokenizer, path)
            if not as_json:
                show_tokenizer(ctx, found)
            continue
        summary = jobs.verify(
            directory=output.directory,
            inputs=inputs,
            execution=execution,
            progress=options.progress(ctx),
            tokenizer=tokenizer,
        )
        results[summary.kind] = summary_json(ctx, verify=summary)
        if not as_json:
            show_summary(ctx, verify=summary)
    if as_json:
        show_json(results if len(results) > 1 else next(iter(results.values())))
    ctx.exit(1 if results.get("tokenizer", {}).get("unreachable") else 0)


def _refuse_input(ctx: click.Context) -> None:
    if ctx.params["input"]:
        raise click.UsageError("--input goes with encoded output or counts, not a tokenizer", ctx)
