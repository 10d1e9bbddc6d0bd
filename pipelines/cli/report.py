"""``bpe report``: a page to look at."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from pipelines.cli import options
from pipelines.cli.command import Command, own_option
from pipelines.cli.loading import loading
from pipelines.cli.summary import near, show_json, warning_lines
from pipelines.progress import size_text

if TYPE_CHECKING:
    from bpe import Tokenizer


@click.command(
    "report",
    cls=Command,
    short_help="Write a page about a tokenizer, counts or an encoded corpus.",
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
    help="Replace a file that is there and is no report of bpe.",
)
@own_option(
    "sample_parts",
    kind="integer",
    minimum=1,
    metavar="N",
    help="Read at most N parts of an encoded corpus, evenly spread; the report says so.",
)
@own_option(
    "compare",
    metavar="FILE.json",
    several=True,
    help="Also show the comparison that bpe compare --output has written; repeatable.",
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
    """Write one HTML file that shows what PATH holds; a browser opens it from disk.

    PATH is a directory that bpe count, train, encode or run has made, a tokenizer file of any
    format that bpe convert knows, or a file that bpe compare --output has written. The page has the
    compression of every smaller vocabulary, the lengths and frequencies of tokens, scripts, ties,
    dead letters, speed, the manifests, and a box in which any text is shown as tokens. It loads
    nothing from elsewhere. The pictures need matplotlib (the extra pictures); without it there are
    tables in their place.
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
        lines = warning_lines(
            ["no pictures: they need matplotlib: pip install 'beam-bpe[pictures]'"]
        )
        click.echo("\n".join(lines))


def _tokenizer(ctx: click.Context, path: str) -> Tokenizer | None:
    """The tokenizer of a local file that the options say more of; None where they do not."""
    names = ("pretokenizer", "pattern", "normalizer", "never_split", "special_token")
    if not any(ctx.params[name] for name in names):
        return None
    return options.load_tokenizer(ctx, path)
