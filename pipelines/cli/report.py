"""``bpe report``: a page to look at."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from pipelines.cli import options
from pipelines.cli.command import Command
from pipelines.cli.declared import own_option
from pipelines.cli.loading import loading
from pipelines.cli.summary import near, show_json, warning_lines
from pipelines.progress import size_text

if TYPE_CHECKING:
    from bpe import Tokenizer


@click.command(
    "report",
    cls=Command,
    short_help="Write an HTML report on a tokenizer, counts, ids or an export.",
    example="""
bpe report model
bpe report ids --output ids.html
bpe report model --compare compared.json
bpe report o200k_base.tiktoken --pretokenizer o200k --output o200k.html
""",
)
@click.argument("path", metavar="PATH")
@own_option(
    "output",
    metavar="FILE.html",
    default_is="report.html in the directory",
    help="File to write.",
)
@own_option(
    "overwrite",
    kind="flag",
    default=False,
    help="Overwrite FILE.html if it is there already.",
)
@own_option(
    "sample_parts",
    kind="integer",
    minimum=1,
    metavar="N",
    help="Read at most N parts of an encoded corpus, evenly spaced; the report says so.",
)
@own_option(
    "compare",
    metavar="FILE.json",
    several=True,
    help="Also show the comparison written by bpe compare --output; repeatable.",
)
@options.tokenizer_options()
@options.report_options()
@click.pass_context
def report(
    ctx: click.Context,
    /,
    path: str,
    output: str | None,
    overwrite: bool,
    sample_parts: int | None,
    compare: tuple[str, ...],
    **_: Any,
) -> None:
    """Write an HTML report on PATH: one file, to open in a browser.

    PATH is an output directory of bpe count, train, encode, export or run, a tokenizer file in any
    format that bpe convert reads, or a file written by bpe compare --output. The report shows the
    compression of every smaller vocabulary, lengths and frequencies of tokens, scripts, ties, dead
    letters, speed, and the manifests. It loads nothing over the network and runs no script.
    Pictures need matplotlib (the extra pictures); without it, the report has tables instead.
    """
    with loading():
        from pipelines.report import report as write_report

    summary = write_report(
        path,
        output=output,
        overwrite=overwrite,
        tokenizer=_tokenizer(ctx, path),
        sample_parts=sample_parts,
        comparisons=compare,
        progress=options.progress(ctx),
    )
    if ctx.params["json"]:
        show_json(summary.as_dict())
        return
    size = size_text(summary.bytes)
    click.echo(f"report    {near(summary.output)}: {size}; open it in a browser")
    if not summary.pictures:
        lines = warning_lines(["no pictures: they need matplotlib: pip install matplotlib"])
        click.echo("\n".join(lines))


def _tokenizer(ctx: click.Context, path: str) -> Tokenizer | None:
    """The tokenizer of a local file that the options say more of; None where they do not."""
    names = ("pretokenizer", "pattern", "normalizer", "never_split", "special_token")
    if not any(ctx.params[name] for name in names):
        return None
    return options.load_tokenizer(ctx, path)
