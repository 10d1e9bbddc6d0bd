"""``bpe diff``: what changed from one tokenizer to another."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import click

from pipelines.cli import options
from pipelines.cli.command import Command, own_option
from pipelines.cli.loading import loading
from pipelines.cli.summary import show_json

if TYPE_CHECKING:
    from bpe import Tokenizer
    from bpe.diff import Difference


@click.command(
    cls=Command,
    short_help="Show what changed from one tokenizer to another.",
    example="""
bpe diff old/tokenizer.json new/tokenizer.json
bpe diff old/tokenizer.json new/tokenizer.json --counts counts
bpe diff old/tokenizer.json new/tokenizer.json --json
""",
)
@click.argument("old", metavar="OLD")
@click.argument("new", metavar="NEW")
@own_option(
    "counts",
    metavar="DIR",
    help="Counts (from bpe count) on which to measure the bytes per token of both.",
)
@own_option(
    "show",
    kind="integer",
    minimum=0,
    default=10,
    metavar="N",
    help="Number of tokens and merges of each kind to print; --json lists all.",
)
@options.tokenizer_options()
@options.json_option()
@options.traceback_option()
@click.pass_context
def diff(
    ctx: click.Context, /, old: str, new: str, counts: str | None, show: int, **_: Any
) -> None:
    """Compare two tokenizer files: tokens gained and lost, merges moved, bytes per token.

    Tokens and merges are compared by their bytes, not by their ids. A merge has moved if its rank
    among the common merges differs. --counts are used with the pre-tokenizer that made them.
    """
    with loading():
        from bpe.diff import compare, fit
        from pipelines.count.directory import load_counts
        from pipelines.failures import job_errors
        from pipelines.output.state import complete

    tokenizers = [options.load_tokenizer(ctx, file) for file in (old, new)]
    facts = _facts((old, new), tokenizers, compare(*tokenizers))
    if counts is not None:
        with job_errors():
            complete(counts, "counts")
            measured = load_counts(counts)
        for side, tokenizer in zip(("old", "new"), tokenizers, strict=True):
            fitted = fit(tokenizer, measured)
            figures = {**asdict(fitted), "bytes_per_token": fitted.bytes_per_token}
            facts["on_counts"] = {**(facts["on_counts"] or {}), side: figures}
    if ctx.params["json"]:
        show_json(facts)
    else:
        click.echo("\n".join([*_difference_lines(facts, show), *_fit_lines(facts["on_counts"])]))


def _facts(
    names: tuple[str, str], tokenizers: list[Tokenizer], difference: Difference
) -> dict[str, Any]:
    """Everything, as JSON values."""
    from bpe.explain import visible

    def sides(merges: tuple[tuple[bytes, bytes], ...]) -> list[list[str]]:
        return [[visible(left), visible(right)] for left, right in merges]

    old, new = (
        {"file": name, "tokens": len(tokenizer)}
        for name, tokenizer in zip(names, tokenizers, strict=True)
    )
    return {
        "old": old,
        "new": new,
        "same": difference.is_empty,
        "gained": [*map(visible, difference.gained)],
        "lost": [*map(visible, difference.lost)],
        "renumbered": difference.renumbered,
        "merges": {
            "kept": difference.kept_merges,
            "gained": sides(difference.gained_merges),
            "lost": sides(difference.lost_merges),
            "moved": [
                {**asdict(merge), "left": visible(merge.left), "right": visible(merge.right)}
                for merge in difference.moved_merges
            ],
        },
        "settings": {name: list(both) for name, both in difference.settings.items()},
        "on_counts": None,
    }


def _difference_lines(facts: dict[str, Any], limit: int) -> list[str]:
    """The same for people, with at most ``limit`` tokens and merges of each kind."""
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


def _fit_lines(fits: dict[str, dict[str, Any]] | None) -> list[str]:
    if fits is None:
        return []
    old, new = fits["old"], fits["new"]
    if old["bytes_per_token"] is None or new["bytes_per_token"] is None:
        return [f"{'fit':10}the counts hold nothing"]
    change = new["tokens"] / old["tokens"] - 1
    figures = f"{old['bytes_per_token']:.3f} → {new['bytes_per_token']:.3f}"
    tokens = f"{old['tokens']:,} → {new['tokens']:,} tokens, {change:+.1%}"
    return [f"{'fit':10}{figures} bytes per token on the counts ({tokens})"]
