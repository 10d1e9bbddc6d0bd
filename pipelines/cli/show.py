"""``bpe show``: how a word merges."""

from __future__ import annotations

from contextlib import suppress
from itertools import cycle, takewhile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from pipelines.cli import options
from pipelines.cli.command import Command, own_option
from pipelines.cli.summary import show_json, takes_colour
from pipelines.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from bpe import Tokenizer
    from bpe.explain import MergeStep
    from bpe.training_report import CurvePoint, Training

_COLOURS = ("cyan", "yellow", "green", "magenta")
_STEPS = (1, 2, 5)  # of each power of ten
_HEADS = ("vocabulary", "tokens", "tokens per word", "bytes per token")


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
@options.tokenizer_options()
@own_option(
    "picture",
    metavar="FILE.svg",
    help="Also draw the merges as trees, in an .svg or .png file (.png needs matplotlib).",
)
@own_option(
    "overwrite",
    kind="flag",
    default=False,
    help="Overwrite FILE.svg even if bpe did not draw it.",
)
@own_option(
    "curve",
    kind="flag",
    default=False,
    help="Instead of words, show how smaller vocabularies compress the training corpus (from "
    "training.json next to FILE).",
)
@own_option(
    "size",
    kind="integer",
    minimum=1,
    several=True,
    metavar="N",
    help="Like --curve, for this vocabulary size; repeatable.",
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
    size: tuple[int, ...],
    **_: Any,
) -> None:
    r"""Show how each WORD merges into tokens, one merge per line, and its ids.

    FILE is a tokenizer.json, a .tiktoken file, or vocab.json with merges.txt next to it. The rank
    of a merge is its position in training; its count is shown if training.json is next to FILE. A
    space is shown as ␣, and a byte that is not valid UTF-8 on its own as \xNN. For several words,
    the common leading tokens are printed last.
    """
    if curve or size:
        if words or picture is not None:
            raise click.UsageError("--curve and --size show no words: leave one out", ctx)
        _show_curve(tokenizer, sizes=size, as_json=ctx.params["json"])
        return
    if not words:
        raise click.UsageError("Missing argument 'WORD...'; or give --curve.", ctx)
    if picture is not None:
        _refuse_to_lose(picture, overwrite=overwrite)
    loaded = options.load_tokenizer(ctx, tokenizer).with_training(_training_beside(tokenizer))
    for what in loaded.not_applied:
        click.echo(f"bpe: show: {tokenizer}: not applied: {what}", err=True)
    merges = _merges(loaded)
    # An argument may hold any bytes; Python hides what is not UTF-8 in lone surrogates.
    given = [word.encode("utf-8", "surrogateescape") for word in words]
    explained = [_explain(loaded, word, merges) for word in given]
    root = _common_prefix(*(word["tokens"] for word in explained))
    if picture is not None:
        from pipelines.report.pictures import draw

        draw(loaded, given, picture)
        click.echo(f"bpe: show: wrote {picture}", err=True)
    if ctx.params["json"]:
        common = {"common_root": root} if len(words) > 1 else {}
        show_json([{**word, **common, "not_applied": loaded.not_applied} for word in explained])
        return
    texts = [_as_text(word) for word in explained]
    if len(words) > 1:
        texts.append(f"all begin with: {' '.join(root) or '(no token in common)'}")
    click.echo("\n\n".join(texts), color=takes_colour())


def _refuse_to_lose(picture: str, *, overwrite: bool) -> None:
    from pipelines.report.pictures import is_picture

    if Path(picture).exists() and not is_picture(picture) and not overwrite:
        raise click.ClickException(
            f"{picture} is there already, and was not drawn by bpe: give --overwrite to replace it"
        )


def _training_beside(tokenizer: str) -> Training | None:
    from bpe.errors import BpeError
    from bpe.training_report import Training

    beside = options.training_file(tokenizer)
    if not beside.is_file():
        return None
    try:
        return Training.load(beside)
    except BpeError as error:
        click.echo(f"bpe: warning: no counts shown: {error}", err=True)
        return None


def _common_prefix(*lists: list[str]) -> list[str]:
    same = takewhile(lambda symbols: len(set(symbols)) == 1, zip(*lists, strict=False))
    return [symbols[0] for symbols in same]


def _merges(tokenizer: Tokenizer) -> dict[tuple[bytes, bytes], dict[str, int]]:
    """The rank of each merge, and its count where the training is known."""
    of, training = tokenizer.token_bytes, tokenizer.training
    merges = {
        (of(left), of(right)): {"rank": rank}
        for rank, (left, right, _) in enumerate(tokenizer.merges)
    }
    for rank, merge in enumerate(training.merges if training is not None else ()):
        known = merges.get((merge.left, merge.right))
        if known is not None and known["rank"] == rank:
            known["count"] = merge.count
    return merges


