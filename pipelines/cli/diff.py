"""``bpe diff``: what changed from one tokenizer to another."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import click

from pipelines.cli import options
from pipelines.cli.command import Command, WholeNumber
from pipelines.cli.logs import set_up_logging
from pipelines.cli.report import show_json
from pipelines.cli.tokenizer_options import load_tokenizer, tokenizer_options

if TYPE_CHECKING:
    from bpe import Tokenizer
    from bpe.diff import Difference, Fit


@click.command(
    cls=Command,
    short_help="Say what changed from one tokenizer to another.",
    example="""
bpe diff old/tokenizer.json new/tokenizer.json
bpe diff old/tokenizer.json new/tokenizer.json --counts counts
bpe diff old/tokenizer.json new/tokenizer.json --json
""",
)
@click.argument("old", metavar="OLD")
@click.argument("new", metavar="NEW")
@click.option(
    "--counts",
    metavar="DIR",
    help="Counts (of bpe count) to measure both on: bytes per token.",
)
@click.option(
    "--show",
    "limit",
    type=WholeNumber(0),
    default=10,
    metavar="N",
    help="Tokens and merges of each kind to print; --json has all of them.",
)
@tokenizer_options()
@options.json_option()
@options.traceback_option()
@click.pass_context
def diff(
    ctx: click.Context, /, old: str, new: str, counts: str | None, limit: int, **_: Any
) -> None:
    """Compare two tokenizer files: tokens gained and lost, merges moved, bytes per token.

    Tokens and merges are compared by their bytes, not by their ids. A merge has moved where its
    place among the merges that both have is another. Counts are measured as they were cut.
    """
    set_up_logging()
    from bpe.diff import compare, fit
    from pipelines.count.directory import load_counts
    from pipelines.failures import job_errors
    from pipelines.output.state import complete

    before, after = load_tokenizer(ctx, old), load_tokenizer(ctx, new)
    found = compare(before, after)
    fits = None
    if counts is not None:
        with job_errors():
            complete(counts, "counts")
            measured = load_counts(counts)
            fits = (fit(before, measured), fit(after, measured))
    if ctx.params["json"]:
        show_json(_as_json((old, new), (before, after), found, fits))
        return
    click.echo("\n".join(_as_text((before, after), found, fits, limit)))


def _as_json(
    names: tuple[str, str],
    tokenizers: tuple[Tokenizer, Tokenizer],
    found: Difference,
    fits: tuple[Fit, Fit] | None,
) -> dict[str, Any]:
    from bpe.visible import visible

    def sides(merges: tuple[tuple[bytes, bytes], ...]) -> list[list[str]]:
        return [[visible(left), visible(right)] for left, right in merges]

    return {
        "old": {"file": names[0], "tokens": len(tokenizers[0])},
        "new": {"file": names[1], "tokens": len(tokenizers[1])},
        "same": found.is_empty,
        "gained": [visible(token) for token in found.gained],
        "lost": [visible(token) for token in found.lost],
        "renumbered": found.renumbered,
        "merges": {
            "kept": found.kept_merges,
            "gained": sides(found.gained_merges),
            "lost": sides(found.lost_merges),
            "moved": [
                {**asdict(one), "left": visible(one.left), "right": visible(one.right)}
                for one in found.moved_merges
            ],
        },
        "settings": {name: list(both) for name, both in found.settings.items()},
        "on_counts": None
        if fits is None
        else {
            side: {**asdict(one), "bytes_per_token": one.bytes_per_token}
            for side, one in zip(("old", "new"), fits, strict=True)
        },
    }


def _as_text(
    tokenizers: tuple[Tokenizer, Tokenizer],
    found: Difference,
    fits: tuple[Fit, Fit] | None,
    limit: int,
) -> list[str]:
    from bpe.visible import visible

    old, new = tokenizers
    lines = [f"{'tokens':10}{len(old):,} → {len(new):,}"]
    if found.is_empty:
        lines.append(f"{'':10}nothing differs")
        return [*lines, *_fit_lines(fits)]
    for name, tokens in (("gained", found.gained), ("lost", found.lost)):
        shown = [visible(token) for token in tokens[:limit]]
        lines.append(f"{name:10}{_listed(len(tokens), shown, ' ')}")
    lines.append(f"{'ids':10}{found.renumbered:,} of the tokens of both have another id")
    moved = [
        f"{visible(one.left)} {visible(one.right)} ({one.old_rank:,} → {one.new_rank:,})"
        for one in found.moved_merges[:limit]
    ]
    merges = (
        f"{found.kept_merges:,} in both, {len(found.gained_merges):,} gained, "
        f"{len(found.lost_merges):,} lost"
    )
    lines += [
        f"{'merges':10}{merges}",
        f"{'moved':10}{_listed(len(found.moved_merges), moved, ', ')}",
    ]
    lines += [f"{name}: {mine} → {its}" for name, (mine, its) in found.settings.items()]
    return [*lines, *_fit_lines(fits)]


def _listed(number: int, shown: list[str], between: str) -> str:
    more = f"{between}… and {number - len(shown):,} more" if number > len(shown) else ""
    return f"{number:,}" + (f": {between.join(shown)}{more}" if shown else "")


def _fit_lines(fits: tuple[Fit, Fit] | None) -> list[str]:
    if fits is None:
        return []
    old, new = fits
    if old.bytes_per_token is None or new.bytes_per_token is None:
        return [f"{'fit':10}the counts hold nothing"]
    change = new.tokens / old.tokens - 1
    figures = f"{old.bytes_per_token:.3f} → {new.bytes_per_token:.3f} bytes per token on the counts"
    tokens = f"{old.tokens:,} → {new.tokens:,} tokens, {change:+.1%}"
    return [f"{'fit':10}{figures} ({tokens})"]
