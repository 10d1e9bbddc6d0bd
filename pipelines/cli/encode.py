"""``bpe encode``: corpus to Parquet token ids."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from pipelines.cli import options
from pipelines.cli.command import command
from pipelines.cli.loading import loading
from pipelines.cli.summary import show_summary
from pipelines.option import Settings, option
from pipelines.settings import (
    AppendSettings,
    DriftSettings,
    EncodeSettings,
    Execution,
    InputSettings,
    OutputSettings,
)

if TYPE_CHECKING:
    from pipelines.cli.layers import Values


@dataclass(frozen=True, kw_only=True)
class Encoder(Settings, group="Input"):
    """The tokenizer of the command.

    Attributes:
        tokenizer: A tokenizer file, or a published vocabulary: gpt2, cl100k, o200k or llama3. The
            tokens that a post-processor would add are not added.
    """

    tokenizer: str = option(metavar="FILE")


@command(
    *(InputSettings, EncodeSettings, OutputSettings, AppendSettings, DriftSettings, Execution),
    *(Encoder, options.VocabularyPath, options.Config, options.Messages),
)
def encode(values: Values) -> None:
    r"""Encode a corpus into Parquet files of token ids.

    Writes Parquet files to DIR/data, one row per document, with the columns id, kept columns, key
    (a hash of the id), input_ids and num_tokens. DIR/manifest.json comes last and marks the job as
    complete. Special tokens in documents are plain text, unless --allow-special names them.

    With --append, only new and changed files are encoded, into parts of their own.

    Example:
        bpe encode --input 'corpus/*.jsonl' --tokenizer model/tokenizer.json --output ids
        bpe encode --input corpus --tokenizer model/tokenizer.json --output ids \
            --append-token '<|endoftext|>'
        bpe encode --append --input 'landing/*.jsonl' --tokenizer model/tokenizer.json --output ids
    """
    with loading():
        from pipelines.encode.job import EncodeRequest
        from pipelines.watch import run_or_watch

    request = partial(
        EncodeRequest.of,
        inputs=values.settings(InputSettings),
        tokenizer=options.tokenizer_path(values),
        output=values.settings(OutputSettings),
        encoding=values.settings(EncodeSettings),
        appending=values.settings(AppendSettings),
        drift=values.settings(DriftSettings),
    )
    execution, progress = values.settings(Execution), options.progress(values)
    encoded = run_or_watch(request, execution=execution, progress=progress)
    show_summary(values, encode=encoded)
