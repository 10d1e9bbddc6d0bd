"""Options of commands that read a tokenizer file: what it may not say itself."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from pipelines.cli import options
from pipelines.cli.command import GroupedOption, choose, stack
from pipelines.cli.declared import PretokenizerName

if TYPE_CHECKING:
    from collections.abc import Callable

    from bpe import Tokenizer


def tokenizer_options() -> Callable[[Any], Any]:
    """How text is cut, and what is special, for files that do not say it."""
    return stack(
        click.option(
            "--pretokenizer",
            cls=GroupedOption,
            group="Text",
            advanced=True,
            type=PretokenizerName(),
            metavar="NAME",
            default_is="as the file says",
            help="How the tokenizer cuts text, for a file that does not say it (.tiktoken, "
            "vocab.json).",
        ),
        click.option(
            "--pattern",
            cls=GroupedOption,
            group="Text",
            advanced=True,
            multiple=True,
            metavar="REGEX",
            help="A regular expression instead; repeated, one after the other.",
        ),
        click.option(
            "--normalizer",
            cls=GroupedOption,
            group="Text",
            advanced=True,
            multiple=True,
            metavar="STEP",
            help="What is done to text before it is cut, for a file that does not say it: nfc, "
            "nfd, nfkc, nfkd, lowercase, strip-accents; repeatable.",
        ),
        click.option(
            "--never-split",
            cls=GroupedOption,
            group="Text",
            advanced=True,
            multiple=True,
            metavar="REGEX",
            help="What is never split, for a file that does not say it: url, email or a regular "
            "expression; repeatable.",
        ),
        options.special_ids_option(),
    )


def load_tokenizer(ctx: click.Context, path: str) -> Tokenizer:
    """The tokenizer of a file, or of a complete directory, with what the options say of it."""
    import bpe

    choose(ctx, "pretokenizer", "pattern")
    if Path(path).is_dir():
        from pipelines.output.state import complete  # imports Beam

        complete(path)
    values = ctx.params
    return bpe.Tokenizer.load(
        path,
        pretokenizer=values["pretokenizer"],
        pattern=values["pattern"] or None,
        normalizer=values["normalizer"],
        never_split=values["never_split"],
        special_tokens=options.special_ids(values["special_token"]),
    )
