"""``bpe count``: corpus to counts."""

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
    CountSettings,
    Execution,
    InputSettings,
    OutputSettings,
    PretokenSettings,
    RunSettings,
)

if TYPE_CHECKING:
    from pipelines.cli.layers import Values


@dataclass(frozen=True, kw_only=True)
class Runs(Settings, group="Text"):
    """The choice to count runs.

    Attributes:
        runs: Count runs, for superwords: sequences of adjacent pre-tokens that are one token each.
        tokenizer: With --runs: the tokenizer whose tokens make the runs. It determines how text is
            split.
    """

    runs: bool = option(False, needs="tokenizer")
    tokenizer: str | None = option(None, needs="runs", metavar="FILE")


@command(
    *(InputSettings, PretokenSettings, RunSettings, CountSettings, OutputSettings),
    *(AppendSettings, Execution, Runs),
    *(options.VocabularyPath, options.Preset, options.Config, options.Messages),
    changes={"vocabulary_path": {"needs": "runs"}},
)
def count(values: Values) -> None:
    """Count the pre-tokens of a corpus.

    A pre-token is, roughly, a word. Writes Parquet files with the columns pretoken and count to
    DIR/data, and DIR/manifest.json. bpe train --counts DIR trains on these counts.

    With --runs, it counts runs of a tokenizer's tokens instead. Superwords, tokens across word
    boundaries, are learned from them: bpe train --counts DIR --tokenizer FILE --superwords N.

    With --append, only new and changed files are counted. bpe train can use the counts at any time.

    Example:
        bpe count --input 'corpus/*.jsonl.gz' --output counts --pretokenizer cl100k
        bpe count --append --input 'landing/*.jsonl' --output counts
        bpe count --runs --tokenizer words/tokenizer.json --input 'corpus/*.jsonl.gz' --output runs
    """
    inputs, pretokens = values.settings(InputSettings), values.settings(PretokenSettings)
    output, execution = values.settings(OutputSettings), values.settings(Execution)
    settings, appending = values.settings(CountSettings), values.settings(AppendSettings)
    with loading():
        from pipelines.count.job import CountRequest
        from pipelines.watch import run_or_watch

    request = partial(
        CountRequest.of,
        inputs=inputs,
        pretokens=pretokens,
        output=output,
        settings=settings,
        tokenizer=options.tokenizer_path(values) if values["runs"] else None,
        runs=values.settings(RunSettings),
        appending=appending,
    )
    summary = run_or_watch(request, execution=execution, progress=options.progress(values))
    show_summary(values, count=summary)
