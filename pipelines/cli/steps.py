"""How a word merges, step by step: as JSON values, and as text in a terminal."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from bpe import MergeStep, Tokenizer
    from bpe.training import Training

TOKEN_COLOURS = ("cyan", "yellow", "green", "magenta")


class Explainer:
    """Explains the words of one tokenizer.

    Args:
        tokenizer: whose merges are shown.
        training: how it was trained, where that is known: it has the counts.
    """

    def __init__(self, tokenizer: Tokenizer, training: Training | None) -> None:
        of = tokenizer.token_bytes
        self._tokenizer = tokenizer
        self._merges = training.merges if training is not None else ()
        self._ranks: Mapping[tuple[bytes, bytes], int] = {
            (of(left), of(right)): rank for rank, (left, right, _) in enumerate(tokenizer.merges)
        }

    def word(self, data: bytes) -> dict[str, Any]:
        """The steps of each pre-token of a word, its ids and its tokens, as JSON values.

        Ids are None where a character has none and there is no unknown token.
        """
        from bpe import UnknownCharacterError
        from bpe.visible import visible

        split = self._tokenizer.pretokenizer.split(data)
        explained = [self._tokenizer.explain(pretoken) for pretoken in split]
        try:
            ids = self._tokenizer.encode(data)
            tokens = [self._tokenizer.token_bytes(one) for one in ids]
        except UnknownCharacterError:
            ids = None
            tokens = [symbol for steps in explained for symbol in steps[-1].symbols]
        return {
            "word": visible(data),
            "pretokens": [
                {
                    "pretoken": visible(pretoken),
                    "steps": [self._step(step) for step in steps],
                    "unmerged": self._unmerged(pretoken, steps),
                }
                for pretoken, steps in zip(split, explained, strict=True)
            ],
            "ids": ids,
            "tokens": [visible(token) for token in tokens],
        }

    def _unmerged(self, pretoken: bytes, steps: Sequence[MergeStep]) -> str | None:
        """Why a pre-token became a token without merges; None where it did not."""
        from bpe import WordPiece

        if len(steps) < 2 or any(step.merge for step in steps):
            return None
        if isinstance(self._tokenizer.model, WordPiece):
            return "WordPiece takes the longest tokens, it merges nothing"
        if self._tokenizer.pretokenizer.is_whole(pretoken):
            return "it is never split"
        return "this tokenizer looks words up whole before it merges"

    def _step(self, step: MergeStep) -> dict[str, Any]:
        from bpe.visible import visible

        shown: dict[str, Any] = {"symbols": [visible(symbol) for symbol in step.symbols]}
        if step.merge is not None:
            rank = self._ranks[step.merge]
            left, right = step.merge
            shown |= {"left": visible(left), "right": visible(right), "rank": rank}
            if rank < len(self._merges):
                trained = self._merges[rank]
                if (trained.left, trained.right) == step.merge:
                    shown["count"] = trained.count
        return shown


def common_root(words: list[dict[str, Any]]) -> list[str]:
    """The tokens with which all of the words begin."""
    tokens = [word["tokens"] for word in words]
    root = []
    for first, *others in zip(*tokens, strict=False):
        if any(one != first for one in others):
            break
        root.append(first)
    return root


def as_text(word: dict[str, Any]) -> str:
    """The steps one below the other, what was merged beside them, tokens and ids at the end."""
    lines = [click.style(word["word"] or "(nothing)", bold=True)]
    several = len(word["pretokens"]) > 1
    for pretoken in word["pretokens"]:
        if several:
            lines.append(f"  pre-token {pretoken['pretoken']}")
        lines += _step_lines(pretoken["steps"])
        if pretoken["unmerged"]:
            lines.append(f"    (no merges: {pretoken['unmerged']})")
    ids = "none: a character has no token" if word["ids"] is None else _joined(word["ids"])
    lines.append(f"  tokens: {_coloured(word['tokens'])}".rstrip())
    lines.append(f"  ids:    {ids}".rstrip())
    return "\n".join(lines)


def _step_lines(steps: list[dict[str, Any]]) -> list[str]:
    from bpe.visible import columns

    widths = [columns(" ".join(step["symbols"])) for step in steps]
    lines = []
    before: list[str] = []
    for step, width in zip(steps, widths, strict=True):
        symbols = step["symbols"]
        new = _new(before, symbols) if before else range(0)
        shown = " ".join(
            click.style(symbol, fg="green", bold=True) if i in new else symbol
            for i, symbol in enumerate(symbols)
        )
        merge = ""
        if "rank" in step:
            merge = f"{step['left']} + {step['right']}  (rank {step['rank']:,}"
            merge += f", count {step['count']:,})" if "count" in step else ")"
        lines.append(f"    {shown}{' ' * (max(widths) - width)}    {merge}".rstrip())
        before = symbols
    return lines


def _new(before: list[str], after: list[str]) -> range:
    """The places of the symbols that a step has made."""
    pairs = list(zip(before, after, strict=False))
    begin = next((i for i, (old, new) in enumerate(pairs) if old != new), len(pairs))
    return range(begin, begin + max(1, len(after) - len(before)))


def _coloured(tokens: list[str]) -> str:
    return " ".join(
        click.style(token, fg=TOKEN_COLOURS[i % len(TOKEN_COLOURS)])
        for i, token in enumerate(tokens)
    )


def _joined(ids: list[int]) -> str:
    return " ".join(map(str, ids))


def takes_colour() -> bool:
    """Whether standard output is a terminal that shows colours, and NO_COLOR is not set."""
    dumb = os.environ.get("TERM", "") == "dumb"
    return sys.stdout.isatty() and not dumb and not os.environ.get("NO_COLOR")
