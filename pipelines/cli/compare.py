"""``bpe compare``: two tokenizers, or several side by side on one corpus."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import click

from pipelines.cli import columns, options
from pipelines.cli.command import command
from pipelines.cli.loading import loading
from pipelines.cli.summary import show_result
from pipelines.option import Natural, Settings, option
from pipelines.progress import many, printable, size_text
from pipelines.settings import Execution, InputSettings

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Sequence

    from pipelines.cli.layers import Values
    from pipelines.compare.tokenizers import ComparedTokenizer

_GROUPS = 30
_EXAMPLES = 10
_IN_ALL = (
    *("tokenizer", "tokens", "to first", "bytes/token", "tokens/document", "single bytes"),
    *("unknown", "vocabulary used", "same tokens", "same documents"),
)


@dataclass(frozen=True, kw_only=True)
class Comparison(Settings):
    """Input and output of a comparison.

    Attributes:
        counts: Instead of --input: counts (from bpe count) on which to measure the bytes per token
            of two tokenizers.
        by: Also show each value of this field or column (jsonl, parquet), such as the language,
            separately. COLUMN:TYPE sets the type. file: show each file.
        examples: Number of pieces of text with the greatest difference to show. Without --input:
            number of tokens and merges of each kind (--json lists all). 0: none.
        output: Write the result as JSON, of which bpe report makes a page; it replaces FILE.
    """

    counts: str | None = option(None, excludes=("input",), metavar="DIR")
    by: str | None = option(None, needs="input", metavar="COLUMN[:TYPE]")
    examples: Natural = option(20, maximum=1000)
    output: str | None = option(None, needs="input", metavar="FILE.json")


@command(
    *(InputSettings, Execution, Comparison, options.Config, options.Messages),
    changes={"input": {"required": False}},
)
@click.argument("tokenizers", metavar="TOKENIZER...", nargs=-1)
def compare(values: Values) -> None:
    """Compare two tokenizers, or several on a corpus.

    The first is the baseline. A TOKENIZER is a tokenizer.json or a directory with one, a .tiktoken
    file, a .model file of SentencePiece, vocab.json with merges.txt next to it, or the name of a
    published vocabulary. Append :PRETOKENIZER if the file does not record one, and prepend NAME= to
    name it in the result: small=mine.tiktoken:cl100k.

    Without --input, the result is what changed from the first TOKENIZER to the second: tokens
    gained and lost, merges moved. Tokens and merges are compared by their bytes, not by their ids.
    A merge has moved if its rank among the common merges differs. With --counts, both tokenizers
    encode the counted pre-tokens; their own pre-tokenizers are not used.

    With --input, each TOKENIZER encodes the corpus as bpe encode does, but no ids are written. The
    result also lists the pieces of text for which the tokenizers' numbers of tokens differ most,
    added up over the corpus.

    Example:
        bpe compare old/tokenizer.json new/tokenizer.json
        bpe compare old/tokenizer.json new/tokenizer.json --counts counts
        bpe compare model/tokenizer.json cl100k_base.tiktoken --input 'corpus/*.jsonl' --by lang
        bpe compare old=a.json new=b.json mine.tiktoken:cl100k --input corpus --output compared.json
    """
    with loading():
        from pipelines.compare.tokenizers import parse_tokenizers

    files = parse_tokenizers(values["tokenizers"])
    if not values["input"]:
        _compare_two(values, files)
        return
    with loading():
        from pipelines.compare import job

    inputs, execution = values.settings(InputSettings), values.settings(Execution)
    result = job.compare(
        inputs=inputs,
        tokenizers=files,
        by=values["by"],
        examples=values["examples"],
        output=values["output"],
        execution=execution,
        progress=options.progress(values),
    )
    show_result(values, result, [_as_text(result)])


def _compare_two(values: Values, files: tuple[ComparedTokenizer, ...]) -> None:
    from pipelines.compare.two import compare_two

    facts = compare_two(files, counts=values["counts"])
    lines = [*_changes(facts, values["examples"]), *_fit(facts["on_counts"])]
    show_result(values, facts, lines)


def _changes(facts: dict[str, Any], limit: int) -> list[str]:
    """Return the changes, with at most ``limit`` tokens and merges of each kind."""
    lines = [f"{'tokens':10}{facts['old']['tokens']:,} → {facts['new']['tokens']:,}"]
    if facts["same"]:
        return [*lines, f"{'':10}nothing differs"]
    merges = facts["merges"]
    moved = [
        f"{one['left']} {one['right']} ({one['old_rank']:,} → {one['new_rank']:,})"
        for one in merges["moved"]
    ]
    return [
        *lines,
        f"{'gained':10}{_listed(facts['gained'], limit, ' ')}",
        f"{'lost':10}{_listed(facts['lost'], limit, ' ')}",
        f"{'ids':10}{facts['renumbered']:,} of the tokens of both have another id",
        (
            f"{'merges':10}{merges['kept']:,} in both, {len(merges['gained']):,} gained, "
            f"{len(merges['lost']):,} lost"
        ),
        f"{'moved':10}{_listed(moved, limit, ', ')}",
        *(f"{name}: {mine} → {its}" for name, (mine, its) in facts["settings"].items()),
    ]


def _listed(texts: list[str], limit: int, between: str) -> str:
    shown = between.join(texts[:limit])
    more = f"{between}… and {len(texts) - limit:,} more" if len(texts) > limit else ""
    return f"{len(texts):,}" + (f": {shown}{more}" if shown else "")


def _fit(fits: dict[str, dict[str, Any]] | None) -> list[str]:
    if fits is None:
        return []
    old, new = fits["old"], fits["new"]
    if old["bytes_per_token"] is None or new["bytes_per_token"] is None:
        return [f"{'fit':10}the counts hold nothing"]
    change = new["tokens"] / old["tokens"] - 1
    figures = f"{old['bytes_per_token']:.3f} → {new['bytes_per_token']:.3f}"
    tokens = f"{old['tokens']:,} → {new['tokens']:,} tokens, {change:+.1%}"
    return [f"{'fit':10}{figures} bytes per token on the counts ({tokens})"]


def _as_text(result: dict[str, Any]) -> str:
    """Return the result of `pipelines.compare.job.compare` as tables."""
    names = [one["name"] for one in result["tokenizers"]]
    corpus = f"{many(result['total']['documents'], 'document')}, "
    corpus += f"{size_text(result['total']['bytes'])} of text"
    lines = [f"{'compared':10}{corpus}", *_table("in all", _IN_ALL, _in_all(result))]
    if result["groups"]:
        heads = (result["by"], "documents", "text", *names)
        title = f"bytes per token by {result['by']}"
        lines += _table(title, heads, map(_group, result["groups"][:_GROUPS]))
        hidden = len(result["groups"]) - _GROUPS
        if hidden > 0:
            lines.append(f"and {many(hidden, 'group')} with less text (--json has all)")
    for one in result["differences"]:
        heads = ("tokens", "piece", "count", one["first"], one["second"])
        title = f"where {one['second']} differs most from {one['first']}"
        lines += _table(title, heads, map(_example, one["examples"][:_EXAMPLES]), left=(1, 3, 4))
        lines.append(_shares(one))
    if result["failures"]:
        first = result["bad_records"][0]
        place = f"{first['file']}, record at {first['unit']} {first['place']}: {first['reason']}"
        number = many(result["failures"], "bad record")
        lines += ["", f"{'warning':10}{number} left out, the first: {place}"]
    return "\n".join(lines)


def _table(
    title: str, heads: Sequence[str], rows: Iterable[Sequence[str]], left: Collection[int] = (0,)
) -> list[str]:
    """Return the lines of a table below its title; columns in ``left`` are text."""
    right = [number for number in range(len(heads)) if number not in left]
    cells = [[click.style(head, bold=True) for head in heads], *rows]
    table = columns.lines(cells, right=right) if len(cells) > 1 else []
    return ["", click.style(title, bold=True), *table]


def _in_all(result: dict[str, Any]) -> Iterator[Sequence[str]]:
    """Yield a row for each tokenizer."""
    first = result["total"]["tokenizers"][0]["tokens"]
    for tokenizer, one in zip(result["tokenizers"], result["total"]["tokenizers"], strict=True):
        yield (
            tokenizer["name"],
            f"{one['tokens']:,}",
            f"{one['tokens'] / first:.3f}" if first else "",
            _decimal(one["bytes_per_token"]),
            _decimal(one["tokens_per_document"]),
            _percent(one["single_byte_share"]),
            f"{one['unknown_tokens']:,}",
            f"{one['vocabulary_used']:,} of {tokenizer['vocab_size']:,}",
            _percent(one["same_token_share"]),
            _percent(one["same_document_share"]),
        )


def _group(group: dict[str, Any]) -> Sequence[str]:
    """Return the row of a group; the best rate is bold."""
    rates = [one["bytes_per_token"] for one in group["tokenizers"]]
    best = max((rate for rate in rates if rate is not None), default=None)
    return (
        "(none)" if group["name"] is None else printable(group["name"]),
        f"{group['documents']:,}",
        size_text(group["bytes"]),
        *(click.style(_decimal(one), bold=one is not None and one == best) for one in rates),
    )


def _example(example: dict[str, Any]) -> Sequence[str]:
    return (
        f"{example['more_tokens']:+,}",
        _short(example["piece"]),
        f"{example['count']:,}",
        *(_short(" ".join(tokens)) for tokens in example["tokens"]),
    )


def _shares(difference: dict[str, Any]) -> str:
    """Return how much of the text the two make different numbers of tokens of."""
    fewer, more = difference["pieces_with_fewer_tokens"], difference["pieces_with_more_tokens"]
    whole = fewer + more + difference["pieces_with_as_many_tokens"]
    if not whole:
        return "no pieces of text"
    return (
        f"{difference['second']} cuts {fewer / whole:.1%} of all pieces into fewer tokens, "
        f"{more / whole:.1%} into more"
    )


def _short(text: str, limit: int = 60) -> str:
    return text if len(text) <= limit else f"{text[: limit - 1]}…"


def _decimal(value: float | None) -> str:
    return "" if value is None else f"{value:,.2f}"


def _percent(value: float | None) -> str:
    return "" if value is None else f"{value:.1%}"
