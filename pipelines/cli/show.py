"""``bpe show``: how a word merges."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from pipelines.cli import options
from pipelines.cli.command import Command, WholeNumber
from pipelines.cli.curve import show_curve, training_file
from pipelines.cli.report import show_json
from pipelines.cli.steps import Explainer, as_text, common_root, takes_colour
from pipelines.cli.tokenizer_options import load_tokenizer, tokenizer_options

if TYPE_CHECKING:
    from bpe import Tokenizer
    from bpe.training import Training


@click.command(
    cls=Command,
    short_help="Show how a word merges, step by step, and its ids.",
    example="""
bpe show model/tokenizer.json lowest ' the'
bpe show model/tokenizer.json lowest --picture lowest.svg
bpe show model --curve
bpe show r50k_base.tiktoken --pretokenizer gpt2 lowest
""",
)
@click.argument("tokenizer", metavar="FILE")
@click.argument("words", metavar="WORD...", nargs=-1)
@tokenizer_options()
@click.option(
    "--picture",
    metavar="FILE.svg",
    help="Also draw the merges as trees, into an .svg or .png (which needs matplotlib).",
)
@click.option(
    "--overwrite/--no-overwrite",
    default=False,
    show_default=False,
    help="Draw into a file that is there and was not drawn by bpe.",
)
@click.option(
    "--curve",
    is_flag=True,
    help="Show, in place of words, how vocabularies of smaller sizes compress the corpus that FILE "
    "was trained on: from training.json beside it.",
)
@click.option(
    "--size",
    "sizes",
    type=WholeNumber(1),
    multiple=True,
    metavar="N",
    help="The same for this vocabulary size; repeatable.",
)
@options.json_option()
@options.traceback_option()
@click.pass_context
def show(
    ctx: click.Context,
    /,
    tokenizer: str,
    words: tuple[str, ...],
    picture: str | None,
    overwrite: bool,
    curve: bool,
    sizes: tuple[int, ...],
    **_: Any,
) -> None:
    r"""Show how each WORD merges into tokens, one merge a line, and its ids.

    FILE is a tokenizer.json, a .tiktoken file, or vocab.json with merges.txt beside it. The rank
    of a merge is its place in training; its count stands beside it where training.json does. A
    space is shown as ␣, and a byte that is no text by itself as \xNN. Of several words, the tokens
    that all begin with are named at the end.
    """
    if curve or sizes:
        if words or picture is not None:
            raise click.UsageError("--curve and --size show no words: leave one out", ctx)
        show_curve(tokenizer, sizes=sizes, as_json=ctx.params["json"])
        return
    if not words:
        raise click.UsageError("Missing argument 'WORD...'; or give --curve.", ctx)
    if picture is not None:
        _refuse_to_lose(picture, overwrite=overwrite)
    loaded = load_tokenizer(ctx, tokenizer)
    loaded.training = _training_beside(tokenizer)
    for what in loaded.not_applied:
        click.echo(f"bpe: show: {tokenizer}: not applied: {what}", err=True)
    explainer = Explainer(loaded, loaded.training)
    # An argument may hold any bytes; Python hides what is not UTF-8 in lone surrogates.
    given = [word.encode("utf-8", "surrogateescape") for word in words]
    found = [explainer.word(word) for word in given]
    root = common_root(found)
    if picture is not None:
        _draw(loaded, given, picture)
    if ctx.params["json"]:
        common = {"common_root": root} if len(found) > 1 else {}
        show_json([{**word, **common, "not_applied": loaded.not_applied} for word in found])
        return
    shown = [as_text(word) for word in found]
    if len(found) > 1:
        shown.append(f"all begin with: {' '.join(root) or '(no token in common)'}")
    click.echo("\n\n".join(shown), color=takes_colour())


def _refuse_to_lose(picture: str, *, overwrite: bool) -> None:
    from pipelines.report.pictures import is_picture

    if Path(picture).exists() and not is_picture(picture) and not overwrite:
        raise click.ClickException(
            f"{picture} is there already, and was not drawn by bpe: give --overwrite to replace it"
        )


def _draw(tokenizer: Tokenizer, words: list[bytes], picture: str) -> None:
    from pipelines.report.pictures import draw

    draw(tokenizer, words, picture)
    click.echo(f"bpe: show: wrote {picture}", err=True)


def _training_beside(tokenizer: str) -> Training | None:
    from bpe.errors import BpeError
    from bpe.training import Training

    beside = training_file(tokenizer)
    if not beside.is_file():
        return None
    try:
        return Training.load(beside)
    except BpeError as error:
        click.echo(f"bpe: warning: no counts shown: {error}", err=True)
        return None
