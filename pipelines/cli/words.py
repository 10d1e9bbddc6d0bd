"""``bpe words``: train on a few words, and see everything."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

import click

from pipelines.cli import columns, options
from pipelines.cli.command import command
from pipelines.cli.summary import show_result, too_small, warning_lines
from pipelines.cli.train import train_settings
from pipelines.option import Natural, Settings, option
from pipelines.progress import many
from pipelines.settings import ModelSettings, PretokenSettings, TrainSettings

if TYPE_CHECKING:
    from pipelines.cli.layers import Values

NOT_HERE = ("extend", "superwords", "boundless", "prune_runs_below")  # two phases, with runs


@dataclass(frozen=True, kw_only=True)
class Shown(Settings):
    """The output besides the training.

    Attributes:
        encode: Also encode this word, which is not trained on; repeatable.
        pairs: Also print the N most frequent pairs before the first merge.
    """

    encode: tuple[str, ...] = option((), group="Input", metavar="WORD")
    pairs: Natural = option(0, group="Messages", default_is="none")


@command(
    *(PretokenSettings, TrainSettings, ModelSettings),
    *(options.Preset, Shown, options.Config, options.JsonResult),
    leave_out=NOT_HERE,
    changes={"preset": {"default": "words"}},
)
@click.argument("words", metavar="[WORD...]", nargs=-1)
def words(values: Values) -> None:
    """Train on words; print every merge and how each word is split.

    Trains on the WORDs, or on lines of standard input. Each WORD is a separate text. By default,
    the preset words applies: text is split on whitespace, there are at most 200 merges, each pair
    must occur at least twice, and ties go to the pair that occurs first. Other presets and options
    change this.

    Example:
        bpe words low lower lowest
        bpe words low lower lowest --encode lowly
        bpe words --preset notebook 'This is the first document.' 'Is this the first document?'
    """
    given = values["words"] or tuple(sys.stdin.read().splitlines())
    if not any(given):
        raise click.UsageError("no words: give some as arguments, or on standard input")
    facts = _facts(values, given)
    size, wanted = facts["vocab_size"], values["vocab_size"]
    warnings = [too_small(size, wanted)] if wanted is not None and size > wanted else []
    text = "\n\n".join([_report(facts), *warning_lines(warnings)])
    show_result(values, {**facts, "warnings": warnings}, [text])


def _facts(values: Values, texts: tuple[str, ...]) -> dict[str, Any]:
    """Train a tokenizer; return all facts as JSON values, words in the order of the texts."""
    import bpe
    from bpe.explain import Explainer
    from bpe.pair_counts import count_pairs

    asked, settings = values.settings(Shown), train_settings(values)
    cut = values.settings(PretokenSettings)
    special = cut.special_tokens
    counts = bpe.count_pretokens(
        texts, pretokenizer=cut.cut, special_tokens=special, track_order=True
    )
    tokenizer = bpe.train(counts, special_tokens=special, **settings.arguments)
    counts = counts.pruned(settings.prune_below)
    items = list(counts.items())
    words = [items[row] for row in counts.first_seen_rows().to_pylist()]
    training, pieces = cast("bpe.Training", tokenizer.training), Explainer(tokenizer.parts).pieces

    def tokens(*pretokens: bytes) -> list[str]:
        return [_text(piece) for pretoken in pretokens for piece in pieces(pretoken)]

    facts: dict[str, Any] = {
        "merges": [_pair(merge.left, merge.right, merge.count) for merge in training.merges],
        "stopped": training.stopped,
        "vocab_size": len(tokenizer),
        "vocabulary": tokenizer.get_vocab(),
        "words": [
            {"word": _text(word), "count": count, "tokens": tokens(word)} for word, count in words
        ],
    }
    if asked.pairs:
        symbols = [(tokenizer.model.symbols(word), count) for word, count in words]
        pairs = count_pairs(symbols, training.pair_counts).most_common(asked.pairs)
        facts["pairs"] = [_pair(left, right, count) for (left, right), count in pairs]
    if asked.encode:
        split = tokenizer.pretokenizer.split
        facts["encoded"] = [{"word": text, "tokens": tokens(*split(text))} for text in asked.encode]
    return facts


def _pair(left: bytes, right: bytes, count: int) -> dict[str, Any]:
    return {"left": _text(left), "right": _text(right), "count": count}


def _report(facts: dict[str, Any]) -> str:
    """Return the same for people."""
    merges = facts["merges"]
    splits = {one["word"]: one["tokens"] for one in (*facts["words"], *facts.get("encoded", ()))}
    size = f"{many(len(merges), 'merge')}, {many(facts['vocab_size'], 'token')}"
    sections = [
        _table("pairs", _rows(facts.get("pairs", []))),
        _table("merges", _rows(merges)) or "no merges",
        f"{size} ({facts['stopped']})",
        _table("words", [(_visible(word), _joined(tokens)) for word, tokens in splits.items()]),
    ]
    return "\n\n".join(filter(None, sections))


def _rows(pairs: list[dict[str, Any]]) -> list[tuple[str, str]]:
    return [(_joined([one["left"], one["right"]]), f"{one['count']:,}") for one in pairs]


def _text(data: bytes) -> str:
    return data.decode("utf-8", "backslashreplace")


def _joined(tokens: list[str]) -> str:
    return " ".join(map(_visible, tokens))


def _visible(text: str) -> str:
    from bpe.explain import visible

    return visible(text.encode())


def _table(title: str, rows: list[tuple[str, str]]) -> str:
    return "\n".join([title, *(f"  {line}" for line in columns.lines(rows))]) if rows else ""
