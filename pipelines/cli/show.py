"""``bpe show``: how a word merges, and which tokens there are."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from itertools import cycle
from typing import TYPE_CHECKING, Any

import click

from pipelines.cli import columns, options
from pipelines.cli.command import command
from pipelines.cli.summary import show_result
from pipelines.errors import InputError
from pipelines.option import Natural, Settings, option

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

    from bpe import Tokenizer
    from bpe.explain import MergeStep
    from bpe.training_report import CurvePoint, Training
    from pipelines.cli.layers import Values

    _Figures = dict[tuple[bytes, bytes], dict[str, int]]  # of a merge: its rank, its count

_COLOURS = ("cyan", "yellow", "green", "magenta")
_CUT_OUT = "it is a special or added token, cut out of the text"
_HEADS = ("vocabulary", "tokens", "tokens per word", "bytes per token")


@dataclass(frozen=True, kw_only=True)
class Wanted(Settings):
    """The parts of a tokenizer to show.

    Attributes:
        allow_special: Special token to recognize in each WORD, or all; repeatable.
        id: Instead of words, show the token with this id: its bytes, and the merge that makes it;
            repeatable.
        search: Like --id, for all tokens that contain TEXT; repeatable.
        curve: Instead of words, show how smaller vocabularies compress the training corpus (from
            training.json next to FILE).
    """

    allow_special: tuple[str, ...] = option((), metavar="TOKEN")
    id: tuple[Natural, ...] = option(())
    search: tuple[str, ...] = option((), metavar="TEXT")
    curve: bool = option(False, excludes=("id", "search"))


@command(
    *(options.VocabularyPath, options.FileSettings, Wanted, options.JsonResult),
)
@click.argument("tokenizer", metavar="FILE")
@click.argument("words", metavar="[WORD...]", nargs=-1)
def show(values: Values) -> None:
    r"""Show how a word merges, step by step, and its ids.

    One merge is shown per line, then the ids and bytes of the tokens. FILE is a tokenizer.json or
    its directory, a .tiktoken file, a .model file of SentencePiece, vocab.json with merges.txt next
    to it, or the name of a published vocabulary. The rank of a merge is its position in training;
    its count is shown if training.json is next to FILE. Merges of superwords, which cross
    pre-tokens, follow those of words. A space is shown as ␣, and a byte that is not valid UTF-8 on
    its own as \xNN.

    Example:
        bpe show model/tokenizer.json lowest ' the'
        bpe show model/tokenizer.json --id 270 --id 271
        bpe show model/tokenizer.json --search ing
        bpe show model --curve
        bpe show r50k_base.tiktoken --pretokenizer gpt2 lowest
    """
    from bpe.explain import common_prefix

    asked, tokenizer, words = values.settings(Wanted), values["tokenizer"], values["words"]
    of_tokens = bool(asked.id or asked.search)
    if bool(words) == (of_tokens or asked.curve):
        raise click.UsageError("give WORD..., or --id or --search, or --curve")
    if asked.curve:
        show_result(values, *_curve(tokenizer))
        return
    loaded = options.load_tokenizer(values, tokenizer).with_training(_training_of(tokenizer))
    for what in loaded.not_applied:
        click.echo(f"bpe: show: {tokenizer}: not applied: {what}", err=True)
    merges = _merges(loaded)
    if of_tokens:
        rows = _found_tokens(loaded, asked.id, [*map(_bytes_of, asked.search)], merges)
        show_result(values, rows, _token_lines(rows) or ["no token contains that"])
        return
    allowed = "all" if "all" in asked.allow_special else asked.allow_special
    explained = [_explain(loaded, _bytes_of(word), merges, allowed=allowed) for word in words]
    root = common_prefix(*(word["tokens"] for word in explained))
    texts = [_as_text(word) for word in explained]
    more: dict[str, Any] = {"not_applied": loaded.not_applied}
    if len(words) > 1:
        more = {"common_root": root, **more}
        texts.append(f"all begin with: {' '.join(root) or '(no token in common)'}")
    show_result(values, [word | more for word in explained], ["\n\n".join(texts)])


def _bytes_of(argument: str) -> bytes:
    """Return the bytes of an argument, in which Python represents invalid UTF-8 by surrogates."""
    return argument.encode("utf-8", "surrogateescape")


def _training_of(tokenizer: str) -> Training | None:
    from bpe.errors import BpeError
    from pipelines.tokenizer_files import read_training

    try:
        return read_training(tokenizer)
    except BpeError as error:
        click.echo(f"bpe: warning: no counts shown: {error}", err=True)
        return None


def _merges(tokenizer: Tokenizer) -> dict[str, _Figures]:
    """Return the rank, and if known the count, of each merge of words and of superwords."""
    parts, training = tokenizer.parts, tokenizer.training
    figures = {
        kind: {pair: {"rank": rank} for pair, rank in parts.ranks(merges).items()}
        for kind, merges in (("merge", parts.merges), ("superword", parts.superwords))
    }
    learnt = [] if training is None else [("merge", training.first_rank, training.merges)]
    if training is not None and training.superwords is not None:
        learnt.append(("superword", 0, training.superwords.merges))
    for kind, first, merges in learnt:
        for rank, merge in enumerate(merges, first):
            known = figures[kind].get((merge.left, merge.right), {})
            if known.get("rank") == rank:
                known["count"] = merge.count
    return figures


def _explain(
    tokenizer: Tokenizer,
    word: bytes,
    merges: Mapping[str, _Figures],
    *,
    allowed: Collection[str] | str,
) -> dict[str, Any]:
    """Return the steps of each pre-token of a word, its ids and its tokens, as JSON values.

    Ids are None where a character has none and there is no unknown token.
    """
    from bpe.errors import UnknownCharacterError
    from bpe.explain import MergeStep, superword_runs, visible

    ids = None
    with suppress(UnknownCharacterError):
        ids = tokenizer.encode(word, allowed_special=allowed)
    pretokens: list[dict[str, Any]] = []
    tokens: list[bytes] = []
    joinable: list[bytes | None] = []  # None: no superword crosses a token that is cut out
    for pretoken, cut_out in _cut(tokenizer, word, allowed):
        merged = [MergeStep((pretoken,), None)] if cut_out else tokenizer.explain(pretoken)
        tokens += merged[-1].symbols
        joinable.append(None if cut_out else pretoken)
        shown = _shown_steps(merged, merges["merge"])
        unmerged = _CUT_OUT if cut_out else _unmerged(tokenizer, pretoken, merged)
        pretokens.append({"pretoken": visible(pretoken), "steps": shown, "unmerged": unmerged})
    if ids is not None:
        tokens = [*map(tokenizer.token_bytes, ids)]
    superwords = [
        {"steps": _shown_steps(steps, merges["superword"])}
        for steps in map(tokenizer.explain_superwords, superword_runs(tokenizer.parts, joinable))
        if len(steps) > 1
    ]
    return {
        "word": visible(word),
        "pretokens": pretokens,
        **({"superwords": superwords} if tokenizer.superwords else {}),
        "ids": ids,
        "tokens": [*map(visible, tokens)],
        "bytes": [token.hex(" ") for token in tokens],
    }


def _shown_steps(steps: Iterable[MergeStep], merges: _Figures) -> list[dict[str, Any]]:
    """Steps as JSON values, each merge with its rank and count."""
    from bpe.explain import visible

    shown: list[dict[str, Any]] = []
    for symbols, merge in steps:
        shown.append({"symbols": [*map(visible, symbols)]})
        if merge is not None:
            left, right = map(visible, merge)
            shown[-1] |= {"left": left, "right": right, **merges[merge]}
    return shown


def _cut(
    tokenizer: Tokenizer, word: bytes, allowed: Collection[str] | str
) -> Iterator[tuple[bytes, bool]]:
    """Yield the pre-tokens of a word and the tokens cut out of it, and whether one is such."""
    import pyarrow as pa

    from bpe.segments import TextCutter

    special = tokenizer.special_tokens.keys() if allowed == "all" else allowed
    cut = {name.encode(): number for number, name in enumerate((*tokenizer.added_tokens, *special))}
    cutter = TextCutter(tokenizer.pretokenizer, flags=tokenizer.token_flags)
    segments = cutter.segments(pa.array([word]), cut)
    if cutter.is_native:
        segments = segments.pretokens(tokenizer.pretokenizer)
    for text, number in zip(segments.data.to_pylist(), segments.what.tolist(), strict=True):
        yield text, number >= 0


def _unmerged(tokenizer: Tokenizer, pretoken: bytes, steps: Sequence[MergeStep]) -> str | None:
    """Return the reason why a pre-token became a token without merges; None if it did not."""
    from bpe import WordPiece

    if len(steps) < 2 or any(step.merge for step in steps):
        return None
    if isinstance(tokenizer.model, WordPiece):
        return "WordPiece takes the longest tokens, it merges nothing"
    if tokenizer.pretokenizer.is_never_split(pretoken):
        return "it is never split"
    return "this tokenizer looks words up whole before it merges"


def _as_text(word: dict[str, Any]) -> str:
    """Return the steps in lines with their merges, then tokens and ids."""
    lines = [click.style(word["word"] or "(nothing)", bold=True)]
    for pretoken in word["pretokens"]:
        if len(word["pretokens"]) > 1:
            lines.append(f"  pre-token {pretoken['pretoken']}")
        lines += _step_lines(pretoken["steps"])
        if pretoken["unmerged"]:
            lines.append(f"    (no merges: {pretoken['unmerged']})")
    for run in word.get("superwords", ()):
        lines.append("  superwords")
        lines += _step_lines(run["steps"])
    known = word["ids"] is not None
    ids = word["ids"] if known else ["none"] * len(word["tokens"])
    cells = [("id", "token", "bytes")]
    cells += zip(map(str, ids), word["tokens"], word["bytes"], strict=True)
    if word["tokens"]:
        table = columns.lines(cells, right=[0])
        lines.append(f"  {table[0]}")
        coloured = zip(table[1:], cycle(_COLOURS), strict=False)
        lines += (f"  {click.style(row, fg=colour)}" for row, colour in coloured)
    if not known:
        lines.append("  (a character has no token)")
    return "\n".join(lines)


def _found_tokens(
    tokenizer: Tokenizer,
    ids: Iterable[int],
    texts: Sequence[bytes],
    merges: Mapping[str, _Figures],
) -> list[dict[str, Any]]:
    """Return the tokens of these ids, then those that contain one of the texts, as JSON values."""
    from bpe.explain import visible

    found = [
        id_
        for id_, token in enumerate(tokenizer.tokens)
        if token is not None and any(text in token for text in texts)
    ]
    of = tokenizer.token_bytes
    made = {
        result: (kind, (of(left), of(right)))
        for kind, some in (("superword", tokenizer.superwords), ("merge", tokenizer.merges))
        for left, right, result in reversed(some)
    }
    kinds = dict.fromkeys(tokenizer.added_tokens.values(), "added token")
    kinds |= dict.fromkeys(tokenizer.special_tokens.values(), "special token")
    rows = []
    for id_ in dict.fromkeys((*ids, *found)):
        token = of(id_)
        row: dict[str, Any] = {"id": id_, "token": visible(token), "bytes": token.hex(" ")}
        if id_ in kinds:
            row["kind"] = kinds[id_]
        elif id_ in made:
            kind, pair = made[id_]
            left, right = map(visible, pair)
            row |= {"kind": kind, "left": left, "right": right, **merges[kind][pair]}
        else:
            row["kind"] = "symbol" if tokenizer.model.is_symbol(token) else "token"
        rows.append(row)
    return rows


def _token_lines(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    if not rows:
        return []
    cells = [("id", "token", "bytes", "made of")]
    for row in rows:
        made = _merge_text(row) if "rank" in row else row["kind"]
        cells.append((str(row["id"]), row["token"], row["bytes"], made))
    return columns.lines(cells, right=[0])


def _merge_text(merge: Mapping[str, Any]) -> str:
    count = f", count {merge['count']:,}" if "count" in merge else ""
    kind = "superword " if merge.get("kind") == "superword" else ""
    return f"{merge['left']} + {merge['right']}  ({kind}rank {merge['rank']:,}{count})"


def _step_lines(steps: list[dict[str, Any]]) -> list[str]:
    """Return the steps as lines, in which the symbols that a step has made are marked."""
    from bpe.explain import common_prefix

    cells = []
    before: list[str] = []
    for step in steps:
        symbols = list(step["symbols"])
        if before:
            begin = len(common_prefix(before, symbols))
            end = begin + max(1, len(symbols) - len(before))
            symbols[begin:end] = [
                click.style(symbol, fg="green", bold=True) for symbol in symbols[begin:end]
            ]
        merge = f"  {_merge_text(step)}" if "rank" in step else ""
        cells.append((" ".join(symbols), merge))
        before = step["symbols"]
    return [f"    {line}" for line in columns.lines(cells)]


def _curve(tokenizer: str) -> tuple[list[dict[str, Any]], list[str]]:
    """Return what smaller vocabularies do to the corpus: all as JSON values, some as a table.

    Args:
        tokenizer: the file in whose folder ``training.json`` is.

    Raises:
        InputError: there is no ``training.json``.
        TokenizerFileError: it is damaged.
    """
    from pipelines.tokenizer_files import read_training, training_file

    training = read_training(tokenizer)
    if training is None:
        file = training_file(tokenizer)
        raise InputError(f"{file} is missing: the curve is in it; bpe train writes it")
    rows = training.curve()
    cells = [_HEADS, *map(_cells, _some(rows))]
    return [row._asdict() for row in rows], columns.lines(cells, right=range(len(_HEADS)))


def _some(rows: list[CurvePoint]) -> list[CurvePoint]:
    """Return the first, the last, and 1, 2 and 5 times each power of ten between them."""
    first, last = rows[0].vocab_size, rows[-1].vocab_size
    powers = range(len(str(last)))
    shown = {first, last, *(step * 10**power for power in powers for step in (1, 2, 5))}
    return [row for row in rows if row.vocab_size in shown]


def _cells(row: CurvePoint) -> tuple[str, ...]:
    tokens_per_word, bytes_per_token = f"{row.tokens_per_word:.3f}", f"{row.bytes_per_token:.3f}"
    return (f"{row.vocab_size:,}", f"{row.tokens:,}", tokens_per_word, bytes_per_token)
