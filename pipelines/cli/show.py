"""``bpe show``: how a word merges."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from pipelines.cli import options
from pipelines.cli.command import Command, choose
from pipelines.cli.report import show_json

if TYPE_CHECKING:
    from bpe import Tokenizer
    from bpe.training import Training

SPACE = "␣"


@click.command(
    cls=Command,
    short_help="Show how a word merges, step by step, and its ids.",
    example="""
bpe show model/tokenizer.json lowest ' the'
bpe show r50k_base.tiktoken --pretokenizer gpt2 lowest
""",
)
@click.argument("tokenizer", metavar="FILE")
@click.argument("words", metavar="WORD...", nargs=-1, required=True)
@options.cut_options(default=None)
@options.json_option()
@options.traceback_option()
@click.pass_context
def show(
    ctx: click.Context,
    /,
    tokenizer: str,
    words: tuple[str, ...],
    pretokenizer: str | None,
    pattern: str | None,
    **_: Any,
) -> None:
    r"""Show how each WORD merges into tokens, one merge a line, and its ids.

    FILE is a tokenizer.json, a .tiktoken file, or vocab.json with merges.txt beside it. The rank
    of a merge is its place in training; its count stands beside it where training.json does. A
    space is shown as ␣, and a byte that is no text by itself as \xNN.
    """
    import bpe

    choose(ctx, "pretokenizer", "pattern")
    loaded = bpe.Tokenizer.load(tokenizer, pretokenizer=pretokenizer, pattern=pattern)
    ranks = {
        (loaded.token_bytes(left), loaded.token_bytes(right)): rank
        for rank, (left, right, _) in enumerate(loaded.merges)
    }
    training = _training_beside(Path(tokenizer))
    found = [_explained(loaded, word, ranks=ranks, training=training) for word in words]
    if ctx.params["json"]:
        show_json(found)
        return
    click.echo("\n\n".join(_as_text(word) for word in found))


def _explained(
    tokenizer: Tokenizer,
    word: str,
    *,
    ranks: dict[tuple[bytes, bytes], int],
    training: Training | None,
) -> dict[str, Any]:
    # An argument may hold any bytes; Python hides what is not UTF-8 in lone surrogates.
    data = word.encode("utf-8", "surrogateescape")
    pretokens = []
    for pretoken in tokenizer.pretokenizer.split(data):
        steps = []
        for symbols, merge in tokenizer.explain(pretoken):
            step: dict[str, Any] = {"symbols": [_visible(symbol) for symbol in symbols]}
            if merge is not None:
                rank = ranks[merge]
                step |= {"left": _visible(merge[0]), "right": _visible(merge[1]), "rank": rank}
                if training is not None and rank < len(training.merges):
                    trained = training.merges[rank]
                    if (trained.left, trained.right) == merge:
                        step["count"] = trained.count
            steps.append(step)
        pretokens.append({"pretoken": _visible(pretoken), "steps": steps})
    ids = tokenizer.encode(data)
    return {
        "word": _visible(data),
        "pretokens": pretokens,
        "ids": ids,
        "tokens": [_visible(tokenizer.token_bytes(one)) for one in ids],
    }


def _as_text(word: dict[str, Any]) -> str:
    lines = [word["word"] or "(nothing)"]
    several = len(word["pretokens"]) > 1
    for pretoken in word["pretokens"]:
        if several:
            lines.append(f"  pre-token {pretoken['pretoken']}")
        steps = pretoken["steps"]
        shown = [" ".join(step["symbols"]) for step in steps]
        width = max(len(one) for one in shown)
        for text, step in zip(shown, steps, strict=True):
            merge = ""
            if "rank" in step:
                merge = f"{step['left']} + {step['right']}  (rank {step['rank']:,}"
                merge += f", count {step['count']:,})" if "count" in step else ")"
            lines.append(f"    {text:{width}}    {merge}".rstrip())
    ids = " ".join(str(one) for one in word["ids"])
    lines.append(f"  tokens: {' '.join(word['tokens'])}")
    lines.append(f"  ids:    {ids}")
    return "\n".join(lines)


def _training_beside(path: Path) -> Training | None:
    from bpe.errors import BpeError
    from bpe.training import Training

    beside = (path if path.is_dir() else path.parent) / "training.json"
    if not beside.is_file():
        return None
    try:
        return Training.load(beside)
    except BpeError as error:
        click.echo(f"bpe: warning: no counts shown: {error}", err=True)
        return None


def _visible(data: bytes) -> str:
    text = data.decode("utf-8", "surrogateescape")
    return "".join(_visible_character(char) for char in text)


def _visible_character(char: str) -> str:
    if char == " ":
        return SPACE
    if "\udc80" <= char <= "\udcff":
        return f"\\x{ord(char) - 0xDC00:02x}"
    return char if char.isprintable() else repr(char)[1:-1]