def _explain(
    tokenizer: Tokenizer, word: bytes, merges: Mapping[tuple[bytes, bytes], Mapping[str, int]]
) -> dict[str, Any]:
    """The steps of each pre-token of a word, its ids and its tokens, as JSON values.

    Ids are None where a character has none and there is no unknown token.
    """
    from bpe.errors import UnknownCharacterError
    from bpe.explain import visible

    pretokens = []
    tokens: list[bytes] = []
    for pretoken in tokenizer.pretokenizer.split(word):
        steps = tokenizer.explain(pretoken)
        tokens += steps[-1].symbols
        shown: list[dict[str, Any]] = []
        for symbols, merge in steps:
            shown.append({"symbols": [*map(visible, symbols)]})
            if merge is not None:
                left, right = map(visible, merge)
                shown[-1] |= {"left": left, "right": right, **merges[merge]}
        unmerged = _unmerged(tokenizer, pretoken, steps)
        pretokens.append({"pretoken": visible(pretoken), "steps": shown, "unmerged": unmerged})
    ids = None
    with suppress(UnknownCharacterError):
        ids = tokenizer.encode(word)
        tokens = [*map(tokenizer.token_bytes, ids)]
    return {
        "word": visible(word),
        "pretokens": pretokens,
        "ids": ids,
        "tokens": [*map(visible, tokens)],
    }


def _unmerged(tokenizer: Tokenizer, pretoken: bytes, steps: Sequence[MergeStep]) -> str | None:
    """Why a pre-token became a token without merges; None where it did not."""
    from bpe import WordPiece

    if len(steps) < 2 or any(step.merge for step in steps):
        return None
    if isinstance(tokenizer.model, WordPiece):
        return "WordPiece takes the longest tokens, it merges nothing"
    if tokenizer.pretokenizer.is_never_split(pretoken):
        return "it is never split"
    return "this tokenizer looks words up whole before it merges"


def _as_text(word: dict[str, Any]) -> str:
    """The steps one below the other, what was merged beside them, tokens and ids at the end."""
    lines = [click.style(word["word"] or "(nothing)", bold=True)]
    for pretoken in word["pretokens"]:
        if len(word["pretokens"]) > 1:
            lines.append(f"  pre-token {pretoken['pretoken']}")
        lines += _step_lines(pretoken["steps"])
        if pretoken["unmerged"]:
            lines.append(f"    (no merges: {pretoken['unmerged']})")
    known = word["ids"] is not None
    ids = " ".join(map(str, word["ids"])) if known else "none: a character has no token"
    tokens = " ".join(map(_coloured, word["tokens"], cycle(_COLOURS)))
    return "\n".join([*lines, f"  tokens: {tokens}".rstrip(), f"  ids:    {ids}".rstrip()])


def _coloured(token: str, colour: str) -> str:
    return click.style(token, fg=colour)


def _step_lines(steps: list[dict[str, Any]]) -> list[str]:
    from bpe.explain import columns

    widths = [columns(" ".join(step["symbols"])) for step in steps]
    lines = []
    before: list[str] = []
    for step, width in zip(steps, widths, strict=True):
        symbols = list(step["symbols"])
        if before:  # mark what the step has made
            begin = len(_common_prefix(before, symbols))
            end = begin + max(1, len(symbols) - len(before))
            symbols[begin:end] = [
                click.style(symbol, fg="green", bold=True) for symbol in symbols[begin:end]
            ]
        merge = ""
        if "rank" in step:
            merge = f"{step['left']} + {step['right']}  (rank {step['rank']:,}"
            merge += f", count {step['count']:,})" if "count" in step else ")"
        lines.append(f"    {' '.join(symbols)}{' ' * (max(widths) - width)}    {merge}".rstrip())
        before = step["symbols"]
    return lines


def _show_curve(tokenizer: str, *, sizes: tuple[int, ...], as_json: bool) -> None:
    """Print what vocabularies of these sizes do to the corpus they were trained on.

    Args:
        tokenizer: the file beside which ``training.json`` is.
        sizes: vocabulary sizes; none for all of them as JSON, and some of them as text.
        as_json: print a list of objects.

    Raises:
        InputError: there is no ``training.json``.
        TokenizerFileError: it is damaged.
    """
    from bpe.training_report import Training

    file = options.training_file(tokenizer)
    if not file.is_file():
        raise InputError(f"{file} is missing: the curve is in it; bpe train writes it")
    training = Training.load(file)
    rows = training.curve(sizes or None)
    if as_json:
        show_json([row._asdict() for row in rows])
        return
    cells = [_HEADS, *map(_cells, rows if sizes else _some(rows))]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    lines = ["  ".join(map(str.rjust, line, widths)) for line in cells]
    click.echo("\n".join([*lines, *_notes(training, sizes, rows)]))


def _some(rows: list[CurvePoint]) -> list[CurvePoint]:
    """The first, the last, and 1, 2 and 5 times each power of ten between them."""
    places = {0, len(rows) - 1}
    power = 1
    while power <= rows[-1].vocab_size:
        places |= {step * power - rows[0].vocab_size for step in _STEPS}
        power *= 10
    return [rows[place] for place in sorted(places) if 0 <= place < len(rows)]


def _cells(row: CurvePoint) -> tuple[str, ...]:
    return (
        f"{row.vocab_size:,}",
        f"{row.tokens:,}",
        f"{row.tokens_per_word:.3f}",
        f"{row.bytes_per_token:.3f}",
    )


def _notes(training: Training, sizes: tuple[int, ...], rows: list[CurvePoint]) -> list[str]:
    """What became of sizes that no training gives."""
    notes = []
    for size, row in zip(sizes, rows, strict=False):
        if size < row.vocab_size:
            notes.append(f"{size:,}: special tokens and alphabet alone are {row.vocab_size:,}")
        elif size > row.vocab_size:
            notes.append(f"{size:,}: training ended at {row.vocab_size:,}, {training.stopped}")
    return notes
