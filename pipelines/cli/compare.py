"""``bpe compare``: tokenizers side by side on one corpus."""

from __future__ import annotations

import sys
from typing import Any

import click

from pipelines.cli import options
from pipelines.cli.command import JobCommand, WholeNumber
from pipelines.cli.declared import declared_options, settings_of
from pipelines.cli.loading import loading
from pipelines.cli.logs import set_up_logging
from pipelines.cli.report import show_json
from pipelines.settings import Execution, InputSettings


@click.command(
    cls=JobCommand,
    short_help="Compare tokenizers on a corpus, side by side.",
    example="""
bpe compare model/tokenizer.json cl100k_base.tiktoken --input 'corpus/*.jsonl' --by lang
bpe compare old=a.json new=b.json mine.tiktoken:cl100k --input corpus --html comparison.html
""",
)
@click.argument("tokenizers", metavar="TOKENIZER...", nargs=-1)
@declared_options(InputSettings, Execution)
@click.option(
    "--by",
    metavar="COLUMN",
    help="Also for each value of this field (jsonl) or column (parquet), such as the language; "
    "file: for each file.",
)
@click.option(
    "--examples",
    type=WholeNumber(0, 1000),
    default=20,
    metavar="N",
    help="Pieces of text to show on which two tokenizers differ most; 0: do not look for them.",
)
@click.option("--output", metavar="FILE.json", help="Write the result as JSON; it replaces FILE.")
@click.option("--html", metavar="FILE.html", help="Write the result as a page; it replaces FILE.")
@options.config_option()
@options.report_options()
@click.pass_context
def compare(ctx: click.Context, /, tokenizers: tuple[str, ...], **_: Any) -> None:
    """Encode a corpus with each TOKENIZER, and show what they make of it; the first is the measure.

    A TOKENIZER is a file that bpe convert knows: tokenizer.json, a .tiktoken file, or vocab.json
    with merges.txt beside it. A pre-tokenizer that the file does not name stands behind a colon,
    a name to call it by before an equals sign: small=mine.tiktoken:cl100k.

    Documents are encoded as bpe encode does it, and no ids are written. Pieces of text that all of
    the tokenizers cut out are counted, encoded by themselves, and those named that make the
    greatest difference in tokens over the whole corpus.
    """
    from pipelines.compare.plan import parse_tokenizers

    files = parse_tokenizers(tokenizers)
    inputs, execution = settings_of(ctx, InputSettings), options.execution(ctx)
    set_up_logging()
    with loading():
        from pipelines import jobs
    from pipelines.cli.comparison import show_comparison

    result = jobs.compare(
        inputs=inputs,
        tokenizers=files,
        by=ctx.params["by"],
        examples=ctx.params["examples"],
        output=ctx.params["output"],
        execution=execution,
        progress=options.progress(ctx),
    )
    if ctx.params["html"] is not None:
        from pipelines import storage
        from pipelines.report.comparison_sections import comparison_page

        storage.write(storage.located(ctx.params["html"]), comparison_page(result).encode())
    if ctx.params["json"]:
        show_json(result)
    else:
        show_comparison(result, sys.stdout)
