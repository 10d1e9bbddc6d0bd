"""The options that say what rows of token ids hold, of ``bpe encode`` and ``bpe run``."""

from __future__ import annotations

from dataclasses import fields
from typing import TYPE_CHECKING, Any

import click

from pipelines.cli.command import Described, WholeNumber, stack
from pipelines.settings import (
    ID_TYPES,
    MAX_PACK,
    MAX_ROW_TOKENS,
    MAX_SEED,
    PACK_REMAINDERS,
    EncodeSettings,
)

if TYPE_CHECKING:
    from collections.abc import Callable


def encode_options() -> Callable[[Any], Any]:
    """What becomes of documents that are encoded."""
    return stack(
        click.option(
            "--prepend-token",
            metavar="TOKEN",
            help="Special token to put before the ids of each document, such as '<|bos|>'.",
        ),
        click.option(
            "--append-token",
            metavar="TOKEN",
            help="Special token to put behind the ids of each document, such as '<|endoftext|>'.",
        ),
        click.option(
            "--keep",
            multiple=True,
            metavar="NAME",
            help="Field (jsonl) or column (parquet) to pass through with its type; repeatable. "
            "NAME:TYPE, such as score:double or 'tags:list<string>', gives a type.",
        ),
        click.option(
            "--max-tokens",
            type=WholeNumber(1, MAX_ROW_TOKENS),
            metavar="N",
            help="Cut longer documents into chunks of N ids; chunk_index numbers them from 0.",
        ),
        click.option(
            "--pack",
            type=WholeNumber(1, MAX_PACK),
            metavar="N",
            help="Rows of N ids each, of consecutive documents of a split; documents says which.",
        ),
        click.option(
            "--pack-remainder",
            type=click.Choice(PACK_REMAINDERS),
            default="keep",
            metavar="RULE",
            help="What becomes of the ids of a split that do not fill a row. keep: a shorter last "
            "row; drop: left out, and counted.",
        ),
        click.option(
            "--allow-special",
            multiple=True,
            metavar="TOKEN",
            cls=Described,
            default_is="what looks like one is plain text",
            help="Special token that is recognised in documents, or all; repeatable.",
        ),
        click.option(
            "--dropout",
            type=float,
            default=0.0,
            metavar="P",
            help="Drop each merge with this probability (BPE-dropout).",
        ),
        click.option(
            "--dropout-seed",
            type=WholeNumber(0, MAX_SEED),
            default=0,
            metavar="N",
            help="Seed of --dropout; the same gives the same ids, however the corpus is split.",
        ),
        click.option(
            "--id-type",
            type=click.Choice(ID_TYPES),
            default="auto",
            metavar="TYPE",
            help="Type of the ids: uint16, uint32, or auto: uint16 where the vocabulary fits.",
        ),
    )


def encode_settings(ctx: click.Context) -> EncodeSettings:
    """What the options make of documents."""
    return EncodeSettings(
        **{field.name: ctx.params[field.name] for field in fields(EncodeSettings)}
    )
