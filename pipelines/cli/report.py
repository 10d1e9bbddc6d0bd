"""``bpe report``: a page to look at."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

import click

from pipelines.cli import options
from pipelines.cli.command import command
from pipelines.cli.loading import loading
from pipelines.cli.summary import near, show_result, titled, warning_lines
from pipelines.option import Settings, option
from pipelines.progress import size_text

if TYPE_CHECKING:
    from bpe import Tokenizer
    from pipelines.cli.layers import Values


@dataclass(frozen=True, kw_only=True)
class Page(Settings):
    """The page and its sources.

    Attributes:
        output: File to write.
        overwrite: Overwrite FILE.html if it is there already.
        comparisons: Also show the comparison written by bpe compare --output; repeatable.
    """

    output: str | None = option(
        None, metavar="FILE.html", default_is="report.html in the directory"
    )
    overwrite: bool = option(False)
    comparisons: tuple[str, ...] = option((), name="compare", metavar="FILE.json")


@command(
    *(Page, options.FileSettings, options.Messages),
)
@click.argument("path", metavar="PATH")
def report(values: Values) -> None:
    """Write an HTML report on a tokenizer, counts, ids or an export.

    The report is one file, to open in a browser. PATH is an output directory of bpe count, train,
    encode, export or run, a tokenizer file in any format that bpe convert reads, or a file written
    by bpe compare --output. The report loads nothing over the network and runs no script. Pictures
    need matplotlib (the extra pictures); without it, the report has tables instead.

    Example:
        bpe report model
        bpe report ids --output ids.html
        bpe report model --compare compared.json
        bpe report o200k_base.tiktoken --pretokenizer o200k --output o200k.html
    """
    with loading():
        from pipelines.report import report as write_report

    summary = write_report(
        values["path"],
        tokenizer=_tokenizer(values, values["path"]),
        progress=options.progress(values),
        **asdict(values.settings(Page)),
    )
    size = size_text(summary.bytes)
    lines = titled("report", [f"{near(summary.output)}: {size}; open it in a browser"])
    if not summary.pictures:
        lines += warning_lines(["no pictures: they need matplotlib: pip install matplotlib"])
    show_result(values, asdict(summary), lines)


def _tokenizer(values: Values, path: str) -> Tokenizer | None:
    """Return the tokenizer of a file with the cut that options give; None without such options."""
    if not any(values[name] for name in (*options.OF_CUT, "special_token")):
        return None
    return options.load_tokenizer(values, path)
